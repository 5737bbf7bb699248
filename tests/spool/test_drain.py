"""Draining a spool: everything arrives in order, nothing is deleted too early, nothing blocks."""

import dataclasses
import errno
import json
import tempfile
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from build_events import codec
from build_events.envelope import Recorded
from build_events.events import UnknownEvent
from build_events.kafka_record import MAX_EVENT_BYTES, KafkaRecord
from build_events.local_log import LocalLog
from build_events.local_log.cursor import DrainLock, Position, read_cursor
from build_events.local_log.layout import run_stream
from build_events.local_log.lines import frame
from builder_agent.spool import drain
from builder_agent.spool.dead_letters import dead_letters
from builder_agent.spool.drain import SpoolDrain, waiting_events
from builder_agent.spool.drainer import drain_all
from tests.build_events.log_files import segment
from tests.build_events.scenes import Scene, flatten
from tests.build_events.strategies import several_histories
from tests.spool.sinks import MemorySink


def one_run(run_id: str = "run-1") -> list[Recorded]:
    """Return a closed run of a main stream alone, some thirty records."""
    run = Scene(run_id=run_id).play("completed", flatten((((), ()), ())), 9)
    return [record for record in run if record.stream.role == "main"]


def never() -> bool:
    """Give up on nothing."""
    return False


def files(folder: Path) -> list[str]:
    """Return the files under the spool's streams."""
    return sorted(path.name for kind in ("runs", "routes") for path in (folder / kind).rglob("*") if path.is_file())


def by_stream(records: Sequence[Recorded]) -> dict[str, list[Recorded]]:
    """Return each stream's records in order, repeated ones once."""
    streams: dict[str, dict[int, Recorded]] = {}
    for record in records:
        streams.setdefault(record.stream.stream_id, {}).setdefault(record.sequence, record)
    return {stream_id: list(found.values()) for stream_id, found in streams.items()}


@settings(max_examples=40)
@given(history=several_histories(), failing=st.sets(st.integers(0, 12)), size=st.integers(1, 9))
def test_every_event_arrives_in_order_however_often_the_log_fails(
    history: list[Recorded], failing: set[int], size: int
) -> None:
    """Failures cost repetition, never an event or the order of first arrival within a stream."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name) / "spool"
        log = LocalLog.create(folder, segment_bytes=3_000)
        sink = MemorySink(fails_at=failing.__contains__)
        draining = SpoolDrain(folder, sink)
        for first in range(0, len(history), size):
            log.append(history[first : first + size])
            draining.step(never)
        log.close()
        while draining.step(never).left:
            pass
        assert by_stream(sink.records) == by_stream(history)
        assert waiting_events(folder) == 0


def test_a_closed_run_is_deleted_once_all_of_it_is_acknowledged(tmp_path: Path) -> None:
    """Nothing of it stays in the spool, and the report counts its events."""
    LocalLog.create(tmp_path).append(one_run())
    report = drain_all(tmp_path, MemorySink(), give_up=never)
    assert (report.events, report.refused, report.waiting) == (len(one_run()), 0, 0)
    assert files(tmp_path) == []
    assert not list((tmp_path / "runs").iterdir())


def test_a_stream_that_is_still_written_stays_and_is_drained_as_far_as_it_goes(tmp_path: Path) -> None:
    """Its lock holds back its own deletion and that of every other stream of the run."""
    run = one_run()
    observer = [
        dataclasses.replace(r, stream=dataclasses.replace(r.stream, stream_id="o", role="observer")) for r in run
    ]
    log, sink = LocalLog.create(tmp_path), MemorySink()
    draining = SpoolDrain(tmp_path, sink)
    log.append(observer)
    log.append(run[:5])
    draining.step(never)
    assert len(sink.records) == len(observer) + 5
    assert segment(tmp_path, "run-1", "o").exists()
    log.append(run[5:])
    draining.step(never)
    assert by_stream(sink.records) == by_stream([*observer, *run])
    assert files(tmp_path) == []


def test_a_dead_writer_s_stream_stays_until_its_end_is_declared(tmp_path: Path) -> None:
    """The lock file of a writer that is gone keeps the run for the start that will judge it."""
    run, sink = one_run(), MemorySink()
    log = LocalLog.create(tmp_path)
    log.append(run[:5])
    log.close()
    drain_all(tmp_path, sink, give_up=never)
    lock = Path(run_stream(tmp_path, "run-1", run[0].stream.stream_id).lock)
    assert len(sink.records) == 5
    assert lock.exists()
    lock.unlink()
    drain_all(tmp_path, sink, give_up=never)
    assert len(sink.records) == 5


def test_another_process_goes_on_where_the_cursor_stands(tmp_path: Path) -> None:
    """What one drainer had acknowledged is not sent again by the next."""
    run = one_run()
    log = LocalLog.create(tmp_path)
    first, second = MemorySink(), MemorySink()
    log.append(run[:7])
    SpoolDrain(tmp_path, first).step(never)
    log.append(run[7:])
    SpoolDrain(tmp_path, second).step(never)
    assert first.records + second.records == run


def test_another_log_gets_the_stream_from_its_beginning(tmp_path: Path) -> None:
    """A topic made anew has nothing of what the old one acknowledged."""
    run = one_run()
    log = LocalLog.create(tmp_path)
    log.append(run[:7])
    SpoolDrain(tmp_path, MemorySink()).step(never)
    log.append(run[7:])
    anew = MemorySink(log_id="memory/2")
    SpoolDrain(tmp_path, anew).step(never)
    assert anew.records == run


@pytest.mark.parametrize("text", [b"", b"{", b"null", b'{"log":"memory/1"}', b'{"log":1,"segment":"x","offset":0}'])
def test_a_torn_cursor_means_the_beginning(tmp_path: Path, text: bytes) -> None:
    """To send again is safe, to leave out is not."""
    run = one_run()
    place = run_stream(tmp_path, "run-1", run[0].stream.stream_id)
    LocalLog.create(tmp_path).append(run)
    Path(place.cursor).write_bytes(text)
    assert read_cursor(place, "memory/1") == Position()
    sink = MemorySink()
    drain_all(tmp_path, sink, give_up=never)
    assert sink.records == run


def test_only_one_drainer_has_a_stream(tmp_path: Path) -> None:
    """While another holds the stream's drain lock, it is left alone and said to be left."""
    run, sink = one_run(), MemorySink()
    LocalLog.create(tmp_path).append(run)
    lock = DrainLock.take(run_stream(tmp_path, "run-1", run[0].stream.stream_id))
    assert lock is not None
    assert SpoolDrain(tmp_path, sink).step(never).left
    assert sink.records == []
    lock.release()
    assert not SpoolDrain(tmp_path, sink).step(never).left
    assert sink.records == run


def test_a_log_that_is_away_leaves_the_spool_as_it_is(tmp_path: Path) -> None:
    """The report says how much waits and why; no file is touched."""
    LocalLog.create(tmp_path).append(one_run())
    before = files(tmp_path)
    report = drain_all(tmp_path, MemorySink(away=True), give_up=never)
    assert (report.events, report.waiting, report.reason) == (0, len(one_run()), "memory is away")
    assert files(tmp_path) == before


def test_what_the_broker_refuses_is_kept_aside_and_the_rest_goes_on(tmp_path: Path) -> None:
    """Of a refused batch only the events that are refused alone become dead letters, each counted once."""
    run = one_run()
    LocalLog.create(tmp_path).append(run)
    bad = {3, 11}

    def refuses(record: KafkaRecord) -> bool:
        sink = MemorySink(stored=[record])
        return any(found.sequence in bad for found in sink.records)

    sink = MemorySink(refuses=refuses)
    report = drain_all(tmp_path, sink, give_up=never)
    assert (report.events, report.refused, report.waiting) == (len(run) - 2, 2, 0)
    assert sorted(record.sequence for record in sink.records) == sorted(set(range(len(run))) - bad)
    letters = dead_letters(tmp_path)
    assert [json.loads(letter["payload"])["sequence"] for letter in letters] == ["0000000003", "0000000011"]
    assert {(letter["run"], letter["reason"]) for letter in letters} == {("run-1", "MessageSizeTooLargeError")}
    assert files(tmp_path) == []


def test_an_event_too_long_to_send_is_kept_aside(tmp_path: Path) -> None:
    """Another writer may have left it: it is not even tried, and costs no other event."""
    run = one_run()
    LocalLog.create(tmp_path).append(run)
    news = UnknownEvent(type="trt.build.dreamt.v7", data="x" * MAX_EVENT_BYTES)
    path = Path(run_stream(tmp_path, "run-1", run[0].stream.stream_id).segment(0))
    lines = path.read_bytes().splitlines(keepends=True)
    lines[4] = frame(codec.encode(dataclasses.replace(run[4], event=news)))
    path.write_bytes(b"".join(lines))
    sink = MemorySink()
    report = drain_all(tmp_path, sink, give_up=never)
    assert (report.refused, [letter["reason"] for letter in dead_letters(tmp_path)]) == (1, ["oversize"])
    assert sink.records == [record for record in run if record.sequence != 4]


def test_bad_lines_and_torn_ends_are_kept_aside(tmp_path: Path) -> None:
    """Bytes that hold no event stay here with their reason; what stands around them is delivered."""
    run = one_run()
    log = LocalLog.create(tmp_path)
    log.append(run[:10])
    log.close()
    place = run_stream(tmp_path, "run-1", run[0].stream.stream_id)
    path = Path(place.segment(0))
    lines = path.read_bytes().split(b"\n")
    lines[2] = b"\xff" + lines[2][1:]
    path.write_bytes(b"\n".join(lines) + b'{"half":')
    Path(place.lock).unlink()
    sink = MemorySink()
    report = drain_all(tmp_path, sink, give_up=never)
    assert [record.sequence for record in sink.records] == [0, 1, *range(3, 10)]
    assert sorted(letter["reason"] for letter in dead_letters(tmp_path)) == ["not_utf8", "torn_tail"]
    assert (report.refused, report.waiting, files(tmp_path)) == (2, 0, [])


def test_a_dead_letter_is_counted_once_however_often_it_is_met(tmp_path: Path) -> None:
    """A drainer that died before its cursor stood meets the same event again."""
    run, sink = one_run(), MemorySink(refuses=lambda _record: True)
    log = LocalLog.create(tmp_path)
    log.append(run[:1])
    assert SpoolDrain(tmp_path, sink).step(never).refused == 1
    Path(run_stream(tmp_path, "run-1", run[0].stream.stream_id).cursor).unlink()
    assert SpoolDrain(tmp_path, sink).step(never).refused == 0
    assert len(dead_letters(tmp_path)) == 1


def test_a_disk_without_room_for_a_cursor_is_drained_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is acknowledged is not sent again by this drainer, and its deletion makes room."""
    run, sink = one_run(), MemorySink()
    log = LocalLog.create(tmp_path)

    def no_room(_self: DrainLock, _position: Position, _log: str) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(DrainLock, "write_cursor", no_room)
    draining = SpoolDrain(tmp_path, sink)
    log.append(run[:9])
    draining.step(never)
    log.append(run[9:])
    draining.step(never)
    assert sink.records == run
    assert files(tmp_path) == []


def test_the_bytes_in_flight_are_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A long spool goes in groups, none much longer than the cap."""
    monkeypatch.setattr(drain, "GROUP_BYTES", 10_000)
    log = LocalLog.create(tmp_path)
    runs = [one_run(f"run-{number}") for number in range(5)]
    for run in runs:
        log.append(run)

    sink = MemorySink()
    drain_all(tmp_path, sink, give_up=never)
    assert by_stream(sink.records) == by_stream([record for run in runs for record in run])
    assert 0 < sink.longest_delivery < 10_000 + 20_000  # one record beyond, at most


def test_the_run_of_this_process_goes_first(tmp_path: Path) -> None:
    """What waits from earlier runs does not hold up the one that is building."""
    log = LocalLog.create(tmp_path)
    for run_id in ("run-1", "run-2", "run-3"):
        log.append(one_run(run_id))
    sink = MemorySink()
    SpoolDrain(tmp_path, sink, run_first="run-2").step(never)
    assert sink.records[0].stream.run_id == "run-2"
