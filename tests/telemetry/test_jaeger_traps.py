"""What a stock Jaeger does with a faulty span, and that the lint finds it there: the traps that the rules are for."""

import dataclasses
from collections.abc import Callable

import pytest

from analytics.trace_lint import LintCode, lint
from build_events import ids
from build_events.telemetry import names
from build_events.telemetry.run_spans import Intervals, RunSpans
from build_events.telemetry.span import Span
from deploy.services.ports import HOST
from enginetrail.jaeger import JaegerTrace, read_trace
from tests.build_events.scenes import Scene, flatten
from tests.build_events.test_spans import traced
from tests.services.answers import eventually
from tests.telemetry.conftest import TelemetryServices
from tests.telemetry.otlp_documents import send

pytestmark = [pytest.mark.service, pytest.mark.timeout(1800)]
Fault = Callable[[list[Span]], list[Span]]


def clean_run(trace_id: str) -> list[Span]:
    """Return the spans of a run with markers, in a trace of its own; the anchor is the first, the root in it."""
    records = traced(Scene().play("completed", flatten((((), ()), ())), 9))
    spans = RunSpans(Intervals(marker_after_ns=0))
    made = [*spans.take(records), *spans.final()]
    return [
        dataclasses.replace(
            span,
            trace_id=trace_id,
            links=tuple(dataclasses.replace(link, trace_id=trace_id) for link in span.links),
            resource={**span.resource, names.SERVICE_NAME: "traps"},
        )
        for span in made
    ]


def homeless(spans: list[Span]) -> list[Span]:
    """Return the spans without a resource, so without a host."""
    return [dataclasses.replace(span, resource={}) for span in spans]


def short_marker(spans: list[Span], duration_ns: int) -> list[Span]:
    """Return the spans, the first marker as long as is said."""
    place = next(place for place, span in enumerate(spans) if span.attributes[names.SPAN_KIND] == "marker")
    end_ns = spans[place].start_ns + duration_ns
    return [*spans[:place], dataclasses.replace(spans[place], end_ns=end_ns), *spans[place + 1 :]]


FAULTS: dict[str, tuple[Fault, set[LintCode], str]] = {
    "nothing": (lambda spans: spans, set(), ""),
    "the same span twice": (
        lambda spans: [*spans, dataclasses.replace(spans[-1], end_ns=spans[-1].end_ns + 1)],
        {LintCode.REPEATED_ID, LintCode.BACKEND_WARNING},
        "duplicate span IDs",
    ),
    "a byte for byte equal span": (lambda spans: [*spans, spans[-1]], {LintCode.REPEATED_ID}, ""),
    "a span without length": (
        lambda spans: short_marker(spans, 0),
        {LintCode.BACKEND_WARNING, LintCode.SHORT_MARKER},  # Jaeger gives it a nanosecond
        "Negative duration detected",
    ),
    "a lost anchor": (
        lambda spans: spans[1:],
        {LintCode.PARENT_MISSING, LintCode.BACKEND_WARNING},
        "invalid parent span IDs",
    ),
    "no host and short markers": (
        lambda spans: homeless(short_marker(spans, 1000)),
        {LintCode.HOST_MISSING, LintCode.SHORT_MARKER, LintCode.BACKEND_WARNING},
        "clock skew adjustment disabled; not applying calculated delta",
    ),
    "a phase longer than its run, without a host": (
        lambda spans: homeless([*spans[:-1], dataclasses.replace(spans[-1], start_ns=1000)]),
        {LintCode.HOST_MISSING, LintCode.OUTSIDE_PARENT, LintCode.BACKEND_WARNING},
        "clock skew adjustment disabled; not applying calculated delta",
    ),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_what_jaeger_stumbles_over_is_found(telemetry_services: TelemetryServices, fault: str) -> None:
    """By its rule, beside Jaeger's own warning where it has one; to ask changes nothing of what is there."""
    break_, codes, warning = FAULTS[fault]
    sent = break_(clean_run(ids.trace_id()))
    send(f"http://{HOST}:{telemetry_services.services.port('jaeger', 'otlp_http')}", sent)

    def read() -> JaegerTrace:
        return read_trace(telemetry_services.jaeger, sent[0].trace_id)

    found = eventually(read, lambda trace: len(trace.spans) >= len(sent))
    findings = lint(found.spans, ended=True, warnings=found.warnings)
    assert {finding.code for finding in findings} == codes
    texts = {finding.text for finding in findings if finding.code is LintCode.BACKEND_WARNING}
    assert any(warning in text for text in texts) == bool(warning)
    assert read() == found
