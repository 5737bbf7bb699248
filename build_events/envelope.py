"""The envelope: who recorded an event, in which stream, and where in it."""

from dataclasses import dataclass
from typing import Literal

from build_events import ids
from build_events.events import Event, UnknownEvent

StreamRole = Literal["main", "observer", "route"]
CONTRACT_VERSION = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamHeader:
    """The identity of a stream: the events of one writer process about one run or one route."""

    stream_id: str
    role: StreamRole
    run_id: str | None = None  # exactly one of run_id and route is set
    route: str | None = None
    trace_id: str | None = None
    source: str  # CloudEvents source: what wrote it, e.g. enginetrail/build
    boot_id: str  # domain of the monotonic times

    def __post_init__(self) -> None:
        if (self.run_id is None) == (self.route is None):
            msg = f"stream {self.stream_id}: give either run_id or route"
            raise ValueError(msg)

    @property
    def subject(self) -> str:
        """The run id, or the route of a route stream: also the log's key."""
        return self.run_id or self.route or ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Recorded:
    """A fact as it stands in the log. ``sequence`` orders it within its stream; clocks do not."""

    stream: StreamHeader
    sequence: int  # from 0, without gaps
    wall_ns: int  # when it happened, UTC
    monotonic_ns: int
    span_id: str | None = None
    event: Event | UnknownEvent

    @property
    def event_id(self) -> str:
        """The same for every delivery of this event."""
        return ids.event_id(self.stream.stream_id, self.sequence)
