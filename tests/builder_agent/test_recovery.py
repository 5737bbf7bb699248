"""What a start does with the runs of writers that are gone: declared once, their files in order."""

import hashlib
import random
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from pathlib import Path

import pytest

from build_events import ids
from build_events.clock import boot_id, system_clock
from build_events.envelope import StreamHeader, StreamRole
from build_events.events import (
    ArtifactPublished,
    ArtifactPublishing,
    ArtifactQuarantined,
    CleanupFinished,
    Event,
    HeartbeatRecorded,
    ProcessExited,
    RunFinished,
    RunLost,
    RunStarted,
)
from build_events.local_log import LocalLog
from build_events.stream import EventStream
from builder_agent.files.output_folder import quarantine, quarantine_folder, temp_path
from builder_agent.recovery import recover
from tests.builder_agent.supervised import Place, wait_until
from tests.seeds import seeds

ENGINE = b"an engine" * 1000
DIGEST = hashlib.sha256(ENGINE).hexdigest()


def started(place: Place, run_id: str) -> RunStarted:
    """Return the event that opens a run in the place."""
    return RunStarted(
        route="r/fp32/sm89",
        build_id=run_id,
        mode="embedded",
        output=str(place.output),
        lease_ns=1,
        heartbeat_interval_ns=1,
        host="here",
        pid=1,
        agent_version="0",
    )


def leave(place: Place, run_id: str, events: Sequence[Event], *, role: StreamRole = "main") -> str:
    """Write a stream as a writer does that is then killed, and return its id."""
    place.spec()
    header = StreamHeader(
        stream_id=ids.random_id(), role=role, run_id=run_id, source="enginetrail/test", boot_id=boot_id()
    )
    log = LocalLog.create(place.log)
    EventStream(header, log, clock=system_clock).append(*events)
    log.close()
    return header.stream_id


def publishing(place: Place, run_id: str) -> ArtifactPublishing:
    """Return the announcement of a rename."""
    return ArtifactPublishing(
        temp=str(temp_path(place.output, run_id)), target=str(place.output), sha256=DIGEST, size_bytes=len(ENGINE)
    )


def one(place: Place, run_id: str, cls: type[Event]) -> Event:
    """Return the run's only stored event of a type."""
    (record,) = place.logged(run_id, cls)
    assert isinstance(record.event, Event)
    return record.event


def test_a_torn_temporary_file_is_quarantined(tmp_path: Path) -> None:
    """What the run was writing lies in quarantine, with its size, and the old engine is untouched."""
    place = Place(tmp_path)
    leave(place, "run-1", [started(place, "run-1")])
    place.output.write_bytes(b"the engine before")
    temp_path(place.output, "run-1").write_bytes(ENGINE[:100])
    (run,) = recover(place.log, clock=system_clock)
    assert run.lost
    assert [Path(path).read_bytes() for path in run.quarantined] == [ENGINE[:100]]
    assert place.output.read_bytes() == b"the engine before"
    assert one(place, "run-1", CleanupFinished) == CleanupFinished(status="quarantined", by="next_start")
    assert place.state("run-1").run.outcome == "lost"


def test_a_file_that_was_about_to_be_published_is_quarantined(tmp_path: Path) -> None:
    """Complete, but not renamed: no verdict covers it, so it is moved, and its digest is kept."""
    place = Place(tmp_path)
    leave(place, "run-1", [started(place, "run-1"), publishing(place, "run-1")])
    temp_path(place.output, "run-1").write_bytes(ENGINE)
    recover(place.log, clock=system_clock)
    moved = one(place, "run-1", ArtifactQuarantined)
    assert isinstance(moved, ArtifactQuarantined)
    assert moved.sha256 == DIGEST
    assert place.logged("run-1", ArtifactPublished) == []


def test_an_engine_that_was_renamed_is_recorded_and_left(tmp_path: Path) -> None:
    """The target has the digest that was announced: published, by the sweep; it counts for no gate."""
    place = Place(tmp_path)
    leave(place, "run-1", [started(place, "run-1"), publishing(place, "run-1")])
    place.output.write_bytes(ENGINE)
    recover(place.log, clock=system_clock)
    published = one(place, "run-1", ArtifactPublished)
    assert isinstance(published, ArtifactPublished)
    assert (published.by, published.sha256) == ("sweep", DIGEST)
    assert place.output.read_bytes() == ENGINE
    state = place.state("run-1")
    assert (state.run.outcome, state.run.artifact_sha256) == ("lost", None)


def test_another_engine_at_the_target_is_nobodys_of_this_run(tmp_path: Path) -> None:
    """A target of another digest is neither claimed nor touched."""
    place = Place(tmp_path)
    leave(place, "run-1", [started(place, "run-1"), publishing(place, "run-1")])
    place.output.write_bytes(ENGINE[::-1])
    recover(place.log, clock=system_clock)
    assert place.logged("run-1", ArtifactPublished) == []
    assert place.output.read_bytes() == ENGINE[::-1]


def test_what_an_earlier_start_moved_without_recording_it_is_recorded(tmp_path: Path) -> None:
    """A start that died between the move and its record leaves a file in quarantine: the next one names it."""
    place = Place(tmp_path)
    leave(place, "run-1", [started(place, "run-1")])
    temp = temp_path(place.output, "run-1")
    temp.write_bytes(ENGINE)
    moved = quarantine(temp, place.output, "run-1", "a start that dies now")
    recover(place.log, clock=system_clock)
    recorded = one(place, "run-1", ArtifactQuarantined)
    assert isinstance(recorded, ArtifactQuarantined)
    assert recorded.quarantine == moved.quarantine
    assert [path.name for path in quarantine_folder(place.output, "run-1").iterdir()] == [temp.name]


def test_a_run_without_files_leaves_no_quarantine(tmp_path: Path) -> None:
    """Nothing to move: cleaned, and no folder is made for it."""
    place = Place(tmp_path)
    leave(place, "run-1", [started(place, "run-1")])
    recover(place.log, clock=system_clock)
    assert one(place, "run-1", CleanupFinished) == CleanupFinished(status="cleaned", by="next_start")
    assert place.beside_the_output(locks=True) == []


def test_an_output_folder_that_is_gone_is_said(tmp_path: Path) -> None:
    """The run is declared lost all the same."""
    place = Place(tmp_path)
    leave(place, "run-1", [started(place, "run-1")])
    place.output.parent.rmdir()
    (run,) = recover(place.log, clock=system_clock)
    assert run.lost
    assert place.state("run-1").run.outcome == "lost"


def test_an_end_that_the_supervisor_recorded_is_not_a_loss(tmp_path: Path) -> None:
    """With ``process.exited`` in the log only what is missing is done: the sweep, and the lock."""
    place = Place(tmp_path)
    main = leave(place, "run-1", [started(place, "run-1")])
    temp_path(place.output, "run-1").write_bytes(ENGINE)
    leave(place, "run-1", [ProcessExited(main_stream_id=main, pid=1, last_sequence=0)], role="observer")
    (run,) = recover(place.log, clock=system_clock)
    assert (run.lost, len(run.quarantined)) == (False, 1)
    assert place.state("run-1").run.outcome == "crashed"
    assert place.logged("run-1", RunLost) == []
    assert recover(place.log, clock=system_clock) == []


def test_a_run_that_told_its_end_keeps_it(tmp_path: Path) -> None:
    """Killed after ``run.finished``, before the stream was closed: the outcome is the run's own word."""
    place = Place(tmp_path)
    end = [CleanupFinished(status="cleaned", by="build"), RunFinished(outcome="failed", duration_ns=1)]
    leave(place, "run-1", [started(place, "run-1"), *end])
    (run,) = recover(place.log, clock=system_clock)
    assert run.lost
    state = place.state("run-1")
    assert (state.run.outcome, state.run.complete) == ("failed", False)


def test_an_abandoned_observer_only_loses_its_lock(tmp_path: Path) -> None:
    """It says nothing about the run, whose own stream is closed."""
    place = Place(tmp_path)
    leave(place, "run-1", [HeartbeatRecorded(cancel_state="none")], role="observer")
    assert recover(place.log, clock=system_clock) == []
    assert not list((place.log / "runs" / "run-1").glob("*.lock"))


def test_a_log_that_does_not_exist_has_nothing_to_recover(tmp_path: Path) -> None:
    """The first start of a home finds nothing, and makes nothing."""
    assert recover(tmp_path / "log", clock=system_clock) == []
    assert not (tmp_path / "log").exists()


def test_of_many_starts_at_once_one_declares_each_loss(tmp_path: Path) -> None:
    """However many look at the same time, there is one ``run.lost`` for each run."""
    place = Place(tmp_path)
    runs = [f"run-{number}" for number in range(20)]
    for run_id in runs:
        leave(place, run_id, [started(place, run_id)])
        temp_path(place.output, run_id).write_bytes(ENGINE)
    found: list[str] = []
    barrier = threading.Barrier(4)

    def start() -> None:
        barrier.wait()
        found.extend(run.run_id for run in recover(place.log, clock=system_clock))

    starts = [threading.Thread(target=start) for _ in range(4)]
    for thread in starts:
        thread.start()
    for thread in starts:
        thread.join()
    assert sorted(found) == sorted(runs)
    for run_id in runs:
        assert len(place.logged(run_id, RunLost)) == 1
        assert len(place.logged(run_id, ArtifactQuarantined)) == 1


@pytest.mark.fault
@pytest.mark.parametrize("seed", seeds())
def test_a_start_that_is_killed_is_completed_by_the_next(tmp_path: Path, seed: int) -> None:
    """Killed at a random moment, a start leaves nothing undone and nothing done twice."""
    place = Place(tmp_path)
    runs = [f"run-{number}" for number in range(40)]
    for run_id in runs:
        leave(place, run_id, [started(place, run_id)])
        temp_path(place.output, run_id).write_bytes(ENGINE)
    code = (
        "import sys, pathlib; from build_events.clock import system_clock; from builder_agent.recovery import recover; "
    )
    code += "print(flush=True); recover(pathlib.Path(sys.argv[1]), clock=system_clock)"
    with subprocess.Popen([sys.executable, "-c", code, str(place.log)], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        time.sleep(random.Random(seed).uniform(0, 0.2))
        process.kill()
    wait_until(lambda: process.poll() is not None, "the start's end")
    recover(place.log, clock=system_clock)
    for run_id in runs:
        assert len(place.logged(run_id, RunLost)) == 1
        assert len({str(record.event) for record in place.logged(run_id, ArtifactQuarantined)}) == 1
        assert place.logged(run_id, CleanupFinished)
        assert not list((place.log / "runs" / run_id).glob("*.lock"))
    assert recover(place.log, clock=system_clock) == []
