"""What a run's events say in numbers, as they become durable. Pure.

The end of a run is told once, by whoever exports it; see ``RunMeasurements.final``.
"""

import itertools
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

from build_events import ranges
from build_events.clock import NS_PER_S
from build_events.envelope import Recorded, StreamHeader
from build_events.events import (
    BuilderReturned,
    CallbackCostRecorded,
    CleanupFinished,
    ExportFinished,
    ProcessExited,
    RunContextRecorded,
    RunFinished,
    RunStarted,
    StreamClosed,
    TimingCacheRecorded,
)
from build_events.facts import Facts, elapsed_ns
from build_events.fold import advance
from build_events.run_rows import run_state
from build_events.state import CancellationRow, RunState, StreamState
from build_events.telemetry import metrics, names
from build_events.telemetry.metrics import Metric
from build_events.telemetry.names import RunStage
from build_events.telemetry.results import Ending, ending

LEGS: Final = ("signalled", "observed", "returned", "cleaned", "exited")
UNOBSERVED: Final = "unobserved"
DROPPED_BY_SIGNAL: Final = {"traces": "span", "metrics": "collection"}  # what ExportFinished counts


@dataclass(frozen=True, slots=True)
class Measurement:
    """One number: added to a counter, recorded in a histogram, or what a gauge shows from now on."""

    metric: Metric
    value: float  # in the metric's unit
    labels: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not self.labels.keys() <= self.metric.labels:
            unknown = sorted(self.labels.keys() - self.metric.labels)
            msg = f"{self.metric.name} has no label {', '.join(unknown)}: see build_events/telemetry/metrics.py"
            raise ValueError(msg)


@dataclass(slots=True)
class RunMeasurements:
    """Takes the records of a run's streams, a stream's in their order; a repeated one changes nothing."""

    _states: dict[StreamHeader, StreamState] = field(default_factory=dict)
    _route: str = ""
    _stage: RunStage | None = None  # that the run is counted in as active
    _timing_cache: TimingCacheRecorded | None = None
    _told: bool = False

    def take(self, records: Iterable[Recorded]) -> list[Measurement]:
        """Return what shows the run while it goes on: in which stage it is, and what was dropped of it."""
        told: list[Measurement] = []
        for stream, group in itertools.groupby(records, key=lambda record: record.stream):
            known = self._states.get(stream) or StreamState(header=stream)
            new = [record for record in group if not ranges.contains(known.seen, record.sequence)]
            self._states[stream] = advance(known, new)
            for record in new:
                told += self._live(record)
        return told

    def final(self) -> list[Measurement]:
        """Return what ends the run, once; nothing while it is open, but that it is no longer watched."""
        if self._told or not self._route:
            return []
        self._told = True
        left = list(self._enter(None))
        facts = Facts(list(self._states.values()))
        started = facts.own(RunStarted)
        state = run_state(started.record.stream.subject if started else "", facts.streams, dead_letters=0)
        end = ending(state.run, deadline=state.cancellation is not None and state.cancellation.deadline)
        if started is None or end is None:
            return left
        return [
            *left,
            *self._durations(facts, started.record, end),
            *self._errors(end),
            *_cancellation(state.cancellation),
            *self._silence(state),
            *self._cleanup(facts),
            Measurement(metrics.CACHE_RUNS, 1, {names.TIMING_CACHE_MODE: self._cache_mode}),
        ]

    @property
    def _cache_mode(self) -> str:
        return (self._timing_cache.mode if self._timing_cache else None) or UNOBSERVED

    def _live(self, record: Recorded) -> Iterator[Measurement]:
        event = record.event
        if isinstance(event, StreamClosed) and event.dropped:
            yield dropped("event", event.dropped)
        elif isinstance(event, ExportFinished) and event.dropped:
            yield dropped(DROPPED_BY_SIGNAL[event.signal], event.dropped)
        elif record.stream.role == "main":
            if isinstance(event, RunStarted):
                self._route = event.route
                yield from self._enter("executing")
            elif isinstance(event, BuilderReturned):
                yield from self._enter("finalizing")
            elif isinstance(event, TimingCacheRecorded):
                self._timing_cache = event
            elif isinstance(event, CallbackCostRecorded):
                yield from _callback_cost(event)

    def _enter(self, stage: RunStage | None) -> Iterator[Measurement]:
        if self._stage is not None:
            yield self._active(self._stage, -1)
        if stage is not None:
            yield self._active(stage, 1)
        self._stage = stage

    def _active(self, stage: RunStage, change: int) -> Measurement:
        return Measurement(
            metrics.RUN_ACTIVE, change, {names.PIPELINE_NAME: self._route, names.PIPELINE_RUN_STATE: stage}
        )

    def _durations(self, facts: Facts, start: Recorded, end: Ending) -> Iterator[Measurement]:
        """Yield the time in each stage. A lost run has none: nobody saw how long it went on."""
        context = facts.own(RunContextRecorded)
        if context is not None and context.event.queued_at_ns is not None:
            yield self._duration("pending", max(start.wall_ns - context.event.queued_at_ns, 0), None)
        returned, finished = facts.own(BuilderReturned), last_fact(facts, start)
        if finished is None:
            return
        executing = finished if returned is None else elapsed_ns(start, returned.record)
        if executing is not None:
            yield self._duration("executing", executing, end)
            if returned is not None:
                yield self._duration("finalizing", max(finished - executing, 0), end)

    def _duration(self, stage: RunStage, duration_ns: int, end: Ending | None) -> Measurement:
        labels = {names.PIPELINE_NAME: self._route, names.PIPELINE_RUN_STATE: stage}
        if end is not None:
            labels[names.PIPELINE_RESULT] = end.result
            if end.error_type is not None:
                labels[names.ERROR_TYPE] = metrics.error_type(end.error_type)
        return Measurement(metrics.RUN_DURATION, duration_ns / NS_PER_S, labels)

    def _errors(self, end: Ending) -> Iterator[Measurement]:
        if end.error_type is not None:
            labels = {names.PIPELINE_NAME: self._route, names.ERROR_TYPE: metrics.error_type(end.error_type)}
            yield Measurement(metrics.RUN_ERRORS, 1, labels)

    def _silence(self, state: RunState) -> Iterator[Measurement]:
        gaps = [row.longest_gap_ns for row in state.phases if row.longest_gap_ns is not None]
        if gaps:
            yield Measurement(metrics.SILENT_GAP, max(gaps) / NS_PER_S, {names.PIPELINE_NAME: self._route})

    def _cleanup(self, facts: Facts) -> Iterator[Measurement]:
        cleanup = facts.first(CleanupFinished)
        if cleanup is not None:
            labels = {names.CLEANUP_STATUS: cleanup.event.status, names.CLEANUP_BY: cleanup.event.by}
            yield Measurement(metrics.CLEANUP_RUNS, 1, labels)


def dropped(kind: str, count: int) -> Measurement:
    """Return what a run says that it dropped."""
    return Measurement(metrics.RUN_DROPPED, count, {names.DROPPED_KIND: kind})


def last_fact(facts: Facts, start: Recorded) -> int | None:
    """Return the nanoseconds from a run's start to the last fact of its end; ``None`` where none is known."""
    ends = [fact.record for cls in (CleanupFinished, RunFinished, ProcessExited) for fact in facts.all(cls)]
    times = [time for time in (elapsed_ns(start, record) for record in ends) if time is not None]
    return max(times, default=None)


def _callback_cost(event: CallbackCostRecorded) -> Iterator[Measurement]:
    for statistic, cost_ns in (("mean", event.mean_ns), ("p99", event.p99_ns), ("max", event.max_ns)):
        yield Measurement(metrics.CALLBACK_COST, cost_ns / NS_PER_S, {names.CALLBACK_STATISTIC: statistic})


def _cancellation(row: CancellationRow | None) -> Iterator[Measurement]:
    if row is None:
        return
    for leg in LEGS:
        latency_ns: int | None = getattr(row, f"{leg}_ns")
        if latency_ns is not None:
            labels = {names.CANCEL_LEG: leg, names.CANCEL_SOURCE: row.source}
            yield Measurement(metrics.CANCEL_LATENCY, latency_ns / NS_PER_S, labels)
