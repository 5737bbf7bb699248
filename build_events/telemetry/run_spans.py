"""All spans of one run, from its events as they become durable. Pure."""

import itertools
from collections.abc import Iterable
from dataclasses import dataclass, field

from build_events import ranges
from build_events.envelope import Recorded, StreamHeader
from build_events.events import BaselineRecorded, TimingCacheRecorded
from build_events.fold import advance
from build_events.state import StreamState
from build_events.telemetry import names
from build_events.telemetry.final_spans import Surroundings, final_spans
from build_events.telemetry.live_spans import Intervals, LiveSpans
from build_events.telemetry.span import Span

__all__ = ["Intervals", "RunSpans"]


@dataclass(slots=True)
class RunSpans:
    """Takes the records of a run's streams; a stream's records in their order."""

    intervals: Intervals = field(default_factory=Intervals)
    _live: LiveSpans = field(init=False)
    _states: dict[StreamHeader, StreamState] = field(default_factory=dict)
    _baseline: BaselineRecorded | None = None
    _timing_cache: TimingCacheRecorded | None = None
    _last_seen_ns: int | None = None
    _marked: set[int] = field(default_factory=set)

    def __post_init__(self) -> None:
        self._live = LiveSpans(self.intervals)

    def take(self, records: Iterable[Recorded]) -> list[Span]:
        """Return the spans that show the run while it goes on; a record that was given before changes nothing."""
        spans: list[Span] = []
        for stream, group in itertools.groupby(records, key=lambda record: record.stream):
            known = self._states.get(stream) or StreamState(header=stream)
            new = [record for record in group if not ranges.contains(known.seen, record.sequence)]
            self._states[stream] = advance(known, new)
            if stream.role == "main" and stream.trace_id is not None:
                for record in new:
                    self._note(record)
                    spans += self._live.take(record)
        self._marked.update(
            int(str(span.attributes[names.PHASE_INSTANCE_ID]))
            for span in spans
            if span.attributes[names.SPAN_KIND] == "marker"
        )
        return spans

    def final(self) -> tuple[Span, ...]:
        """Return the spans that end the run, parents before children; none while it is open."""
        around = Surroundings(
            baseline=self._baseline,
            timing_cache=self._timing_cache,
            last_seen_ns=self._last_seen_ns,
            marked=frozenset(self._marked),
        )
        return final_spans(self._states.values(), around)

    def _note(self, record: Recorded) -> None:
        self._last_seen_ns = max(self._last_seen_ns or 0, record.wall_ns)
        if isinstance(record.event, BaselineRecorded):
            self._baseline = record.event
        elif isinstance(record.event, TimingCacheRecorded):
            self._timing_cache = record.event
