"""The last step before the log: gives numbers, appends batches, and tries again where the log fails."""

import logging
from collections.abc import Callable

from build_events import codec
from build_events.clock import Instant
from build_events.envelope import Recorded
from build_events.events import Event, StreamClosed
from build_events.log import EventWriter
from build_events.stream import EventStream
from builder_agent.recording.backlog import Backlog, Waiting
from builder_agent.settings import DeliverySettings
from builder_agent.spool.quota import Pressure

_log = logging.getLogger(__name__)


class Outlet:
    """One stream's way into its log. Owned by the delivery thread.

    Events get their number when their batch is made, and a batch is repeated until it is stored: so
    drops leave no gap, and no number is used twice for different events.
    """

    def __init__(
        self,
        stream: EventStream,
        writer: EventWriter,
        settings: DeliverySettings,
        pressure: Callable[[], Pressure] = lambda: "none",
    ) -> None:
        """``pressure`` says how full the log is."""
        self._stream = stream
        self._writer = writer
        self._settings = settings
        self._pressure = pressure
        self._backlog = Backlog(settings.backlog_events)
        self._batch: list[Recorded] = []
        self._retry_at_ns = 0
        self._failing = False
        self._last_sequence = -1
        self._unwritable = 0

    def add(self, event: Event, at: Instant, span_id: str | None) -> None:
        """Take an event; it is written by a later ``pump``. One that no log can hold is a drop, and said once."""
        waiting = Waiting(event, at, span_id)
        if self._is_encodable(waiting):
            self._backlog.add(waiting, self._pressure())

    @property
    def waiting(self) -> int:
        """How many events are not stored yet."""
        return len(self._batch) + len(self._backlog)

    @property
    def dropped(self) -> int:
        """How many events were dropped."""
        return self._backlog.dropped + self._unwritable

    def pump(self, now_ns: int) -> bool:
        """Append what waits and say whether all of it is stored. A log that failed is left alone for a while."""
        if not self.waiting:
            return True
        if self._failing and now_ns < self._retry_at_ns:
            return False
        while self.waiting:
            if not self._batch:
                self._batch = [self._number(item) for item in self._backlog.take(self._settings.batch_events)]
            if not self._append(now_ns):
                return False
        return True

    def close(self, end: Instant, span_id: str | None, *, lost_callbacks: int) -> bool:
        """Append the rest and the stream's end together; say whether it is stored. Call again if not."""
        closed = bool(self._batch) and isinstance(self._batch[-1].event, StreamClosed)
        if not closed:
            self._batch += [self._number(item) for item in self._backlog.take(len(self._backlog))]
            event = StreamClosed(events=self._last_sequence + 2, dropped=self.dropped + lost_callbacks)
            self._batch.append(self._number(Waiting(event, end, span_id)))
        return self._append(end.monotonic_ns)

    def _is_encodable(self, item: Waiting) -> bool:
        # Before it has a number: in a batch it would hold up every event behind it, for good.
        moment = item.at
        record = Recorded(
            stream=self._stream.header,
            sequence=0,
            wall_ns=moment.wall_ns,
            monotonic_ns=moment.monotonic_ns,
            span_id=item.span_id,
            event=item.event,
        )
        try:
            codec.encode_for_log(record)
        except Exception as error:  # noqa: BLE001 # e.g. too long, or a path that is not UTF-8
            if not self._unwritable:
                _log.warning("dropped %s, which no log can hold: %s", item.event.type, error)
            self._unwritable += 1
            return False
        return True

    def _number(self, item: Waiting) -> Recorded:
        record = self._stream.record(item.event, at=item.at, span_id=item.span_id)
        self._last_sequence = record.sequence
        return record

    def _append(self, now_ns: int) -> bool:
        try:
            self._writer.append(self._batch)
        except Exception as error:  # noqa: BLE001 # said below; whatever a log raises, it may work again
            if not self._failing:
                _log.warning("event log unavailable, the build goes on without it: %s", error)
            self._failing = True
            self._retry_at_ns = now_ns + self._settings.retry_interval_ns
            return False
        if self._failing:
            _log.warning("event log available again; %d events were dropped meanwhile", self.dropped)
        self._failing = False
        self._batch = []
        return True
