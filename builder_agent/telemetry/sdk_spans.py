"""Our spans as the OpenTelemetry SDK's: the ids, times and parents that they have, and nothing dropped."""

from collections.abc import Iterable, Mapping

from opentelemetry.context import Context
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan, SpanLimits, SpanProcessor, TracerProvider
from opentelemetry.sdk.trace.id_generator import IdGenerator
from opentelemetry.sdk.trace.sampling import ALWAYS_ON
from opentelemetry.trace import (
    Link,
    NonRecordingSpan,
    SpanContext,
    SpanKind,
    Status,
    StatusCode,
    TraceFlags,
    Tracer,
    set_span_in_context,
)
from typing_extensions import override

from build_events.telemetry import names
from build_events.telemetry.span import Attributes, Span

_UNLIMITED = SpanLimits(
    max_attributes=SpanLimits.UNSET,
    max_events=SpanLimits.UNSET,
    max_links=SpanLimits.UNSET,
    max_span_attributes=SpanLimits.UNSET,
    max_event_attributes=SpanLimits.UNSET,
    max_link_attributes=SpanLimits.UNSET,
    max_attribute_length=SpanLimits.UNSET,
    max_span_attribute_length=SpanLimits.UNSET,
)
_KINDS = {"server": SpanKind.SERVER, "internal": SpanKind.INTERNAL}
_STATUS = {"unset": StatusCode.UNSET, "ok": StatusCode.OK, "error": StatusCode.ERROR}
_SAMPLED = TraceFlags(TraceFlags.SAMPLED)


class SdkSpans:
    """Makes them with TracerProviders of its own, never the host's; one for each process that spans are about."""

    def __init__(self, resource: Mapping[str, str]) -> None:
        """``resource`` is the user's, and wins over what the spans say."""
        self._resource = resource
        self._ids = _GivenIds()
        self._ended = _Ended()
        self._tracers: dict[tuple[tuple[str, object], ...], Tracer] = {}

    def convert(self, spans: Iterable[Span]) -> list[ReadableSpan]:
        """Return the same spans, as an exporter takes them."""
        for span in spans:
            self._convert(span)
        ended, self._ended.spans = self._ended.spans, []
        return ended

    def _convert(self, span: Span) -> None:
        self._ids.trace_id, self._ids.span_id = int(span.trace_id, 16), int(span.span_id, 16)
        links = [Link(_context(link.trace_id, link.span_id), dict(link.attributes)) for link in span.links]
        made = self._tracer(span.resource).start_span(
            span.name,
            context=_parent(span),
            kind=_KINDS[span.kind],
            attributes=dict(span.attributes),
            links=links,
            start_time=span.start_ns,
        )
        for event in span.events:
            made.add_event(event.name, dict(event.attributes), timestamp=event.at_ns)
        made.set_status(Status(_STATUS[span.status], span.status_description))
        made.end(end_time=span.end_ns)

    def _tracer(self, resource: Attributes) -> Tracer:
        attributes = {**resource, **self._resource}
        key = tuple(sorted(attributes.items()))
        if key not in self._tracers:
            provider = TracerProvider(
                sampler=ALWAYS_ON,
                resource=Resource(attributes, names.SCHEMA_URL),
                shutdown_on_exit=False,  # it would wait for the endpoint without a bound
                id_generator=self._ids,
                span_limits=_UNLIMITED,
            )
            provider.add_span_processor(self._ended)
            version = str(resource.get(names.SERVICE_VERSION, ""))
            self._tracers[key] = provider.get_tracer(names.SCOPE, version, names.SCHEMA_URL)
        return self._tracers[key]


class _GivenIds(IdGenerator):
    """Hands out the ids of the span that is being made: they are derived, and stand in the events."""

    trace_id = span_id = 0

    @override
    def generate_span_id(self) -> int:
        return self.span_id

    @override
    def generate_trace_id(self) -> int:
        return self.trace_id


class _Ended(SpanProcessor):
    """Keeps the spans, in place of the SDK's batches.

    Those drop the oldest silently when they are full, and their time-outs do not hold (measured: a flush
    of 2 s took 33 s, and said that all was well).
    """

    def __init__(self) -> None:
        self.spans: list[ReadableSpan] = []

    @override
    def on_end(self, span: ReadableSpan) -> None:
        self.spans.append(span)


def _parent(span: Span) -> Context:
    """Return a context with the span's parent; only that of a run's root is another process's."""
    if span.parent_span_id is None:
        return Context()
    parent = _context(span.trace_id, span.parent_span_id, is_remote=span.kind == "server")
    return set_span_in_context(NonRecordingSpan(parent), Context())


def _context(trace_id: str, span_id: str, *, is_remote: bool = False) -> SpanContext:
    return SpanContext(int(trace_id, 16), int(span_id, 16), is_remote=is_remote, trace_flags=_SAMPLED)
