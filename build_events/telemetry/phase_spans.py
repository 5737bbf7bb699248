"""The true spans of the phases, once their run has ended. Pure."""

from collections.abc import Iterable

from build_events.clock import NS_PER_S
from build_events.state import PhaseRow
from build_events.telemetry import names
from build_events.telemetry.live_spans import marker_name
from build_events.telemetry.making import SpanMaker, within
from build_events.telemetry.results import Ending, phase_ending
from build_events.telemetry.span import Attribute, Attributes, Span, SpanLink


def phase_spans(
    maker: SpanMaker, rows: Iterable[PhaseRow], executing: Span, run: Ending, marked: frozenset[int]
) -> Iterable[Span]:
    """Return the spans, parents before children: ``rows`` are by phase id, and a parent begins before its child."""
    spans: dict[int, Span] = {}
    for row in rows:
        parent = spans.get(row.parent_id, executing) if row.parent_id is not None else executing
        start = row.started_at_ns if row.started_at_ns is not None else parent.start_ns
        end = parent.end_ns if row.duration_ns is None else start + row.duration_ns
        how = phase_ending(row.status, run)
        spans[row.phase_id] = maker.make(
            row.name,
            str(row.phase_id),
            within(parent, start, end),
            {**_attributes(row), **how.attributes(names.TASK_RUN_RESULT)},
            parent=parent.span_id,
            how=how,
            links=[_marker(maker, row.phase_id)] if row.phase_id in marked else (),
        )
    return spans.values()


def _attributes(row: PhaseRow) -> Attributes:
    attributes: dict[str, Attribute] = {
        names.SPAN_KIND: "final",
        names.TASK_NAME: row.name,
        names.TASK_TYPE: "build",
        names.TASK_RUN_ID: f"{row.run_id}/{row.phase_id}",
        # The convention requires a URL; there is no page of a phase that every user has.
        names.TASK_RUN_URL: f"urn:enginetrail:{row.run_id}:{row.phase_id}",
        names.PHASE_INSTANCE_ID: row.phase_id,
        names.PHASE_STATUS: row.status,
        names.PHASE_STEPS_TOTAL: row.steps_total,
        names.PHASE_STEPS_COMPLETED: row.steps_seen,
    }
    if row.parent_id is not None:
        attributes[names.PHASE_PARENT_INSTANCE_ID] = row.parent_id
    if row.longest_gap_ns is not None:
        attributes[names.PHASE_LONGEST_GAP] = row.longest_gap_ns / NS_PER_S
    return attributes


def _marker(maker: SpanMaker, phase_id: int) -> SpanLink:
    return SpanLink(
        trace_id=maker.zero.stream.trace_id or "",
        span_id=maker.span_id(marker_name(phase_id)),
        attributes={names.LINK_KIND: "marker"},
    )
