"""Spans as OTLP JSON: what a file of them holds, and what a backend takes."""

import json
import urllib.request
from collections.abc import Iterable
from typing import Any

from build_events.telemetry.span import Attribute, Attributes, Span

KINDS = {"internal": 1, "server": 2}
STATUSES = {"unset": 0, "ok": 1, "error": 2}


def document(spans: Iterable[Span]) -> dict[str, Any]:
    """Return an export request with the spans, each with a resource of its own."""
    return {
        "resourceSpans": [
            {
                "resource": {"attributes": _attributes(span.resource)},
                "scopeSpans": [{"scope": {"name": "tests"}, "spans": [_span(span)]}],
            }
            for span in spans
        ]
    }


def send(endpoint: str, spans: Iterable[Span]) -> None:
    """Send spans by OTLP over HTTP; returns once they are accepted."""
    body = json.dumps(document(spans)).encode()
    request = urllib.request.Request(f"{endpoint}/v1/traces", body, {"Content-Type": "application/json"})  # noqa: S310
    with urllib.request.urlopen(request, timeout=5) as answer:  # noqa: S310 # an address of our own
        assert answer.status == 200


def _span(span: Span) -> dict[str, Any]:
    return {
        "traceId": span.trace_id,
        "spanId": span.span_id,
        "parentSpanId": span.parent_span_id or "",
        "name": span.name,
        "kind": KINDS[span.kind],
        "startTimeUnixNano": str(span.start_ns),
        "endTimeUnixNano": str(span.end_ns),
        "attributes": _attributes(span.attributes),
        "status": {"code": STATUSES[span.status], "message": span.status_description or ""},
        "events": [
            {"name": event.name, "timeUnixNano": str(event.at_ns), "attributes": _attributes(event.attributes)}
            for event in span.events
        ],
        "links": [
            {"traceId": link.trace_id, "spanId": link.span_id, "attributes": _attributes(link.attributes)}
            for link in span.links
        ],
    }


def _attributes(attributes: Attributes) -> list[dict[str, Any]]:
    return [{"key": key, "value": _value(value)} for key, value in attributes.items()]


def _value(value: Attribute) -> dict[str, Any]:
    match value:
        case bool():
            return {"boolValue": value}
        case int():
            return {"intValue": str(value)}
        case float():
            return {"doubleValue": value}
        case str():
            return {"stringValue": value}
        case _:
            return {"arrayValue": {"values": [_value(item) for item in value]}}
