"""Who is alive, who is lost: judged by the locks of streams, with real processes."""

import os
import random
import time
from pathlib import Path

import pytest

from build_events.errors import LogUnavailableError
from build_events.events import RunLost
from build_events.local_log import LocalLog, is_locked, read_run, run_streams, unlocked_streams
from build_events.log import Reject
from tests.build_events.log_processes import BEAT, process, stream_in

PATIENCE_S = 60


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """An empty log."""
    return LocalLog.create(tmp_path / "log").folder


def found_lost(folder: Path) -> list[str]:
    """Return the streams that a start would declare lost now."""
    return [stream.stream_id for stream in unlocked_streams(folder)]


def test_no_short_healthy_stream_is_ever_found_lost(folder: Path) -> None:
    """400 runs, 800 streams, open and close beside a checker that looks all the time: none is lost."""
    with (
        process("short-streams", folder, "0") as one,
        process("short-streams", folder, "100") as two,
        process("short-streams", folder, "200") as three,
        process("short-streams", folder, "300") as four,
    ):
        writers = [one, two, three, four]
        log, seen, looks = LocalLog(folder), dict[str, int](), 0
        lost, torn = list[str](), list[Reject]()
        deadline = time.monotonic() + PATIENCE_S
        while any(writer.poll() is None for writer in writers) and time.monotonic() < deadline:
            lost += found_lost(folder)
            for chunk in log.read(seen, max_bytes=1 << 20):
                seen[chunk.source] = chunk.next_offset
                torn += chunk.rejects
            looks += 1
        assert [writer.wait(PATIENCE_S) for writer in writers] == [0, 0, 0, 0]
    assert (lost, torn) == ([], [])
    assert looks > 10
    assert list(folder.rglob("*.lock")) == []
    assert sum(len(run_streams(folder, f"run-{number}")) for number in range(400)) == 800


def test_a_killed_writers_stream_is_found_until_its_lock_is_removed(folder: Path) -> None:
    """Everything acknowledged before the kill is there; the stream is offered until it is declared."""
    with process("endless", folder, "run-1") as writer:
        assert writer.stdout is not None
        acknowledged = [int(writer.stdout.readline()) for _ in range(50)][-1]
        assert is_locked(folder, "run-1", "run-1-main")
        assert found_lost(folder) == []
        writer.kill()
        writer.wait(PATIENCE_S)
    assert not is_locked(folder, "run-1", "run-1-main")
    assert found_lost(folder) == found_lost(folder) == ["run-1-main"]
    for stream in unlocked_streams(folder):
        sequences = [record.sequence for record in stream.records]
        assert sequences == list(range(len(sequences)))
        assert sequences[-1] >= acknowledged
        assert (stream.run_id, stream.route, stream.role, stream.closed) == ("run-1", None, "main", False)
        observer = stream_in(LocalLog(folder), "run-1", "next-start", "observer")
        observer.close(RunLost(main_stream_id=stream.stream_id, last_sequence=sequences[-1]))
        stream.remove_lock()
    assert found_lost(folder) == []
    assert run_streams(folder, "run-1") == ["next-start", "run-1-main"]


@pytest.mark.fault
def test_whenever_a_writer_is_killed_all_it_acknowledged_is_there_and_its_loss_is_seen(folder: Path) -> None:
    """Killed at a random moment, a writer leaves at most one torn line, after everything acknowledged."""
    seed = time.time_ns()
    print(f"seed {seed}")  # noqa: T201 - to repeat a failure
    moments = random.Random(seed)
    for number in range(int(os.environ.get("ENGINETRAIL_REPEAT", "3"))):
        run_id = f"run-{number}"
        with process("endless", folder, run_id) as writer:
            assert writer.stdout is not None
            acknowledged = int(writer.stdout.readline())
            killed_at = time.monotonic() + moments.uniform(0, 0.1)
            while time.monotonic() < killed_at:
                acknowledged = int(writer.stdout.readline())
            writer.kill()
            writer.wait(PATIENCE_S)
        [stream] = unlocked_streams(folder)
        stream.remove_lock()
        sequences = [record.sequence for record in stream.records]
        assert sequences == list(range(len(sequences)))
        assert sequences[-1] >= acknowledged
    rejects = [reject for chunk in LocalLog(folder).read({}, max_bytes=1 << 20) for reject in chunk.rejects]
    assert {reject.reason for reject in rejects} <= {"torn_tail"}


def test_a_forked_child_does_not_keep_its_parents_stream_alive(folder: Path) -> None:
    """The child may not write to the stream, and may open its own, but it lets go of the lock."""
    with process("forked", folder, "run-1") as parent:
        assert parent.stdout is not None
        assert parent.wait(PATIENCE_S) == 0
        assert parent.stdout.readline() == "refused\n"  # so the child still lives
        assert found_lost(folder) == ["run-1-main"]
        assert run_streams(folder, "run-1") == ["run-1-child", "run-1-main"]


def test_an_abandoned_stream_is_held_while_its_end_is_declared(folder: Path) -> None:
    """A second process that looks meanwhile does not get the same stream."""
    log = LocalLog(folder)
    stream_in(log, "run-1", "main").append(BEAT)
    log.close()
    for stream in unlocked_streams(folder):
        assert stream.stream_id == "main"
        assert is_locked(folder, "run-1", "main")
        assert found_lost(folder) == []
    assert not is_locked(folder, "run-1", "main")


def test_the_leftover_lock_of_a_closed_stream_is_removed_in_passing(folder: Path) -> None:
    """A writer that died after its last event and before removing its lock has lost nothing."""
    stream_in(LocalLog(folder), "run-1", "main").close(BEAT)
    lock = folder / "runs" / "run-1" / "main.lock"
    lock.touch()
    assert found_lost(folder) == []
    assert not lock.exists()


def test_a_writer_that_died_before_its_first_event_left_a_stream_without_a_role(folder: Path) -> None:
    """The lock comes first: nothing is known of such a stream but its place."""
    lock = folder / "runs" / "run-1" / "main.lock"
    lock.parent.mkdir()
    lock.touch()
    [stream] = unlocked_streams(folder)
    assert (stream.stream_id, stream.run_id, stream.role, stream.records) == ("main", "run-1", None, [])


def test_a_route_stream_can_be_abandoned_too(folder: Path) -> None:
    """Its route is known from its place in the log."""
    lock = folder / "routes" / "resnet50%2Ffp16%2Fsm89" / "decisions.lock"
    lock.parent.mkdir()
    lock.touch()
    [stream] = unlocked_streams(folder)
    assert (stream.run_id, stream.route) == (None, "resnet50/fp16/sm89")


def test_a_stream_has_one_writer(folder: Path) -> None:
    """A second writer under the same stream id is refused while the first one lives, and after its loss."""
    first, second = LocalLog(folder), LocalLog(folder)
    stream_in(first, "run-1", "main").append(BEAT)
    with pytest.raises(LogUnavailableError, match=r"main\.lock.*new id"):
        stream_in(second, "run-1", "main").append(BEAT)
    first.close()
    with pytest.raises(LogUnavailableError, match=r"main\.lock.*new id"):
        stream_in(second, "run-1", "main").append(BEAT)
    assert len(read_run(folder, "run-1")) == 1


def test_looking_for_lost_streams_of_no_log_finds_none(tmp_path: Path) -> None:
    """A first start has no log yet."""
    assert list(unlocked_streams(tmp_path / "absent")) == []
    assert not is_locked(tmp_path / "absent", "run-1", "main")
    assert (run_streams(tmp_path / "absent", "run-1"), read_run(tmp_path / "absent", "run-1")) == ([], [])
