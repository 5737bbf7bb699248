"""From the build to the log: order, drops, a log that fails or hangs, and forks."""

import logging
import os
import threading
from collections.abc import Callable, Sequence

import pytest

from build_events import fold
from build_events.clock import NS_PER_MS, NS_PER_S, Clock, Instant, system_clock
from build_events.envelope import Recorded, StreamHeader
from build_events.errors import LogUnavailableError
from build_events.events import CancelState as CancelLevel
from build_events.events import (
    ErrorRecorded,
    HeartbeatRecorded,
    PhaseFinished,
    PhaseProgressed,
    PhaseStarted,
    ProcessObserved,
    RunFinished,
    RunStarted,
    StreamClosed,
)
from build_events.log import EventWriter, InMemoryEventLog
from build_events.stream import EventStream
from builder_agent.recording.delivery import Delivery
from builder_agent.recording.phases import FINISH, START, STEP, PhaseTracker
from builder_agent.settings import DeliverySettings
from tests.builder_agent.builds import of_type, records
from tests.waiting import until

RUN = "run-1"
FIRST = RunStarted(
    route="r", build_id=RUN, mode="embedded", output="/o", lease_ns=1, heartbeat_interval_ns=1, host="h", pid=1,
    agent_version="0",
)  # fmt: skip
DONE = RunFinished(outcome="completed", duration_ns=1)


class FaultyLog:
    """The in-memory log on a disk that fails or hangs when the test says so."""

    def __init__(self) -> None:
        self.memory = InMemoryEventLog()
        self.full = False
        self.error: Exception = LogUnavailableError("disk full")
        self.stuck = threading.Event()
        self.stuck.set()  # not stuck

    def append(self, records: Sequence[Recorded]) -> None:
        """Store, fail or hang."""
        assert self.stuck.wait(30)
        if self.full:
            raise self.error
        self.memory.append(records)


def observed() -> ProcessObserved:
    """Return a sample of the process."""
    return ProcessObserved(moment="during", pid=1, rss_bytes=1, cpu_ns=1, threads=1, open_files=1)


def deliver(
    log: EventWriter,
    *,
    clock: Clock = system_clock,
    sample: Callable[[], ProcessObserved] = observed,
    cancel_level: Callable[[], CancelLevel] = lambda: "none",
    lost_callbacks: Callable[[], int] = lambda: 0,
    **settings: int,
) -> Delivery:
    """Return a started delivery into ``log``."""
    header = StreamHeader(stream_id="s-1", role="main", run_id=RUN, source="test", boot_id="boot")
    made = DeliverySettings(**{"batch_interval_ns": NS_PER_MS, "retry_interval_ns": NS_PER_MS, **settings})
    delivery = Delivery(
        EventStream(header, log, clock=clock),
        log,
        clock=clock,
        tracker=PhaseTracker(RUN, made.progress_interval_ns),
        sample=sample,
        cancel_level=cancel_level,
        lost_callbacks=lost_callbacks,
        settings=made,
    )
    delivery.start(FIRST, clock())
    return delivery


def note(text: str) -> ErrorRecorded:
    """Return an event that is told apart by its text."""
    return ErrorRecorded(component="agent", message=text)


def step(number: int, at_ns: int) -> tuple[str, int, int, bool, bool, str, int, None]:
    """Return the raw callback of a step."""
    return (STEP, at_ns, 1, False, False, "Root", number, None)


def test_events_and_callbacks_reach_the_log_in_the_order_in_which_they_came() -> None:
    """One inbox, one thread, one numbering."""
    log = InMemoryEventLog()
    delivery = deliver(log)
    delivery.post(note("before"))
    delivery.inbox.append((START, 10, 1, False, False, "Root", 2, None))
    delivery.inbox.append(step(0, 11))
    delivery.post(note("between"))
    delivery.inbox.append((FINISH, 12, 1, False, False, "Root", 0, None))
    assert delivery.flush(5)
    report = delivery.close(DONE)
    found = records(log, RUN)
    assert [type(record.event) for record in found] == [
        RunStarted, ErrorRecorded, PhaseStarted, PhaseProgressed, ErrorRecorded, PhaseFinished, RunFinished,
        StreamClosed,
    ]  # fmt: skip
    assert [record.sequence for record in found] == list(range(8))
    assert found[-1].event == StreamClosed(events=8, dropped=0)
    assert (report.written, report.waiting, report.dropped) == (True, 0, 0)


def test_a_callback_keeps_its_own_time_on_both_clocks() -> None:
    """Callbacks read the monotonic clock only; the wall clock is derived when they are taken in."""
    log = InMemoryEventLog()
    delivery = deliver(log, clock=lambda: Instant(5_000 + 70, 70))
    delivery.inbox.append((START, 40, 1, False, False, "Root", 1, None))
    delivery.close()
    started = records(log, RUN)[1]
    assert (started.wall_ns, started.monotonic_ns) == (5_040, 40)


def test_heartbeats_and_samples_come_without_any_callback() -> None:
    """A thread that no callback can silence writes them."""
    log = InMemoryEventLog()
    delivery = deliver(log, heartbeat_interval_ns=5 * NS_PER_MS, process_interval_ns=5 * NS_PER_MS)
    delivery.inbox.append((START, system_clock().monotonic_ns, 1, False, False, "Root", 1, None))
    until(lambda: len(of_type(records(log, RUN), HeartbeatRecorded)) > 2)
    delivery.close(DONE)
    beat = of_type(records(log, RUN), HeartbeatRecorded)[-1]
    assert beat.open_phase_id == 1
    assert beat.since_callback_ns is not None
    assert of_type(records(log, RUN), ProcessObserved)
    assert isinstance(records(log, RUN)[-2].event, RunFinished), "no heartbeat follows the end"


def test_a_log_that_fails_for_a_while_costs_nothing_and_is_said_once(caplog: pytest.LogCaptureFixture) -> None:
    """Events wait, are numbered when they are written, and the stream is whole."""
    log = FaultyLog()
    log.full = True
    delivery = deliver(log)
    with caplog.at_level(logging.WARNING):
        for number in range(20):
            delivery.post(note(str(number)))
            assert not delivery.flush(5)
        log.full = False
        until(lambda: delivery.flush(5))
    assert delivery.close(DONE).written
    found = records(log.memory, RUN)
    assert [event.message for event in of_type(found, ErrorRecorded)] == [str(number) for number in range(20)]
    state = fold.fold_run(found)
    assert state is not None
    assert state.run.complete
    assert len([entry for entry in caplog.records if "unavailable" in entry.message]) == 1


def test_what_does_not_fit_while_the_log_fails_is_dropped_progress_first_and_declared() -> None:
    """Phases and the run's own facts survive; the stream has no gap and says how much it lost."""
    log = FaultyLog()
    log.full = True
    delivery = deliver(log, backlog_events=10, progress_interval_ns=1, batch_events=1)
    delivery.inbox.append((START, 1, 1, False, False, "Root", 100, None))
    for number in range(100):
        delivery.inbox.append(step(number, 2 + number))
    delivery.inbox.append((FINISH, 200, 1, False, False, "Root", 0, None))
    delivery.post(note("survives"))
    assert not delivery.flush(5)
    log.full = False
    report = delivery.close(DONE)
    found = records(log.memory, RUN)
    assert report.written
    assert of_type(found, PhaseStarted)
    assert of_type(found, PhaseFinished)
    assert of_type(found, ErrorRecorded) == [note("survives")]
    closed = of_type(found, StreamClosed)[0]
    assert closed.dropped == report.dropped > 80
    assert [record.sequence for record in found] == list(range(closed.events))
    state = fold.fold_run(found)
    assert state is not None
    assert not state.run.complete


def test_a_log_that_stays_full_ends_the_run_within_its_bound_and_says_what_is_missing(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """The agent gives up visibly."""
    log = FaultyLog()
    log.full = True
    delivery = deliver(log, close_timeout_ns=100 * NS_PER_MS)
    delivery.post(note("lost"))
    before = system_clock().monotonic_ns
    with caplog.at_level(logging.WARNING):
        report = delivery.close(DONE)
    assert system_clock().monotonic_ns - before < NS_PER_S
    assert not report.written
    assert report.waiting >= 2
    assert "were not written" in caplog.text


def test_a_log_that_hangs_neither_holds_a_flush_nor_the_end() -> None:
    """The bounds hold although an append never returns."""
    log = FaultyLog()
    log.stuck.clear()
    delivery = deliver(log, close_timeout_ns=100 * NS_PER_MS)
    delivery.post(note("hangs"))
    before = system_clock().monotonic_ns
    assert not delivery.flush(0.1)
    assert not delivery.close(DONE).written
    assert system_clock().monotonic_ns - before < NS_PER_S
    log.stuck.set()


def test_a_callback_that_makes_no_event_is_declared_as_a_drop() -> None:
    """One strange argument must not end the stream."""
    log = InMemoryEventLog()
    delivery = deliver(log)
    delivery.inbox.append((START, 1, 1, False, False, "Root", None, None))  # type: ignore[arg-type] # what TensorRT would never pass
    delivery.post(note("after it"))
    report = delivery.close(DONE)
    assert report.dropped == 1
    assert of_type(records(log, RUN), ErrorRecorded) == [note("after it")]
    assert of_type(records(log, RUN), StreamClosed)[0].dropped == 1


def test_a_forked_child_writes_nothing() -> None:
    """The stream is the parent's; in the child posting is nothing, and nothing waits."""
    log = InMemoryEventLog()
    delivery = deliver(log)
    delivery.post(note("parent"))
    assert delivery.flush(5)
    child = os.fork()
    if child == 0:
        delivery.post(note("child"))
        os._exit(0 if not delivery.flush(30) and not delivery.inbox else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert delivery.close(DONE).written
    assert [event.message for event in of_type(records(log, RUN), ErrorRecorded)] == ["parent"]


def test_what_is_posted_after_the_end_is_left_alone() -> None:
    """A late source, e.g. a signal handler, must not fail."""
    log = InMemoryEventLog()
    delivery = deliver(log)
    delivery.close(DONE)
    delivery.post(note("late"))
    assert not delivery.flush(0.1)
    assert isinstance(records(log, RUN)[-1].event, StreamClosed)
