from pathlib import Path

import pytest

from build_events import codec
from build_events.envelope import Recorded
from build_events.local_log import LocalLog, SegmentTail
from build_events.local_log.lines import frame
from tests.build_events.log_files import replace_line, segment
from tests.build_events.log_processes import BEAT, process, stream_in


@pytest.fixture
def log(tmp_path: Path) -> LocalLog:
    """An empty log whose segments hold about three events."""
    return LocalLog.create(tmp_path / "log", segment_bytes=1_000)


def test_a_tail_may_be_opened_before_its_stream(log: LocalLog) -> None:
    """The supervisor looks before the child has written anything."""
    tail = SegmentTail(log.folder, "run-1", "main")
    assert tail.poll() == tail.poll() == []
    written = stream_in(log, "run-1", "main").append(BEAT)
    assert tail.poll() == written
    assert tail.poll() == []
    tail.close()


def test_a_tail_follows_a_stream_through_its_segments(log: LocalLog) -> None:
    """Every record is returned once and in order, however many segments lie between two polls."""
    stream, tail = stream_in(log, "run-1", "main"), SegmentTail(log.folder, "run-1", "main")
    written, got = [], []
    for size in (1, 2, 3, 5, 8, 13):
        for _ in range(size):
            written += stream.append(BEAT)
        got += tail.poll()
        assert got == written
    written += stream.close()
    assert got + tail.poll() == written
    assert segment(log.folder, "run-1", "main", 5).exists()
    tail.close()


def test_half_a_line_is_returned_when_it_is_whole(log: LocalLog) -> None:
    """A poll can come in the middle of a write."""
    stream, tail = stream_in(log, "run-1", "main"), SegmentTail(log.folder, "run-1", "main")
    stream.append(BEAT)
    tail.poll()
    record = stream.record(BEAT)
    line = frame(codec.encode(record))
    got: list[Recorded] = []
    with segment(log.folder, "run-1", "main").open("ab", buffering=0) as file:
        for start in range(0, len(line), 50):
            assert got == []
            file.write(line[start : start + 50])
            got += tail.poll()
    assert got == [record]
    tail.close()


def test_a_half_line_that_a_later_segment_follows_is_given_up(log: LocalLog) -> None:
    """The writer never comes back to a segment that it left."""
    stream, tail = stream_in(log, "run-1", "main"), SegmentTail(log.folder, "run-1", "main")
    written = stream.append(BEAT, BEAT, BEAT)
    with segment(log.folder, "run-1", "main").open("ab") as file:
        file.write(b'{"half":')
    assert tail.poll() == written
    following = stream.append(BEAT)
    assert segment(log.folder, "run-1", "main", 1).exists()
    assert tail.poll() == following
    tail.close()


def test_a_bad_line_does_not_stop_a_tail(log: LocalLog) -> None:
    """What holds no event is for the collector to record; the lines after it are returned."""
    written = stream_in(log, "run-1", "main").append(BEAT, BEAT, BEAT)
    replace_line(segment(log.folder, "run-1", "main"), 1, b"garbage")
    tail = SegmentTail(log.folder, "run-1", "main")
    assert tail.poll() == [written[0], written[2]]
    tail.close()


def test_a_tail_gives_the_rest_after_the_writer_was_killed(log: LocalLog) -> None:
    """After the kill one poll gives everything acknowledged that the polls before did not."""
    with process("endless", log.folder, "run-1") as writer:
        assert writer.stdout is not None
        tail = SegmentTail(log.folder, "run-1", "run-1-main")
        got, acknowledged = [], -1
        while acknowledged < 200:
            acknowledged = int(writer.stdout.readline())
            got += tail.poll()
        writer.kill()
        writer.wait(60)
    got += tail.poll()
    sequences = [record.sequence for record in got]
    assert sequences == list(range(len(sequences)))
    assert sequences[-1] >= acknowledged
    tail.close()
