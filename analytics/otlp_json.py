"""Spans out of OTLP's JSON, as Jaeger's API v3 and the OTel Collector's file exporter write it. Pure."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal

from build_events.errors import EngineTrailError
from build_events.telemetry.span import Attribute, Attributes, Span, SpanEvent, SpanLink

WARNINGS = "@jaeger@warnings"  # where Jaeger keeps its warnings of a span in API v3
_STATUSES: Mapping[object, Literal["ok", "error"]] = {
    1: "ok", 2: "error", "STATUS_CODE_OK": "ok", "STATUS_CODE_ERROR": "error",
}  # fmt: skip
_SERVER = (2, "SPAN_KIND_SERVER")


class OtlpJsonError(EngineTrailError):
    """What was read is no OTLP JSON of spans."""


def spans_of(document: Any) -> list[Span]:
    """Return the spans of a document with ``resourceSpans``, each as often as it is there.

    Raises:
        OtlpJsonError: it is not one.
    """
    try:
        return list(_spans(document["resourceSpans"]))
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise OtlpJsonError(
            f"no OTLP JSON of spans ({type(error).__name__}: {error}); it is an object with `resourceSpans`"
        ) from None


def _spans(resource_spans: Sequence[Any]) -> Iterator[Span]:
    for of in resource_spans:
        resource = _attributes(of.get("resource", {}))
        for scope in of.get("scopeSpans", ()):
            for span in scope.get("spans", ()):
                yield _span(span, resource)


def _span(span: Mapping[str, Any], resource: Attributes) -> Span:
    status = span.get("status", {})
    return Span(
        name=str(span["name"]),
        trace_id=str(span["traceId"]).lower(),
        span_id=str(span["spanId"]).lower(),
        parent_span_id=str(span.get("parentSpanId") or "").lower() or None,
        kind="server" if span.get("kind") in _SERVER else "internal",
        start_ns=int(span["startTimeUnixNano"]),
        end_ns=int(span["endTimeUnixNano"]),
        attributes=_attributes(span),
        status=_STATUSES.get(status.get("code"), "unset"),
        status_description=status.get("message") or None,
        events=tuple(
            SpanEvent(name=str(event["name"]), at_ns=int(event["timeUnixNano"]), attributes=_attributes(event))
            for event in span.get("events", ())
        ),
        links=tuple(
            SpanLink(trace_id=link["traceId"], span_id=link["spanId"], attributes=_attributes(link))
            for link in span.get("links", ())
        ),
        resource=resource,
    )


def _attributes(holder: Mapping[str, Any]) -> Attributes:
    return {str(item["key"]): _value(item.get("value", {})) for item in holder.get("attributes", ())}


def _value(value: Mapping[str, Any]) -> Attribute:
    match value:
        case {"stringValue": str(text)}:
            return text
        case {"boolValue": bool(flag)}:
            return flag
        case {"intValue": number}:
            return int(number)
        case {"doubleValue": number}:
            return float(number)
        case {"arrayValue": {"values": list(items)}}:
            return tuple(str(_value(item)) for item in items)
        case _:
            return ()
