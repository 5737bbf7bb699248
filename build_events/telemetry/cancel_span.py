"""A cancellation as a span of its own: from the winning request until nothing of the run is left. Pure."""

from build_events.events import (
    BuilderReturned,
    CancelObserved,
    CancelRequested,
    CancelSignalled,
    CleanupFinished,
    Event,
    ProcessExited,
)
from build_events.facts import Facts
from build_events.state import CancellationRow
from build_events.telemetry import names
from build_events.telemetry.making import SpanMaker, within
from build_events.telemetry.span import Attribute, Span, SpanEvent

_STEPS: tuple[tuple[str, type[Event]], ...] = (
    ("cancel.signalled", CancelSignalled),
    ("cancel.observed", CancelObserved),
    ("builder.returned", BuilderReturned),
    ("cleanup.finished", CleanupFinished),
    ("process.exited", ProcessExited),
)


def cancel_span(maker: SpanMaker, facts: Facts, row: CancellationRow, root: Span) -> Span:
    """Return the span of the winning request, its steps as span events in the order of their times."""
    request = next(fact for fact in facts.all(CancelRequested) if fact.event.request_id == row.request_id)
    start = maker.at(request.record)
    reached = [
        SpanEvent(name=name, at_ns=maker.at(fact.record))
        for name, cls in _STEPS
        if (fact := facts.first(cls)) is not None and maker.at(fact.record) >= start
    ]
    cleaned = [step.at_ns for step in reached if step.name == "cleanup.finished"]
    end = max(cleaned or [step.at_ns for step in reached] or [root.end_ns])
    attributes: dict[str, Attribute] = {
        names.SPAN_KIND: "final",
        names.PIPELINE_NAME: maker.started.route,
        names.CANCEL_SOURCE: row.source,
        names.CANCEL_MODE: _mode(facts),
    }
    if request.event.reason is not None:
        attributes[names.CANCEL_REASON] = request.event.reason
    return maker.make(
        "run.cancelled",
        "cancel",
        within(root, start, end),
        attributes,
        parent=root.span_id,
        events=[
            SpanEvent(name="cancel.requested", at_ns=start),
            *sorted(reached, key=lambda step: step.at_ns),
        ],
    )


def _mode(facts: Facts) -> str:
    """Return what ended the build: the strongest signal that its supervisor sent, else its own cooperation."""
    exited = facts.first(ProcessExited)
    sent = exited.event.signals_sent if exited is not None else []
    return sent[-1].lower() if sent else "cooperative"
