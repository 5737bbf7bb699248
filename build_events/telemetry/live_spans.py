"""Spans that show a run while it goes on: anchor, markers and slices. Pure; time is that of the events.

A phase's own span ends with the phase, and a backend shows nothing of it before. So the start of the
run leaves an anchor, a phase that stays open a marker, and then slices, each a span of its own.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field

from build_events.clock import NS_PER_S
from build_events.envelope import Recorded
from build_events.events import (
    HeartbeatRecorded,
    PhaseFinished,
    PhaseProgressed,
    PhaseStarted,
    ProcessObserved,
    RunFinished,
    RunStarted,
)
from build_events.telemetry import names
from build_events.telemetry.identity import identity
from build_events.telemetry.making import ANCHOR, ROOT, SpanMaker, Times
from build_events.telemetry.span import Attributes, Span

# Shorter spans are rewritten by Jaeger or underflow in Tempo, and a child that is no longer than its
# parent and lies outside of it is warned of: so the markers are longer than their anchor.
ANCHOR_NS = 1_000
MARKER_NS = 2_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Intervals:
    """When an open phase shows. Nanoseconds."""

    marker_after_ns: int = 5 * NS_PER_S  # thousands of short phases need no marker
    slice_every_ns: int = 15 * NS_PER_S


@dataclass(slots=True)
class _OpenPhase:
    phase_id: int
    parent_id: int | None
    name: str
    steps_total: int
    started_ns: int
    shown_to_ns: int  # end of the last slice
    steps_seen: int = 0
    slices: int = 0
    marked: bool = False


@dataclass(slots=True)
class LiveSpans:
    """Follows the main stream of one run. Give the records in their order, each once."""

    intervals: Intervals
    _maker: SpanMaker | None = None  # once the run has started
    _open: dict[int, _OpenPhase] = field(default_factory=dict)
    _rss_bytes: int | None = None

    def take(self, record: Recorded) -> list[Span]:
        """Return the spans that this record completes."""
        event = record.event
        if isinstance(event, RunStarted):
            return [self._anchor(record, event)]
        if self._maker is None or record.stream != self._maker.zero.stream:
            return []
        now_ns = self._maker.at(record)
        if isinstance(event, ProcessObserved):
            self._rss_bytes = event.rss_bytes
        elif isinstance(event, PhaseStarted):
            self._open[event.phase_id] = _OpenPhase(
                event.phase_id, event.parent_id, event.name, event.steps_total, now_ns, now_ns
            )
        elif isinstance(event, PhaseProgressed) and event.phase_id in self._open:
            self._open[event.phase_id].steps_seen = event.steps_seen
        elif isinstance(event, PhaseFinished):
            return self._last_slice(event, now_ns)
        elif isinstance(event, RunFinished):
            self._open.clear()
        age_ns = event.since_callback_ns if isinstance(event, HeartbeatRecorded) else None
        return [*self._markers(now_ns), *self._slice(now_ns, age_ns)]

    def _anchor(self, record: Recorded, event: RunStarted) -> Span:
        self._maker = SpanMaker(record, event)
        return self._maker.make(
            f"run.started {event.route}",
            ANCHOR,
            (record.wall_ns, record.wall_ns + ANCHOR_NS),
            {names.SPAN_KIND: "anchor", **identity(record.stream, event)},
            parent=self._maker.span_id(ROOT),
        )

    def _markers(self, now_ns: int) -> Iterable[Span]:
        for phase in self._open.values():
            if not phase.marked and now_ns - phase.started_ns >= self.intervals.marker_after_ns:
                phase.marked = True
                times = (phase.started_ns, phase.started_ns + MARKER_NS)
                attributes = {names.SPAN_KIND: "marker", **self._of(phase)}
                yield self._under_anchor(f"phase.started {phase.name}", marker_name(phase.phase_id), times, attributes)

    def _slice(self, now_ns: int, age_ns: int | None) -> Iterable[Span]:
        """Show the innermost phase that has a marker: those around it are open as well."""
        phase = max((item for item in self._open.values() if item.marked), key=lambda item: item.phase_id, default=None)
        if phase is not None and now_ns - phase.shown_to_ns >= self.intervals.slice_every_ns:
            extra: dict[str, int | float] = {}
            if age_ns is not None:
                extra[names.LAST_CALLBACK_AGE] = age_ns / NS_PER_S
            if self._rss_bytes is not None:
                extra[names.RSS] = self._rss_bytes
            yield self._slice_to(phase, now_ns, extra)

    def _last_slice(self, event: PhaseFinished, now_ns: int) -> list[Span]:
        phase = self._open.pop(event.phase_id, None)
        if phase is None or not phase.marked or now_ns - phase.shown_to_ns < MARKER_NS:
            return []
        phase.steps_seen = event.steps_seen
        return [self._slice_to(phase, now_ns, {})]

    def _slice_to(self, phase: _OpenPhase, now_ns: int, extra: Attributes) -> Span:
        times = (phase.shown_to_ns, now_ns)
        phase.shown_to_ns = now_ns
        phase.slices += 1
        attributes = {names.SPAN_KIND: "slice", **self._of(phase), **extra}
        return self._under_anchor(
            f"phase.slice {phase.name}", f"{phase.phase_id}/slice/{phase.slices}", times, attributes
        )

    def _of(self, phase: _OpenPhase) -> Attributes:
        assert self._maker is not None
        return {
            names.TASK_NAME: phase.name,
            names.PHASE_INSTANCE_ID: phase.phase_id,
            names.PHASE_SPAN_ID: self._maker.span_id(str(phase.phase_id)),
            names.PHASE_STEPS_TOTAL: phase.steps_total,
            names.PHASE_STEPS_COMPLETED: phase.steps_seen,
        }

    def _under_anchor(self, name: str, own: str, times: Times, attributes: Attributes) -> Span:
        assert self._maker is not None
        return self._maker.make(name, own, times, attributes, parent=self._maker.span_id(ANCHOR))


def marker_name(phase_id: int) -> str:
    """Return the name that the id of a phase's marker is derived from."""
    return f"{phase_id}/marker"
