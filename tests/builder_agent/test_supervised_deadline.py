"""The deadline is hard: whatever the building process does, it is gone by then, swept and recorded."""

import os
import signal
import time
from pathlib import Path

import pytest

from build_events.clock import NS_PER_MS, system_clock
from build_events.envelope import Recorded
from build_events.events import CancelRequested, CancelSignalled, PhaseStarted, ProcessExited, RunStarted
from builder_agent.supervised.ladder import Graces
from builder_agent.supervised.supervise import Mailbox, SupervisorSettings
from tests.builder_agent.supervised import Place, assert_in_order, children_of, seconds
from tests.models import chain_model, small_model
from tests.seeds import seeds

pytestmark = pytest.mark.quiet

LARGE = 1500  # layers: about 5 s of building, silent from 0.3 s on
BAR_NS = 250 * NS_PER_MS  # from the deadline to reaped, swept and recorded


def exit_of(place: Place, run_id: str) -> ProcessExited:
    """Return the run's one exit."""
    (record,) = place.logged(run_id, ProcessExited)
    assert isinstance(record.event, ProcessExited)
    return record.event


def test_a_deadline_inside_a_silence_climbs_the_ladder(tmp_path: Path) -> None:
    """Flag at half time, SIGTERM a second before the end: killed, exit 124, source ``ci``."""
    # A silence long enough that half the deadline lies inside it on a busy machine too.
    place = Place(tmp_path, chain_model(2 * LARGE))
    spec = place.spec(deadline_ns=seconds(5))
    result = place.build(spec)
    state = assert_in_order(place, result)
    assert (result.exit_code, state.run.outcome) == (124, "killed")
    assert state.cancellation is not None
    assert (state.cancellation.source, state.cancellation.deadline) == ("ci", True)
    exited = exit_of(place, result.run_id)
    assert (exited.signals_sent, exited.exit_code) == (["SIGTERM"], 143)
    (request,) = place.logged(result.run_id, CancelRequested)
    assert seconds(2.5) <= request.monotonic_ns - spec.command_started_monotonic_ns < seconds(3)
    assert len(place.logged(result.run_id, CancelSignalled)) == 1


@pytest.mark.fault
@pytest.mark.parametrize("seed", seeds())
def test_a_process_that_does_not_listen_is_gone_at_the_deadline(tmp_path: Path, seed: int) -> None:
    """Stopped dead, it gets SIGKILL at the deadline; reaped, swept and recorded within 250 ms."""
    place = Place(tmp_path, chain_model(LARGE))
    spec = place.spec(deadline_ns=seconds(2.5) + seed % 100 * NS_PER_MS)

    def stop_it(record: Recorded) -> None:
        if isinstance(record.event, PhaseStarted):
            for pid in children_of(os.getpid()):
                os.kill(pid, signal.SIGSTOP)

    result = place.build(spec, on_event=stop_it)
    ended_ns = time.monotonic_ns()
    state = assert_in_order(place, result)
    assert (result.exit_code, state.run.outcome) == (124, "killed")
    exited = exit_of(place, result.run_id)
    assert (exited.signals_sent, exited.signal) == (["SIGTERM", "SIGKILL"], "SIGKILL")
    assert spec.deadline_ns is not None
    late_ns = ended_ns - spec.command_started_monotonic_ns - spec.deadline_ns
    print(f"recorded {late_ns / NS_PER_MS:.1f} ms after the deadline")  # noqa: T201 # the measured bar
    assert 0 <= late_ns < BAR_NS


def test_a_disk_that_stands_still_does_not_delay_the_kill(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A SIGKILL that is due at once does not wait until the request that leads to it is durable."""
    place = Place(tmp_path, chain_model(LARGE))
    mailbox = Mailbox(clock=system_clock)
    sync, slow_ns = os.fdatasync, seconds(2)
    stopped: list[int] = []

    def slow_sync(descriptor: int) -> None:
        until_ns = time.monotonic_ns() + (slow_ns if stopped else 0)
        while time.monotonic_ns() < until_ns:
            time.sleep(0.01)
        sync(descriptor)

    def stop_and_ask(record: Recorded) -> None:
        if isinstance(record.event, PhaseStarted) and not stopped:
            stopped.extend(children_of(os.getpid()))
            for pid in stopped:
                os.kill(pid, signal.SIGSTOP)
            mailbox.request_cancel("service")

    monkeypatch.setattr(os, "fdatasync", slow_sync)
    settings = SupervisorSettings(graces=Graces(service_terminate_ns=0, kill_ns=0))
    result = place.build(on_event=stop_and_ask, mailbox=mailbox, settings=settings)
    state = assert_in_order(place, result)
    assert (result.exit_code, state.run.outcome) == (143, "killed")
    assert state.cancellation is not None
    assert state.cancellation.exited_ns is not None
    assert state.cancellation.exited_ns < slow_ns // 4
    (request,) = place.logged(result.run_id, CancelRequested)
    (exited,) = place.logged(result.run_id, ProcessExited)
    assert exited.monotonic_ns - request.monotonic_ns >= 0


def test_a_terminal_that_stands_still_does_not_delay_the_deadline(tmp_path: Path) -> None:
    """A callback that never returns holds up neither the kill nor the record."""
    place = Place(tmp_path, chain_model(LARGE))
    spec = place.spec(deadline_ns=seconds(2.5))
    released_ns: list[int] = []

    def stand_still(record: Recorded) -> None:
        if isinstance(record.event, RunStarted):
            while not place.logged(spec.run_id, ProcessExited):
                time.sleep(0.01)
            released_ns.append(time.monotonic_ns())

    result = place.build(spec, on_event=stand_still)
    assert result.exit_code == 124
    assert spec.deadline_ns is not None
    assert released_ns[0] - spec.command_started_monotonic_ns - spec.deadline_ns < BAR_NS


def test_a_deadline_before_the_run_began_leaves_nothing(tmp_path: Path) -> None:
    """Over before ``run.started``: exit 124, no run."""
    place = Place(tmp_path, small_model())
    result = place.build(place.spec(deadline_ns=20 * NS_PER_MS))
    assert (result.exit_code, result.state) == (124, None)
    assert place.runs_in_the_log() == []


def test_a_deadline_that_is_kept_changes_nothing(tmp_path: Path) -> None:
    """A build that ends in time is completed, with no request in its record."""
    place = Place(tmp_path, small_model())
    result = place.build(place.spec(deadline_ns=seconds(30)))
    state = assert_in_order(place, result)
    assert (result.exit_code, state.run.outcome, state.cancellation) == (0, "completed", None)
