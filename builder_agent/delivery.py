"""From the build to the log: one thread per run that nothing in the build ever waits for."""

from collections import deque
from dataclasses import dataclass
from queue import SimpleQueue

from build_events.clock import Clock, Instant
from build_events.events import Event
from build_events.log import EventWriter
from build_events.stream import EventStream


@dataclass(frozen=True, slots=True, kw_only=True)
class CloseReport:
    """How the stream's end went."""

    written: bool  # stream.closed is durable
    waiting: int  # events that could not be written in time
    dropped: int  # events dropped over the whole run, as declared in stream.closed


class Delivery:
    """One thread that numbers events and appends them in batches; see the module for the promises.

    ``inbox`` takes raw callbacks from the monitor (append only). ``post`` takes events from any
    thread and from signal handlers. A forked child of the host never writes.
    """

    inbox: deque[object]
    wake: SimpleQueue[None]

    def __init__(self, stream: EventStream, writer: EventWriter, *, clock: Clock) -> None:
        raise NotImplementedError

    def start(self) -> None:
        """Start the thread."""

    def post(self, event: Event, at: Instant | None = None) -> None:
        """Hand over an event; re-entrant, never waits, never raises for the log's sake."""

    def flush(self, timeout_s: float) -> bool:
        """Wait until everything posted before is durable; ``False`` after ``timeout_s`` or on a log that fails."""
        raise NotImplementedError

    def close(self, *final: Event) -> CloseReport:
        """Write the rest, ``final`` and ``stream.closed`` within the bound, end the thread."""
        raise NotImplementedError
