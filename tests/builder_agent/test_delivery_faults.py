"""What goes wrong on the delivery thread costs what it touches, and never the stream of a healthy run."""

import logging
from typing import NoReturn

import pytest

from build_events import fold
from build_events.clock import NS_PER_MS, system_clock
from build_events.events import (
    ErrorRecorded,
    HeartbeatRecorded,
    ProcessObserved,
    RunFinished,
    StreamClosed,
)
from build_events.log import InMemoryEventLog
from builder_agent.cancellation import CancelState
from builder_agent.recording.monitor import Callbacks
from builder_agent.recording.phases import START
from tests.builder_agent.builds import of_type, records
from tests.builder_agent.test_delivery import DONE, RUN, FaultyLog, deliver, note
from tests.waiting import until


class Broken:
    """Something that is asked again and again, and fails each time."""

    def __init__(self) -> None:
        self.asked = 0

    def __call__(self) -> NoReturn:
        """Count, and fail."""
        self.asked += 1
        raise OSError(24, "Too many open files")


def test_a_sample_that_cannot_be_taken_is_said_once_and_ends_nothing(caplog: pytest.LogCaptureFixture) -> None:
    """A process without a free descriptor cannot read /proc; its build is no less healthy for it."""
    log, broken = InMemoryEventLog(), Broken()
    with caplog.at_level(logging.WARNING):
        delivery = deliver(log, sample=broken, heartbeat_interval_ns=NS_PER_MS, process_interval_ns=NS_PER_MS)
        until(lambda: broken.asked > 3)
        beats = len(of_type(records(log, RUN), HeartbeatRecorded))
        until(lambda: len(of_type(records(log, RUN), HeartbeatRecorded)) > beats)
        assert delivery.close(DONE).written
    found = records(log, RUN)
    (error,) = of_type(found, ErrorRecorded)
    assert (error.component, error.code) == ("agent", "telemetry")
    assert "Too many open files" in error.message
    state = fold.fold_run(found)
    assert state is not None
    assert (state.run.outcome, state.run.complete) == ("completed", True)
    assert caplog.text.count("Too many open files") == 1


def test_each_thing_told_regularly_fails_by_itself() -> None:
    """Progress and heartbeats that cannot be made are recorded once each; samples go on."""
    log, broken = InMemoryEventLog(), Broken()
    delivery = deliver(log, cancel_level=broken, heartbeat_interval_ns=NS_PER_MS, process_interval_ns=NS_PER_MS)
    delivery.inbox.append((START, 1, 1, False, False, "Root", 2, None))
    until(lambda: broken.asked > 6)
    until(lambda: len(of_type(records(log, RUN), ProcessObserved)) > 3)
    assert delivery.close(DONE).written
    said = [event.message.partition(":")[0] for event in of_type(records(log, RUN), ErrorRecorded)]
    assert sorted(said) == ["heartbeat", "progress"]
    assert of_type(records(log, RUN), RunFinished) == [DONE]


def test_a_log_with_a_defect_is_tried_again_like_one_that_is_full() -> None:
    """Whatever an append raises, the events wait and the stream is whole."""
    log = FaultyLog()
    log.full, log.error = True, RuntimeError("a defect of the log")
    delivery = deliver(log)
    delivery.post(note("kept"))
    assert not delivery.flush(5)
    log.full = False
    until(lambda: delivery.flush(5))
    assert delivery.close(DONE).written
    assert of_type(records(log.memory, RUN), ErrorRecorded) == [note("kept")]


def test_phases_that_a_full_inbox_lost_make_the_run_incomplete() -> None:
    """A dropped start or finish is declared by ``stream.closed`` like every other drop."""
    log = FaultyLog()
    delivery = deliver(log, lost_callbacks=lambda: monitor.dropped)
    monitor = Callbacks(delivery.inbox, CancelState(clock=system_clock, post=delivery.post), capacity=10)
    until(lambda: bool(records(log.memory, RUN)))
    log.stuck.clear()
    delivery.post(note("holds the log up"))
    until(lambda: not delivery.inbox)
    for number in range(100):
        monitor.phase_start(f"phase {number}", None, 1)
        monitor.phase_finish(f"phase {number}")
    log.stuck.set()
    assert delivery.close(DONE).written
    found = records(log.memory, RUN)
    assert of_type(found, StreamClosed)[0].dropped == monitor.dropped > 0
    state = fold.fold_run(found)
    assert state is not None
    assert (state.run.outcome, state.run.complete) == ("completed", False)


def test_an_event_that_cannot_be_encoded_costs_only_itself(caplog: pytest.LogCaptureFixture) -> None:
    """A name that is not UTF-8 is counted and said once; the stream goes on without a gap."""
    log = InMemoryEventLog()
    with caplog.at_level(logging.WARNING):
        delivery = deliver(log)
        delivery.post(note("before"))
        delivery.post(note("bad \udcff"))
        delivery.post(note("after"))
        assert delivery.flush(5)
        report = delivery.close(note("worse \udcff"), DONE)
    found = records(log, RUN)
    assert [event.message for event in of_type(found, ErrorRecorded)] == ["before", "after"]
    assert of_type(found, RunFinished) == [DONE]
    assert (report.written, report.dropped) == (True, 2)
    assert found[-1].event == StreamClosed(events=len(found), dropped=2)
    assert [record.sequence for record in found] == list(range(len(found)))
    assert caplog.text.count("no log can hold") == 1
