"""What all spans of a run share: trace, derived ids, resource, and one time line. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from build_events import ids
from build_events.envelope import Recorded
from build_events.events import RunStarted
from build_events.telemetry.identity import resource
from build_events.telemetry.results import Ending
from build_events.telemetry.span import Attributes, Span, SpanEvent, SpanLink

SHORTEST_NS = 1_000  # Jaeger rewrites and warns of a span without length
ROOT = str(ids.ROOT_ORDINAL)
ANCHOR = "anchor"

Times = tuple[int, int]  # start and end, nanoseconds since 1970 UTC


@dataclass(frozen=True, slots=True)
class SpanMaker:
    """Makes the spans of one run; ``zero`` is the record of its start, which has a trace id."""

    zero: Recorded
    started: RunStarted

    @property
    def run_id(self) -> str:
        """The run."""
        return self.zero.stream.subject

    def span_id(self, own: str) -> str:
        """Return the id of a span of the run by its name within it: ``ROOT``, a phase id, ``anchor`` ..."""
        return ids.named_span_id(self.run_id, own)

    def at(self, record: Recorded) -> int:
        """Return when something happened: the wall clock at the run's start, advanced by the monotonic clock.

        A record of another boot, whose monotonic clock does not compare, keeps its own wall clock.
        """
        if record.stream.boot_id != self.zero.stream.boot_id:
            return record.wall_ns
        return self.zero.wall_ns + record.monotonic_ns - self.zero.monotonic_ns

    def make(
        self,
        name: str,
        own: str,
        times: Times,
        attributes: Attributes,
        *,
        parent: str | None,
        kind: Literal["server", "internal"] = "internal",
        how: Ending | None = None,
        events: Sequence[SpanEvent] = (),
        links: Sequence[SpanLink] = (),
    ) -> Span:
        """Return a span; ``own`` names it within the run, ``parent`` is a span id, ``how`` gives its status."""
        failed = how is not None and how.is_error
        return Span(
            name=name,
            trace_id=self.zero.stream.trace_id or "",
            span_id=self.span_id(own),
            parent_span_id=parent,
            kind=kind,
            start_ns=times[0],
            end_ns=times[1],
            attributes=attributes,
            status="error" if failed else "unset",
            status_description=how.reason if how is not None and failed else None,
            events=tuple(events),
            links=tuple(links),
            resource=resource(self.zero.stream, self.started),
        )


def within(parent: Span, start_ns: int, end_ns: int) -> Times:
    """Return the times cut to those of the parent, at least ``SHORTEST_NS`` long.

    A wall clock that is slewed lets a child stick out by microseconds, which Jaeger warns of.
    """
    start = min(max(start_ns, parent.start_ns), parent.end_ns - SHORTEST_NS)
    return start, max(min(end_ns, parent.end_ns), start + SHORTEST_NS)
