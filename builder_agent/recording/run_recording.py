"""What a run is recorded with: its main stream, its cancel state, and the monitor that feeds both."""

from collections.abc import Callable
from types import ModuleType

from build_events.clock import NS_PER_S, Clock
from build_events.envelope import StreamHeader
from build_events.log import EventWriter
from build_events.stream import EventStream
from builder_agent.cancellation import CancelState
from builder_agent.process_facts import observe_process
from builder_agent.recording.callback_cost import callback_cost
from builder_agent.recording.delivery import Delivery
from builder_agent.recording.monitor import Callbacks, monitor_class
from builder_agent.recording.phases import PhaseTracker
from builder_agent.settings import RunSettings
from builder_agent.spool.quota import Pressure

SOURCE = "enginetrail/build"


class Recording:
    """The telemetry side of one run. The constructor starts nothing."""

    def __init__(
        self,
        settings: RunSettings,
        *,
        writer: EventWriter,
        clock: Clock,
        boot_id: str,
        on_closed: Callable[[], None],
        pressure: Callable[[], Pressure],
    ) -> None:
        self._settings = settings
        self.clock = clock
        header = StreamHeader(
            stream_id=settings.stream_id,
            role="main",
            run_id=settings.run_id,
            trace_id=settings.trace_id,
            source=SOURCE,
            boot_id=boot_id,
        )
        self.delivery = Delivery(
            EventStream(header, writer, clock=clock),
            writer,
            clock=clock,
            tracker=PhaseTracker(settings.run_id, settings.delivery.progress_interval_ns),
            sample=lambda: observe_process("during"),
            cancel_level=lambda: self.cancel.level,
            lost_callbacks=lambda: self.monitor.dropped if self.monitor is not None else 0,
            settings=settings.delivery,
            on_closed=on_closed,
            pressure=pressure,
        )
        self.post = self.delivery.post
        self.cancel = CancelState(clock=clock, post=self.post)
        self.monitor: Callbacks | None = None  # one per run, made when the TensorRT module is known

    def monitor_of(self, trt: ModuleType) -> Callbacks:
        """Return the run's monitor, made for this TensorRT module the first time."""
        if self.monitor is None:
            capacity = self._settings.delivery.raw_callbacks
            self.monitor = monitor_class(trt)(self.delivery.inbox, self.cancel, capacity=capacity)
        return self.monitor

    def tell_callback_cost(self) -> None:
        """Post what the monitor's work in the builder's callbacks took; nothing where no step was sampled."""
        cost = callback_cost(self.monitor.costs_ns) if self.monitor is not None else None
        if cost is not None:
            self.post(cost)

    def durable(self) -> bool:
        """Wait until all that was posted stands in the log, but no longer than the bound of a run's end."""
        return self.delivery.flush(self._settings.delivery.close_timeout_ns / NS_PER_S)
