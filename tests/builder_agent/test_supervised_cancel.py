"""Supervised builds that somebody asks to stop, at any moment and in every way."""

import contextlib
import os
import random
import signal
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from build_events.clock import NS_PER_MS, system_clock
from build_events.envelope import Recorded
from build_events.events import (
    BuilderReturned,
    CancelRequested,
    PhaseFinished,
    PhaseStarted,
    ProcessExited,
    RunFinished,
    RunStarted,
)
from builder_agent.supervised.ladder import Graces
from builder_agent.supervised.supervise import Mailbox, SupervisorSettings
from builder_agent.supervisor_lock import is_supervised
from tests.builder_agent.supervised import Place, assert_in_order, children_of, seconds, wait_until
from tests.models import chain_model, small_model
from tests.seeds import moments, seeds

MEDIUM = 250  # layers: about 0.5 s of building on two cores
LARGE = 1000  # about 2.8 s, nearly all of it in one silence
SURELY_NS = 50 * NS_PER_MS  # a press this long before run.finished is noted before the exit
COMPILE = "Determining refit engines"  # the phase of the long silence


def interrupt() -> None:
    """Press Ctrl-C."""
    os.kill(os.getpid(), signal.SIGINT)


@pytest.fixture(autouse=True)
def _a_press_after_the_build_is_harmless() -> Iterator[None]:
    before = signal.signal(signal.SIGINT, lambda _number, _frame: None)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.fault
@pytest.mark.quiet
def test_ctrl_c_at_any_moment_ends_the_run_in_order(tmp_path: Path) -> None:
    """Cancelled or completed despite it; no partial file, every latency, nothing incomplete."""
    model = chain_model(MEDIUM)
    whole_s = Place(tmp_path / "undisturbed", model).undisturbed_s()
    landed = []
    for seed, after_s in moments(whole_s):
        print(f"seed {seed}: Ctrl-C {after_s:.3f} s after run.started of about {whole_s:.3f} s")  # noqa: T201 # to repeat it
        landed.append(_press_after(after_s, Place(tmp_path / str(seed), model)))
    assert any(landed), "no Ctrl-C came before its build had finished"


def _press_after(after_s: float, place: Place) -> bool:
    """Build, press that long after ``run.started``, check the end, and say whether the press was in time."""
    pressed_ns: list[int] = []

    def press() -> None:
        pressed_ns.append(time.monotonic_ns())
        interrupt()

    pressed = threading.Timer(after_s, press)

    def at_start(record: Recorded) -> None:
        if isinstance(record.event, RunStarted):
            pressed.start()

    result = place.build(on_event=at_start)
    pressed.cancel()
    pressed.join()
    state = assert_in_order(place, result)
    (finished,) = place.logged(result.run_id, RunFinished)
    in_time = bool(pressed_ns) and pressed_ns[0] + SURELY_NS < finished.monotonic_ns
    requests = place.logged(result.run_id, CancelRequested)
    if in_time:
        assert state.run.outcome in {"cancelled", "completed_despite_cancel"}
        assert len(requests) == 1
    if requests:
        assert state.cancellation is not None
        assert state.cancellation.source == "ctrl_c"
    else:
        assert state.run.outcome == "completed"
    assert result.exit_code == (130 if state.run.outcome == "cancelled" else 0)
    assert place.beside_the_output() == ([] if state.run.outcome == "cancelled" else ["model.engine"])
    return in_time


def test_a_burst_of_a_thousand_ctrl_c_is_one_request(tmp_path: Path) -> None:
    """A thousand SIGINTs neither hang nor crash the supervisor, and are recorded once."""
    place = Place(tmp_path, chain_model(MEDIUM))

    def burst(record: Recorded) -> None:
        if isinstance(record.event, PhaseStarted) and record.event.name == COMPILE:
            for _ in range(1000):
                interrupt()

    settings = SupervisorSettings(graces=Graces(insist_ns=seconds(60)))
    result = place.build(on_event=burst, settings=settings)
    state = assert_in_order(place, result)
    assert (result.exit_code, state.run.outcome) == (130, "cancelled")
    assert len(place.logged(result.run_id, CancelRequested)) == 1
    (exited,) = place.logged(result.run_id, ProcessExited)
    assert isinstance(exited.event, ProcessExited)
    assert exited.event.signals_sent == []


def test_ctrl_c_says_what_it_waits_for(tmp_path: Path) -> None:
    """The person is told the open phase, and that another Ctrl-C ends the build now."""
    place = Place(tmp_path, chain_model(MEDIUM))

    def press(record: Recorded) -> None:
        if isinstance(record.event, PhaseStarted) and record.event.name == COMPILE:
            interrupt()

    place.build(on_event=press)
    waiting = f"waiting for the builder's next checkpoint, phase {COMPILE}; Ctrl-C again ends it now"
    assert waiting in place.messages


def test_a_second_ctrl_c_ends_a_silent_build(tmp_path: Path) -> None:
    """More than a second after the first, Ctrl-C sends SIGTERM: killed, swept, exit 130."""
    place = Place(tmp_path, chain_model(LARGE))
    settings = SupervisorSettings(graces=Graces(insist_ns=200 * NS_PER_MS))
    timers: list[threading.Timer] = []

    def press_twice(record: Recorded) -> None:
        if isinstance(record.event, PhaseStarted) and record.event.name == COMPILE:
            for after_s in (0, 0.3):
                timers.append(threading.Timer(after_s, interrupt))
                timers[-1].start()

    result = place.build(on_event=press_twice, settings=settings)
    for timer in timers:
        timer.join()
    state = assert_in_order(place, result)
    assert (result.exit_code, state.run.outcome) == (130, "killed")
    (exited,) = place.logged(result.run_id, ProcessExited)
    assert isinstance(exited.event, ProcessExited)
    assert (exited.event.signals_sent, exited.event.exit_code) == (["SIGTERM"], 143)
    assert state.phases[-1].status == "killed"


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_stopped_service_asks_first(tmp_path: Path, number: signal.Signals) -> None:
    """SIGTERM or SIGHUP to the supervisor cancels the build with source ``service``: exit 143."""
    place = Place(tmp_path, chain_model(MEDIUM))

    def stop(record: Recorded) -> None:
        if isinstance(record.event, PhaseStarted) and record.event.name == COMPILE:
            os.kill(os.getpid(), number)

    result = place.build(on_event=stop)
    state = assert_in_order(place, result)
    assert (result.exit_code, state.run.outcome) == (143, "cancelled")
    assert state.cancellation is not None
    assert state.cancellation.source == "service"


def test_a_stopped_service_is_ended_by_the_ladder_where_the_builder_stays_silent(tmp_path: Path) -> None:
    """Without a checkpoint within the grace, SIGTERM and then the sweep: killed, exit 143."""
    place = Place(tmp_path, chain_model(LARGE))
    settings = SupervisorSettings(graces=Graces(service_terminate_ns=200 * NS_PER_MS))

    def stop(record: Recorded) -> None:
        if isinstance(record.event, PhaseStarted) and record.event.name == COMPILE:
            os.kill(os.getpid(), signal.SIGTERM)

    result = place.build(on_event=stop, settings=settings)
    state = assert_in_order(place, result)
    assert (result.exit_code, state.run.outcome) == (143, "killed")


def test_any_thread_can_ask(tmp_path: Path) -> None:
    """A request through the mailbox is recorded with its source and reason."""
    place = Place(tmp_path, chain_model(MEDIUM))
    mailbox = Mailbox(clock=system_clock)

    def ask(record: Recorded) -> None:
        if isinstance(record.event, RunStarted):
            mailbox.request_cancel("ide", reason="the editor stops the task")

    result = place.build(on_event=ask, mailbox=mailbox)
    state = assert_in_order(place, result)
    assert (result.exit_code, state.run.outcome) == (130, "cancelled")
    (request,) = place.logged(result.run_id, CancelRequested)
    assert isinstance(request.event, CancelRequested)
    assert (request.event.source, request.event.reason) == ("ide", "the editor stops the task")


def test_ctrl_c_before_the_run_leaves_nothing(tmp_path: Path) -> None:
    """Pressed before ``run.started``, the command exits 130 and there is no run and no file."""
    place = Place(tmp_path, small_model())
    mailbox = Mailbox(clock=system_clock)
    mailbox.request_cancel("ctrl_c")
    result = place.build(mailbox=mailbox)
    assert (result.exit_code, result.state) == (130, None)
    assert place.events == []
    assert place.runs_in_the_log() == []
    assert not list((place.log / "supervisors").iterdir())
    assert place.beside_the_output(locks=True) == []


@pytest.mark.fault
@pytest.mark.quiet
@pytest.mark.parametrize("seed", seeds())
def test_ctrl_c_around_the_start_gives_a_whole_run_or_none(tmp_path: Path, seed: int) -> None:
    """Whichever side of ``run.started`` the request falls on, it is recorded with its own time, or nothing is."""
    place = Place(tmp_path, small_model())
    pressed_at: list[int] = []

    def press() -> None:
        pressed_at.append(time.monotonic_ns())
        interrupt()

    pressed = threading.Timer(random.Random(seed).uniform(0.02, 0.35), press)
    pressed.start()
    result = place.build()
    pressed.join()
    if result.state is None:
        assert result.exit_code == 130
        assert place.runs_in_the_log() == []
        return
    assert_in_order(place, result)
    requests = place.logged(result.run_id, CancelRequested)
    for request in requests:
        assert 0 <= request.monotonic_ns - pressed_at[0] < seconds(0.1)


def test_ctrl_c_between_the_end_of_the_run_and_the_exit_is_recorded(tmp_path: Path) -> None:
    """The engine is kept: completed despite the request, exit 0."""
    settings = SupervisorSettings(poll_ns=NS_PER_MS)
    for number in range(30):
        place = Place(tmp_path / str(number), small_model())

        held: list[int] = []  # known from the start: to look for them at the end takes as long as the moment lasts

        def hold_and_press(record: Recorded, held: list[int] = held) -> None:
            if isinstance(record.event, RunStarted):
                held.extend(children_of(os.getpid()))
            elif isinstance(record.event, RunFinished):
                with contextlib.suppress(ProcessLookupError):  # not met: it has ended
                    for pid in held:
                        os.kill(pid, signal.SIGSTOP)
                    interrupt()
                    for pid in held:
                        os.kill(pid, signal.SIGCONT)

        result = place.build(on_event=hold_and_press, settings=settings)
        state = assert_in_order(place, result)
        assert result.exit_code == 0
        if state.run.outcome == "completed_despite_cancel":
            return
    pytest.fail("in 30 builds the child was never met between its run.finished and its exit")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_while_the_end_is_told_changes_nothing(tmp_path: Path, number: signal.Signals) -> None:
    """The build is over and the engine published: the caller hears of it, whatever comes now."""
    place = Place(tmp_path, small_model())
    spec = place.spec()
    told: list[Recorded] = []

    def ignorable(_number: int, _frame: object) -> None:
        pytest.fail("the caller's own handler ran before the end was told")

    def press_when_all_is_recorded(record: Recorded) -> None:
        if isinstance(record.event, ProcessExited):
            wait_until(lambda: not is_supervised(place.log, spec.run_id), "the end of the supervision")
            for _ in range(20):
                os.kill(os.getpid(), number)
                time.sleep(0.002)
        told.append(record)

    before = signal.signal(number, ignorable)
    try:
        result = place.build(spec, on_event=press_when_all_is_recorded)
    finally:
        signal.signal(number, before)
    state = assert_in_order(place, result)
    assert (result.exit_code, state.run.outcome) == (0, "completed")
    assert any(isinstance(record.event, ProcessExited) for record in told)


def test_the_signal_handlers_are_given_back(tmp_path: Path) -> None:
    """After the build, SIGINT, SIGTERM and SIGHUP do again what they did before."""
    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    before = [signal.getsignal(number) for number in numbers]
    Place(tmp_path, small_model()).build()
    assert [signal.getsignal(number) for number in numbers] == before


@pytest.mark.quiet
def test_a_late_engine_can_be_unwanted(tmp_path: Path) -> None:
    """With ``discard_late``, an engine that comes after the request is not published: cancelled, exit 130."""

    def press_after_the_last_checkpoint(record: Recorded) -> None:
        if isinstance(record.event, PhaseFinished) and record.event.parent_id is None:
            interrupt()

    for number in range(20):
        place = Place(tmp_path / str(number), chain_model(MEDIUM))
        result = place.build(place.spec(discard_late=True), on_event=press_after_the_last_checkpoint)
        state = assert_in_order(place, result)
        (returned,) = place.logged(result.run_id, BuilderReturned)
        assert isinstance(returned.event, BuilderReturned)
        if returned.event.engine and state.run.outcome == "cancelled":
            assert result.exit_code == 130
            return
    pytest.fail("in 20 builds no request fell between the last checkpoint and the publishing")
