"""A poll of a log full of finished runs is cheap, and misses nothing that comes later."""

import os
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from build_events.clock import NS_PER_S
from build_events.local_log import LocalLog
from build_events.local_log.layout import StreamPlace, parse_segment, quote
from tests.build_events.log_files import content
from tests.build_events.log_processes import BEAT, stream_in


@pytest.fixture
def log(tmp_path: Path) -> LocalLog:
    """An empty log."""
    return LocalLog.create(tmp_path / "log")


def age(folder: Path, *, seconds: int = 60) -> None:
    """Let the folders of all runs look as if nothing had happened in them lately."""
    then = time.time_ns() - seconds * NS_PER_S
    for run in (folder / "runs").iterdir():
        os.utime(run, ns=(then, then))


def test_a_stream_that_joins_a_finished_run_is_read(log: LocalLog) -> None:
    """A validator may come long after the build, also when the reader knows the run as finished."""
    stream_in(log, "run-1", "main").close(BEAT)
    age(log.folder)
    reader = LocalLog(log.folder)
    seen = content(reader).positions
    assert content(reader, seen).records == []
    stream_in(log, "run-1", "validator", "observer").close(BEAT)
    got = content(reader, seen)
    assert [record.stream.stream_id for record in got.records] == ["validator"] * 2
    assert reader.ends() == got.positions


def test_a_live_run_is_never_taken_for_finished(log: LocalLog) -> None:
    """A folder in which nothing is made or removed can still have a writer: its lock file says so."""
    stream = stream_in(log, "run-1", "main")
    stream.append(BEAT)
    age(log.folder)
    reader = LocalLog(log.folder)
    seen = content(reader).positions
    stream.append(BEAT)
    got = content(reader, seen)
    assert got.sequences == [1]
    assert reader.ends() == got.positions


def test_finished_runs_are_neither_listed_nor_opened_again(log: LocalLog, monkeypatch: pytest.MonkeyPatch) -> None:
    """A second poll only looks whether the folder of a run changed."""
    for number in range(20):
        stream_in(log, f"run-{number}", "main").close(BEAT)
    age(log.folder)
    reader = LocalLog(log.folder)
    seen = content(reader).positions
    touched: list[str] = []

    def watched(original: Any) -> Any:
        def call(path: str, *arguments: int) -> Any:
            touched.append(path)
            return original(path, *arguments)

        return call

    monkeypatch.setattr(os, "scandir", watched(os.scandir))
    monkeypatch.setattr(os, "open", watched(os.open))
    assert content(reader, seen).records == []
    assert reader.ends() == seen
    assert [Path(path).name for path in touched] == ["runs", "routes"] * 2


def test_sources_come_in_a_fixed_order(log: LocalLog) -> None:
    """Two readers see the same sources in the same order: by run, stream and segment."""
    for run_id in ("b", "a", "c"):
        for stream_id in ("two", "one"):
            stream_in(log, run_id, stream_id).close(BEAT)
    sources = [chunk.source for chunk in log.read({}, max_bytes=1 << 20)]
    assert sources == sorted(sources) == list(log.ends())
    assert sources[0] == "runs/a/one.0000.jsonl"


@given(text=st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=40))
def test_any_id_becomes_one_safe_file_name_and_comes_back(text: str) -> None:
    """The name has no separator, is neither ``.`` nor ``..``, and tells the id again."""
    name = quote(text)
    assert Path(name).name == name not in {".", ".."}
    place = StreamPlace("/log", "runs", name, name)
    assert (place.run_id, place.stream_id) == (text, text)
    assert parse_segment(Path(place.segment(12)).name) == (name, 12)


def test_segments_beyond_ten_thousand_keep_their_order() -> None:
    """The number is read as a number, not as text."""
    place = StreamPlace("/log", "runs", "run", "a.0001")
    for number in (0, 9_999, 10_000, 123_456):
        assert parse_segment(Path(place.segment(number)).name) == ("a.0001", number)


def test_an_empty_id_names_no_place() -> None:
    """It would be the folder of all runs."""
    with pytest.raises(ValueError, match="empty"):
        quote("")
