"""Builds whose supervisor, or all of it, is killed by SIGKILL, and what the next start makes of them."""

import os
import random
import signal
import threading
import time
from pathlib import Path

import pytest

from build_events.clock import system_clock
from build_events.envelope import Recorded
from build_events.events import CleanupFinished, PhaseStarted, RetryPlanned, RunLost, RunStarted, StreamClosed
from build_events.local_log import SegmentTail
from builder_agent.recovery import RecoveredRun, recover
from tests.builder_agent.supervised import (
    OwnProcess,
    Place,
    assert_in_order,
    children_of,
    is_running,
    own_process,
    wait_until,
)
from tests.models import chain_model, small_model
from tests.seeds import moments, seeds

pytestmark = pytest.mark.quiet

MEDIUM = 250  # layers: about 0.5 s of building on two cores
LARGE = 1500  # about 5 s
GONE_WITHIN_S = 1.0  # the child after its supervisor


def kill_and_wait(pids: list[int], child: int) -> None:
    """Send SIGKILL and wait until the child is gone, a zombie counting as gone."""
    killed_at = time.monotonic()
    for pid in pids:
        os.kill(pid, signal.SIGKILL)
    wait_until(lambda: not is_running(child), "the child's end")
    assert time.monotonic() - killed_at < GONE_WITHIN_S


def acknowledged(place: Place, own: OwnProcess, stop: threading.Event, seen: list[Recorded]) -> threading.Thread:
    """Return a thread that follows the child's stream until told to stop: what it saw was acknowledged."""

    def follow() -> None:
        tail = SegmentTail(place.log, own.spec.run_id, own.spec.main_stream_id)
        while not stop.is_set():
            seen.extend(tail.poll())
            time.sleep(0.002)
        tail.close()

    thread = threading.Thread(target=follow)
    thread.start()
    return thread


def assert_lost(place: Place, run_id: str, recovered: list[RecoveredRun]) -> None:
    """Check what holds for every lost run after a start of its home."""
    assert [(run.run_id, run.lost) for run in recovered] == [(run_id, True)]
    state = place.state(run_id)
    assert state.run.outcome == "lost"
    assert not state.run.complete
    assert {phase.status for phase in state.phases} <= {"finished", "lost"}
    assert len(place.logged(run_id, RunLost)) == 1
    assert len(place.logged(run_id, CleanupFinished)) == 1
    assert len(place.logged(run_id, RetryPlanned)) == 1
    assert not list((place.log / "runs" / run_id).glob("*.lock"))
    assert not list((place.log / "supervisors").iterdir())
    assert not list(place.output.parent.glob(".*.enginetrail-tmp"))
    assert recover(place.log, clock=system_clock) == []


@pytest.mark.fault
@pytest.mark.parametrize("who", ["supervisor", "both"])
def test_killed_at_any_moment_a_build_is_lost_and_nothing_acknowledged_is_missing(tmp_path: Path, who: str) -> None:
    """The child is gone within a second; the next start says so and quarantines what is left."""
    model = chain_model(MEDIUM)
    whole_s = Place(tmp_path / "undisturbed", model).undisturbed_s()
    met_open = []
    for seed, after_s in moments(whole_s):
        print(f"seed {seed}: SIGKILL {after_s:.3f} s after run.started of about {whole_s:.3f} s")  # noqa: T201 # to repeat it
        met_open.append(_kill_after(after_s, Place(tmp_path / str(seed), model), who))
    # All but the last third of the moments, also where every other build is half as fast again as the measured one.
    assert sum(met_open) >= max(1, len(met_open) * 2 // 3 - 1), f"of {len(met_open)} kills, these met a run: {met_open}"


def _kill_after(after_s: float, place: Place, who: str) -> bool:
    """Kill a build that long after ``run.started``, check what the next start makes of it; say if it was open."""
    spec = place.spec()
    stop, seen = threading.Event(), list[Recorded]()
    with own_process(place, spec) as own:
        child = own.wait_for_start()
        follower = acknowledged(place, own, stop, seen)
        time.sleep(after_s)
        kill_and_wait([own.process.pid, *([child] if who == "both" and is_running(child) else [])], child)
        stop.set()
        follower.join()
        own.process.wait()
    closed = [record for record in place.logged(spec.run_id, StreamClosed) if record.stream.role == "main"]
    recovered = recover(place.log, clock=system_clock)
    stored = {record.event_id for record in place.logged(spec.run_id, object)}
    assert {record.event_id for record in seen} <= stored
    if closed:
        # The build had ended by itself before the kill: its own word stands.
        assert place.state(spec.run_id).run.outcome == "completed"
        assert recovered == []
    else:
        assert_lost(place, spec.run_id, recovered)
    return not closed


def test_a_live_build_is_never_declared_lost(tmp_path: Path) -> None:
    """Beside it, starts of the same home look for lost runs all the time, and find the one that is."""
    place = Place(tmp_path, chain_model(MEDIUM))
    lost = place.spec(output=str(place.folder / "out" / "lost.engine"))
    with own_process(place, lost) as own:
        child = own.wait_for_start()
        kill_and_wait([own.process.pid], child)
    stop, recovered = threading.Event(), list[RecoveredRun]()

    def check() -> None:
        while not stop.is_set():
            recovered.extend(recover(place.log, clock=system_clock))

    checker = threading.Thread(target=check)
    checker.start()
    try:
        result = place.build()
    finally:
        stop.set()
        checker.join()
    assert_in_order(place, result)
    assert [run.run_id for run in recovered] == [lost.run_id]


@pytest.mark.fault
def test_a_child_that_dies_under_a_live_supervisor_is_the_supervisors_to_declare(tmp_path: Path) -> None:
    """However soon a start looks, the run is crashed by its supervisor's word, and never lost."""
    stop, recovered = threading.Event(), list[RecoveredRun]()
    place = Place(tmp_path, chain_model(MEDIUM))

    def check() -> None:
        while not stop.is_set():
            recovered.extend(recover(place.log, clock=system_clock))

    def kill_child(record: Recorded) -> None:
        if isinstance(record.event, RunStarted | PhaseStarted):
            for pid in children_of(os.getpid()):
                os.kill(pid, signal.SIGKILL)

    place.spec()
    checker = threading.Thread(target=check)
    checker.start()
    try:
        results = [place.build(on_event=kill_child) for _ in seeds()]
    finally:
        stop.set()
        checker.join()
    assert recovered == []
    recover(place.log, clock=system_clock)  # a look that held a lock in the moment of its removal left the file
    for result in results:
        state = assert_in_order(place, result)
        assert (result.exit_code, state.run.outcome) == (1, "crashed")
        assert place.logged(result.run_id, RunLost) == []


@pytest.mark.fault
@pytest.mark.parametrize("seed", seeds())
def test_a_supervisor_killed_at_the_end_leaves_a_record_that_the_next_start_completes(
    tmp_path: Path, seed: int
) -> None:
    """The child dies first and the supervisor around the moment in which it records that."""
    place = Place(tmp_path, chain_model(LARGE))
    spec = place.spec()
    with own_process(place, spec) as own:
        child = own.wait_for_start()
        os.kill(child, signal.SIGKILL)
        end = time.monotonic() + random.Random(seed).uniform(0, 0.03)
        while time.monotonic() < end:
            pass
        own.process.kill()
        own.process.wait()
    recover(place.log, clock=system_clock)
    state = place.state(spec.run_id)
    assert state.run.outcome in {"crashed", "lost"}
    assert len(place.logged(spec.run_id, CleanupFinished)) == 1
    assert not list((place.log / "runs" / spec.run_id).glob("*.lock"))
    assert recover(place.log, clock=system_clock) == []


def test_healthy_builds_beside_a_start_are_left_alone(tmp_path: Path) -> None:
    """Short builds one after the other, and a start that looks for lost runs all the time: it finds none."""
    place = Place(tmp_path, small_model())
    stop, recovered = threading.Event(), list[RecoveredRun]()
    place.spec()

    def check() -> None:
        while not stop.is_set():
            recovered.extend(recover(place.log, clock=system_clock))

    checker = threading.Thread(target=check)
    checker.start()
    try:
        results = [place.build() for _ in seeds()]
    finally:
        stop.set()
        checker.join()
    assert recovered == []
    for result in results:
        assert assert_in_order(place, result).run.outcome == "completed"
