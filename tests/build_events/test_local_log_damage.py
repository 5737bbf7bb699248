"""What a reader makes of a damaged local log: nothing valid is lost, nothing invalid passes."""

import os
import tempfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from build_events import codec
from build_events.errors import LogCorruptError
from build_events.events import Event
from build_events.local_log import LocalLog
from build_events.local_log.lines import TAIL_BYTES, frame
from build_events.stream import EventStream
from tests.build_events.log_files import content, replace_line, segment
from tests.build_events.log_processes import BEAT, stream_in

MEBIBYTE = 1 << 20
BEATS: list[Event] = [BEAT] * 5


def checked(body: bytes) -> bytes:
    """Return a line whose checksum fits, whatever it holds."""
    return frame(body + b"}")[:-1]


@pytest.fixture
def log(tmp_path: Path) -> LocalLog:
    """An empty log."""
    return LocalLog.create(tmp_path / "log")


@pytest.fixture
def closed(log: LocalLog) -> Path:
    """The segment of a closed stream: five heartbeats and the closing event."""
    stream_in(log, "run-1", "main").close(*BEATS)
    return segment(log.folder, "run-1", "main")


@pytest.fixture
def live(log: LocalLog) -> EventStream:
    """A stream that is still written, with five heartbeats."""
    stream = stream_in(log, "run-1", "main")
    stream.append(*BEATS)
    return stream


def test_a_flipped_bit_costs_one_event_and_is_kept_with_its_place(log: LocalLog, closed: Path) -> None:
    """The bad line is a reject with its bytes, position and stream; every other line is read."""
    lines = closed.read_bytes().split(b"\n")
    bad = bytearray(lines[2])
    bad[100] ^= 1
    replace_line(closed, 2, bytes(bad))
    got = content(log)
    assert got.sequences == [0, 1, 3, 4, 5]
    [reject] = got.rejects
    assert (reject.reason, reject.payload) == ("bad_checksum", bytes(bad))
    assert reject.offset == len(b"\n".join(lines[:2])) + 1
    assert (reject.stream_id, reject.run_id, reject.route) == ("main", "run-1", None)
    assert got.positions == log.ends()


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (b"", "not_json"),
        (b"garbage", "not_json"),
        (b"\x00" * 40, "not_json"),
        (b'{"a":1', "not_json"),
        (b"[1]", "not_object"),
        (b'"text"', "not_object"),
        (b"{}", "no_checksum"),
        (b'{"specversion":"1.0"}', "no_checksum"),
        (b'{"a":1,"crc":"00000000"}', "bad_checksum"),
        (b"\xff\xfe{}", "not_utf8"),
        (checked(b'{"a":"\xff"'), "not_utf8"),
        (checked(b'{"a":"\xed\xa0\x80"'), "not_utf8"),
        (checked(b"[1"), "not_json"),
        (checked(b'"a"'), "not_json"),
    ],
)
def test_a_line_that_holds_no_event_is_refused_with_its_reason(
    log: LocalLog, closed: Path, line: bytes, reason: str
) -> None:
    """The reason names the first thing that is wrong, for whoever reads the dead letter."""
    replace_line(closed, 1, line)
    got = content(log)
    assert (got.sequences, got.reasons) == ([0, 2, 3, 4, 5], [reason])
    assert got.rejects[0].payload == line


def test_the_torn_tail_of_a_dead_stream_is_recorded_once(log: LocalLog, closed: Path) -> None:
    """No writer is left to finish the line: its bytes are kept, and the position moves past them."""
    whole = closed.read_bytes()
    os.truncate(closed, len(whole) - 30)
    got = content(log)
    assert (got.sequences, got.reasons) == ([0, 1, 2, 3, 4], ["torn_tail"])
    assert got.rejects[0].payload == whole.split(b"\n")[5][: -30 + 1]
    assert got.positions == log.ends() == {"runs/run-1/main.0000.jsonl": len(whole) - 30}
    assert content(log, got.positions) == content(LocalLog(log.folder), got.positions)
    assert content(log, got.positions).rejects == []


def test_the_unfinished_tail_of_a_live_stream_is_left_until_it_is_finished(log: LocalLog, live: EventStream) -> None:
    """The writer holds the lock, so half a line is no defect: it is read when it is whole."""
    path = segment(log.folder, "run-1", "main")
    before = content(log).positions
    line = frame(codec.encode(live.record(BEAT)))
    with path.open("ab") as file:
        file.write(line[:50])
    got = content(log, before)
    assert (got.records, got.rejects, got.positions) == ([], [], before)
    assert log.ends() == before
    with path.open("ab") as file:
        file.write(line[50:])
    assert content(log, before).sequences == [5]


def test_the_tail_of_a_lost_stream_is_torn_although_its_lock_file_is_there(log: LocalLog, live: EventStream) -> None:
    """The lock is free, so the writer is gone, whether or not somebody has declared it."""
    path = segment(log.folder, live.header.run_id or "", "main")
    with path.open("ab") as file:
        file.write(b'{"half":')
    assert content(log).rejects == []
    log.close()
    assert path.with_name("main.lock").exists()
    got = content(log)
    assert (got.sequences, got.reasons) == ([0, 1, 2, 3, 4], ["torn_tail"])
    assert got.positions == log.ends()


def test_two_lines_glued_by_a_lost_line_end_are_one_bad_line(log: LocalLog, closed: Path) -> None:
    """The gap is two events wide; the lines around it are read."""
    data = closed.read_bytes()
    cut = data.index(b"\n", data.index(b"\n") + 1)
    closed.write_bytes(data[:cut] + b" " + data[cut + 1 :])
    got = content(log)
    assert (got.sequences, got.reasons) == ([0, 3, 4, 5], ["bad_checksum"])


def test_an_empty_segment_holds_nothing(log: LocalLog, closed: Path) -> None:
    """A writer can die between creating its segment and its first line."""
    closed.write_bytes(b"")
    assert (content(log).records, content(log).rejects, log.ends()) == ([], [], {})


def test_a_segment_full_of_garbage_is_rejected_to_its_end(log: LocalLog, closed: Path) -> None:
    """Not one byte of it passes, and not one is lost."""
    garbage = os.urandom(3 * MEBIBYTE)
    closed.write_bytes(garbage)
    got = content(log)
    assert got.records == []
    assert b"\n".join(reject.payload for reject in got.rejects) in {garbage, garbage[:-1]}
    assert got.positions == log.ends()


def test_files_that_are_no_segments_are_passed_over(log: LocalLog, closed: Path) -> None:
    """Notes, backups and stray files beside the segments, or in place of a folder, do no harm."""
    for name in ("main.jsonl", "main.0.jsonl", "main.0000.jsonl.bak", "notes.txt", ".0000.jsonl"):
        (closed.parent / name).write_text("hello\n", encoding="utf-8")
    (log.folder / "runs" / "stray").write_text("hello\n", encoding="utf-8")
    (log.folder / "runs" / "empty").mkdir()
    got = content(log)
    assert (got.sequences, got.rejects) == ([0, 1, 2, 3, 4, 5], [])


def test_a_segment_that_is_shorter_than_what_was_read_of_it_has_nothing_new(log: LocalLog, closed: Path) -> None:
    """A power cut can take back what was read before its fdatasync; its stream has no writer any more."""
    seen = content(log).positions
    os.truncate(closed, 10)
    got = content(log, seen)
    assert (got.records, got.rejects) == ([], [])


@given(data=st.data(), noise=st.binary(min_size=1, max_size=60), max_bytes=st.sampled_from([1, 900, MEBIBYTE]))
def test_every_byte_of_a_damaged_segment_is_an_event_or_a_reject(
    data: st.DataObject, noise: bytes, max_bytes: int
) -> None:
    """Whatever is written over a segment, reading accounts for all of it, in order, and never raises."""
    with tempfile.TemporaryDirectory() as folder:
        log = LocalLog.create(Path(folder) / "log")
        stream_in(log, "run-1", "main").close(*BEATS)
        path = segment(log.folder, "run-1", "main")
        whole = path.read_bytes()
        at = data.draw(st.integers(0, len(whole)))
        path.write_bytes(whole[:at] + noise + whole[at + data.draw(st.integers(0, 60)) :])
        chunks = list(log.read({}, max_bytes=max_bytes))
        pieces = [
            (offset, len(payload) + TAIL_BYTES)
            for chunk in chunks
            for offset, payload in zip(chunk.offsets, chunk.payloads, strict=True)
        ]
        pieces += [
            (reject.offset, len(reject.payload) + (reject.reason != "torn_tail"))
            for chunk in chunks
            for reject in chunk.rejects
        ]
        end = 0
        for offset, length in sorted(pieces):
            assert offset == end
            end += length
        assert end == path.stat().st_size == chunks[-1].next_offset


@pytest.mark.parametrize("text", [None, "", "{}", "[]", '{"format":1}', '{"format":1,"identity":"x"}', "\x00"])
def test_a_log_without_its_identity_is_refused(log: LocalLog, closed: Path, text: str | None) -> None:
    """Positions of another log must not be taken for this one's; a new identity is never made for old streams."""
    identity = log.folder / "identity.json"
    identity.unlink()
    if text is not None:
        identity.write_text(text, encoding="utf-8")
    assert closed.exists()
    with pytest.raises(LogCorruptError, match=r"identity\.json.*[Rr]estore"):
        LocalLog(log.folder).identity()
    if text is None:
        with pytest.raises(LogCorruptError, match=r"identity\.json.*Restore"):
            LocalLog.create(log.folder)


def test_a_log_of_a_later_format_is_refused(log: LocalLog) -> None:
    """The identity says how the folder is written."""
    path = log.folder / "identity.json"
    path.write_text(path.read_text(encoding="utf-8").replace('"format": 1', '"format": 2'), encoding="utf-8")
    with pytest.raises(LogCorruptError, match="format 2"):
        log.identity()
