"""The spans that end a run, from the same fold as its rows: root, stages, phases, cancellation. Pure.

The order of the facts' arrival does not matter, so whoever ends a run makes the same spans.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from build_events import ids
from build_events.events import (
    BaselineRecorded,
    BuilderReturned,
    CleanupFinished,
    Event,
    ProcessExited,
    RunContextRecorded,
    RunFinished,
    RunStarted,
    TimingCacheRecorded,
)
from build_events.facts import Facts
from build_events.run_rows import run_state
from build_events.state import PhaseRow, RunState, StreamState
from build_events.telemetry import names
from build_events.telemetry.cancel_span import cancel_span
from build_events.telemetry.identity import identity
from build_events.telemetry.making import ROOT, SHORTEST_NS, SpanMaker, Times
from build_events.telemetry.phase_spans import phase_spans
from build_events.telemetry.results import Ending, ending
from build_events.telemetry.span import Attribute, Attributes, Span, SpanLink

# A run goes on to the last of these, in whichever stream it stands.
_ENDS: tuple[type[Event], ...] = (BuilderReturned, CleanupFinished, RunFinished, ProcessExited)


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """What the fold does not keep, and the spans tell."""

    baseline: BaselineRecorded | None = None
    timing_cache: TimingCacheRecorded | None = None
    last_seen_ns: int | None = None  # wall clock of the main stream's last record
    marked: frozenset[int] = frozenset()  # phases whose marker was exported


def final_spans(states: Iterable[StreamState], around: Surroundings = Surroundings()) -> tuple[Span, ...]:
    """Return the spans of an ended run, parents before children; none while it is open or has no trace id.

    ``states`` are its streams, with every phase (see ``fold.settle``).
    """
    facts = Facts(list(states))
    started = facts.own(RunStarted)
    if started is None or started.record.stream.trace_id is None:
        return ()
    state = run_state(started.record.stream.subject, facts.streams, dead_letters=0)
    how = ending(state.run, deadline=state.cancellation is not None and state.cancellation.deadline)
    if how is None:
        return ()
    maker = SpanMaker(started.record, started.event)
    root = _root(maker, facts, state, how, around)
    executing = _executing(maker, facts, state.phases, root)
    cancelled = [] if state.cancellation is None else [cancel_span(maker, facts, state.cancellation, root)]
    phases = phase_spans(maker, state.phases, executing, how, around.marked)
    return root, executing, *_before_and_after(maker, root, executing), *phases, *cancelled


def _root(maker: SpanMaker, facts: Facts, state: RunState, how: Ending, around: Surroundings) -> Span:
    told = facts.own(RunContextRecorded)
    context = told.event if told is not None else RunContextRecorded()
    start = maker.zero.wall_ns
    attributes: dict[str, Attribute] = {
        names.SPAN_KIND: "final",
        **identity(maker.zero.stream, maker.started),
        **_builder(around),
        **_artifact(state),
        **how.attributes(names.PIPELINE_RESULT),
        names.BUILD_OUTCOME: state.run.outcome or "",
        names.BUILD_COMPLETE: state.run.complete,
    }
    return maker.make(
        f"BUILD {maker.started.route}",
        ROOT,
        (min(start, context.queued_at_ns or start), _end_ns(maker, facts, state, around)),
        attributes,
        parent=context.parent_span_id,
        kind="server",
        how=how,
        links=_retried(maker.started.retry_of, context.retried_trace_id),
    )


def _executing(maker: SpanMaker, facts: Facts, phases: Iterable[PhaseRow], root: Span) -> Span:
    """From the run's start to the builder's return, with all that the phases took."""
    start = maker.zero.wall_ns
    returned = facts.own(BuilderReturned)
    end = root.end_ns if returned is None else maker.at(returned.record)
    return _stage(maker, root, "run.executing", "executing", (start, max([end, start + SHORTEST_NS, *_ends(phases)])))


def _before_and_after(maker: SpanMaker, root: Span, executing: Span) -> Iterable[Span]:
    if root.start_ns + SHORTEST_NS <= executing.start_ns:
        yield _stage(maker, root, "run.queued", "pending", (root.start_ns, executing.start_ns))
    if executing.end_ns + SHORTEST_NS <= root.end_ns:
        yield _stage(maker, root, "run.finalizing", "finalizing", (executing.end_ns, root.end_ns))


def _stage(maker: SpanMaker, root: Span, name: str, stage: names.RunStage, times: Times) -> Span:
    attributes = {names.SPAN_KIND: "final", names.PIPELINE_RUN_STATE: stage}
    return maker.make(name, stage, times, attributes, parent=root.span_id)


def _builder(around: Surroundings) -> Attributes:
    attributes: dict[str, Attribute] = {}
    baseline, cache = around.baseline, around.timing_cache
    if baseline is not None:
        known = {
            names.VERSION: baseline.tensorrt_version,
            names.BUILD_CONFIG_HASH: baseline.build_config_hash,
            names.HW_DRIVER_VERSION: baseline.driver_version,
        }
        attributes |= {name: value for name, value in known.items() if value is not None}
        attributes[names.BUILD_TARGETS] = tuple(baseline.targets)
        if baseline.gpu_sku is not None and baseline.gpu_sku != "none":
            attributes |= {names.HW_TYPE: "gpu", names.HW_NAME: baseline.gpu_sku}
    if cache is not None:
        attributes[names.TIMING_CACHE_REASON] = cache.reason
        if cache.mode is not None:
            attributes[names.TIMING_CACHE_MODE] = cache.mode
    return attributes


def _artifact(state: RunState) -> Attributes:
    digest = state.run.artifact_sha256
    if digest is None:
        return {}
    sizes = [row.size_bytes for row in state.artifacts if row.sha256 == digest and row.size_bytes is not None]
    return {names.ENGINE_SHA256: digest, **({names.ENGINE_SIZE: sizes[0]} if sizes else {})}


def _retried(run_id: str | None, trace_id: str | None) -> tuple[SpanLink, ...]:
    if run_id is None or trace_id is None:
        return ()
    root = ids.span_id(run_id, ids.ROOT_ORDINAL)
    return (SpanLink(trace_id=trace_id, span_id=root, attributes={names.LINK_KIND: "retry_of"}),)


def _end_ns(maker: SpanMaker, facts: Facts, state: RunState, around: Surroundings) -> int:
    """Return the last that is known of the run. That a run was lost may be declared hours after it died."""
    start = maker.zero.wall_ns
    ends = [start + SHORTEST_NS, *_ends(state.phases)]
    if state.run.outcome == "lost":
        ends.append(around.last_seen_ns or start)
    else:
        ends += [maker.at(fact.record) for cls in _ENDS for fact in facts.all(cls)]
    return max(ends)


def _ends(phases: Iterable[PhaseRow]) -> list[int]:
    return [row.started_at_ns + (row.duration_ns or 0) for row in phases if row.started_at_ns is not None]
