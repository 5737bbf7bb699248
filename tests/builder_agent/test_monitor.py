"""The callbacks: literal results, no fault of ours cancels, and no interrupt is lost."""

import sys
import threading
from collections import deque
from typing import Any

import pytest
import tensorrt_rtx as trt

from build_events.clock import system_clock
from build_events.events import CallbackCostRecorded
from builder_agent.cancellation import CancelState
from builder_agent.recording.callback_cost import callback_cost
from builder_agent.recording.callback_guard import Guards
from builder_agent.recording.monitor import CallbackFault, Callbacks, interrupt_source, monitor_class


class Bench:
    """A monitor with its inbox and cancel state."""

    def __init__(self, capacity: int = 100, **options: Any) -> None:
        self.inbox: deque[Any] = deque()
        self.cancel = CancelState(clock=system_clock, post=lambda *_: None)
        self.monitor = Callbacks(self.inbox, self.cancel, capacity=capacity, **options)


class Failing:
    """A clock that raises what the test wants, once."""

    def __init__(self, error: BaseException) -> None:
        self.error: BaseException | None = error

    def __call__(self) -> int:
        """Raise, and from then on tell a time."""
        error, self.error = self.error, None
        if error is not None:
            raise error
        return 1


def test_the_class_is_one_per_module_and_a_real_progress_monitor() -> None:
    """The builder accepts it as its own interface."""
    cls = monitor_class(trt)
    assert cls is monitor_class(trt)
    bench = Bench()
    assert isinstance(cls(bench.inbox, bench.cancel, capacity=1), trt.IProgressMonitor)


def test_a_step_returns_a_literal_true_until_somebody_asks() -> None:
    """TensorRT casts the result: anything but a bool is a risk."""
    bench = Bench()
    assert bench.monitor.step_complete("Clone", 0) is True
    bench.cancel.request("api")
    assert bench.monitor.step_complete("Clone", 1) is False
    assert bench.monitor.returned_false
    assert bench.cancel.observed_ns is not None


def test_the_first_step_of_a_burst_and_each_64th_after_it_is_timed() -> None:
    """And the newest samples are kept, however long a build goes on."""
    ticks = iter(range(0, 10**9, 7))
    bench = Bench(capacity=10**6, clock_ns=lambda: next(ticks))
    for step in range(1 + 64 * 2000):
        bench.monitor.step_complete("Clone", step)
    assert set(bench.monitor.costs_ns) == {7}
    assert len(bench.monitor.costs_ns) == 1024
    few = Bench()
    for step in range(65):
        few.monitor.step_complete("Clone", step)
    assert len(few.monitor.costs_ns) == 2


def test_the_cost_of_callbacks_is_mean_p99_and_maximum() -> None:
    """p99 is a sample that was measured: the least that 99 % do not exceed."""
    assert callback_cost([]) is None
    assert callback_cost(range(1, 101)) == CallbackCostRecorded(samples=100, mean_ns=50, p99_ns=99, max_ns=100)
    assert callback_cost([5]) == CallbackCostRecorded(samples=1, mean_ns=5, p99_ns=5, max_ns=5)


def test_only_the_first_refusal_carries_the_request() -> None:
    """cancel.observed is when step_complete returned False for the first time."""
    bench = Bench()
    request = bench.cancel.request("api")
    bench.monitor.step_complete("Clone", 0)
    bench.monitor.step_complete("Clone", 1)
    assert [raw[-1] for raw in bench.inbox] == [request.request_id, None]


@pytest.mark.parametrize("callback", ["phase_start", "step_complete", "phase_finish"])
def test_a_fault_of_ours_is_recorded_and_cancels_nothing(callback: str) -> None:
    """An exception inside a callback never leaves it, and a step still returns True."""
    bench = Bench(clock_ns=Failing(ValueError("broken clock")))
    result = call(bench.monitor, callback)
    assert result is (True if callback == "step_complete" else None)
    (fault,) = bench.inbox
    assert isinstance(fault, CallbackFault)
    assert fault.event.code == "monitor_fault"
    assert "broken clock" in fault.event.message
    assert callback in fault.event.message
    assert isinstance(bench.monitor.fault, ValueError)
    assert not bench.cancel.flag


@pytest.mark.parametrize("callback", ["phase_start", "step_complete", "phase_finish"])
@pytest.mark.parametrize("error", [KeyboardInterrupt(), SystemExit(3)])
def test_an_interrupt_inside_a_callback_is_a_request_and_is_kept(callback: str, error: BaseException) -> None:
    """TensorRT would swallow a Ctrl-C that lands here; the run raises it again at its end."""
    bench = Bench(clock_ns=Failing(error))
    result = call(bench.monitor, callback)
    assert result is (False if callback == "step_complete" else None)
    assert bench.monitor.interrupts == [error]
    winner = bench.cancel.winner
    assert winner is not None
    assert winner.source == interrupt_source(error)


def test_what_a_handler_raises_on_the_way_into_a_callback_is_taken_for_a_request() -> None:
    """A call that was looked up and never entered can only have been swallowed by an interrupt."""
    inbox: deque[Any] = deque()
    cancel = CancelState(clock=system_clock, post=lambda *_: None)
    monitor = monitor_class(trt)(inbox, cancel, capacity=10)
    monitor.phase_start("Root", None, 1)
    assert monitor.step_complete("Root", 0) is True
    monitor.settle()
    assert not monitor.stopped_the_build, "every look-up was followed by its call"
    _ = monitor.phase_start  # looked up, and the call never came
    assert monitor.step_complete("Root", 0) is False
    assert monitor.stopped_the_build
    assert cancel.winner is not None
    assert cancel.winner.source == "ctrl_c"
    assert isinstance(monitor.interrupts[0], KeyboardInterrupt)


def test_an_interrupt_of_a_callbacks_first_line_repeats_the_call() -> None:
    """Nothing of the phase is lost, and nothing is recorded twice."""
    heard: list[BaseException] = []
    calls: list[str] = []

    class Monitor:
        def interrupted(self, where: str, error: BaseException) -> None:
            heard.append(error)
            assert where == "phase_start"

    def phase_start(name: str) -> None:
        calls.append(name)
        if len(calls) == 1:
            raise KeyboardInterrupt

    guards = Guards(Monitor(), [phase_start, phase_start, phase_start], [])
    guards.phase_start("Root")
    assert [type(error) for error in heard] == [KeyboardInterrupt]
    assert calls == ["Root", "Root"]


def test_callbacks_of_several_threads_do_not_meet() -> None:
    """TensorRT may call back from any thread, so looking a callback up must not depend on another thread's."""
    inbox: deque[Any] = deque()
    cancel = CancelState(clock=system_clock, post=lambda *_: None)
    monitor = monitor_class(trt)(inbox, cancel, capacity=10**6)
    results: list[bool] = []

    def call_back() -> None:
        results.extend([monitor.step_complete("Clone", number) for number in range(2000)])

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        threads = [threading.Thread(target=call_back) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(interval)
    assert len(results) == len(inbox) == 16_000
    assert set(results) == {True}


def test_a_full_inbox_drops_steps_first_and_counts_them() -> None:
    """The bound holds memory down while the log stands still; phases have as much room again."""
    bench = Bench(capacity=2)
    for number in range(5):
        assert bench.monitor.step_complete("Clone", number) is True
    bench.monitor.phase_start("Next", None, 1)
    bench.monitor.phase_finish("Next")
    assert bench.monitor.dropped == 3
    assert [raw[0] for raw in bench.inbox] == ["U", "U", "S", "F"]


def test_a_log_that_hangs_for_ever_costs_bounded_memory_whatever_the_builder_calls() -> None:
    """Phases, refusals and faults stop at twice the bound, all counted; only the first refusal is always kept."""
    bench = Bench(capacity=5)
    for number in range(100):
        bench.monitor.phase_start(f"phase {number}", None, 1)
        bench.monitor.phase_finish(f"phase {number}")
        bench.monitor._caught("phase_start", ValueError(str(number)))
    assert len(bench.inbox) == 10
    assert bench.monitor.dropped == 290
    request = bench.cancel.request("api")
    for number in range(100):
        assert bench.monitor.step_complete("Root", number) is False
    assert len(bench.inbox) == 11
    assert bench.inbox[-1][-1] == request.request_id
    assert bench.monitor.dropped == 389


def test_a_detached_monitor_records_and_cancels_nothing() -> None:
    """A host that goes on with its config after a cancelled run must not be cancelled again."""
    bench = Bench()
    bench.cancel.request("api")
    bench.monitor.detach()
    bench.monitor.phase_start("Root", None, 1)
    assert bench.monitor.step_complete("Root", 0) is True
    bench.monitor.phase_finish("Root")
    assert not bench.inbox


def call(monitor: Callbacks, callback: str) -> bool | None:
    """Call back as TensorRT does."""
    if callback == "phase_start":
        monitor.phase_start("Root", None, 1)
        return None
    if callback == "phase_finish":
        monitor.phase_finish("Root")
        return None
    return monitor.step_complete("Root", 0)
