"""Numbering: one stream's events in order, handed to a writer."""

from build_events.clock import Clock, Instant
from build_events.envelope import Recorded, StreamHeader
from build_events.events import Event, StreamClosed
from build_events.log import EventWriter


class EventStream:
    """The one writer of a stream. Not thread-safe: one thread owns it."""

    def __init__(self, header: StreamHeader, writer: EventWriter, *, clock: Clock) -> None:
        self.header = header
        self._writer = writer
        self._clock = clock
        self._next = 0

    def record(self, event: Event, *, at: Instant | None = None, span_id: str | None = None) -> Recorded:
        """Number an event; the caller must append it, and every one before it, in this order.

        ``at`` is when it happened, now if not given.
        """
        moment = at or self._clock()
        record = Recorded(
            stream=self.header,
            sequence=self._next,
            wall_ns=moment.wall_ns,
            monotonic_ns=moment.monotonic_ns,
            span_id=span_id,
            event=event,
        )
        self._next += 1
        return record

    def append(self, *events: Event, at: Instant | None = None) -> list[Recorded]:
        """Record the events and return once they are durable.

        Raises:
            LogUnavailableError: the log did not take them all.
        """
        records = [self.record(event, at=at) for event in events]
        self._writer.append(records)
        return records

    def close(self, *events: Event, dropped: int = 0) -> list[Recorded]:
        """Append ``events`` and then the stream's declared end, in one append."""
        records = [self.record(event) for event in events]
        records.append(self.record(StreamClosed(events=self._next + 1, dropped=dropped)))
        self._writer.append(records)
        return records
