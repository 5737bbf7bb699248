"""Finished spans and metrics of the OpenTelemetry SDK, by providers of one's own."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

from opentelemetry.exporter.otlp.proto.grpc.trace_exporter import OTLPSpanExporter as GrpcSpanExporter
from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter as HttpSpanExporter
from opentelemetry.metrics import Meter
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import PeriodicExportingMetricReader
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor, SpanExporter, SpanExportResult
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

TIMEOUT_S = 10.0


class Writer:
    """A process that makes spans, as far as the backends can tell: a service name and an instance id."""

    def __init__(self, service: str, instance: str) -> None:
        self.resource = Resource({"service.name": service, "service.instance.id": instance})
        self._finished = InMemorySpanExporter()
        self._provider = TracerProvider(resource=self.resource, shutdown_on_exit=False)
        self._provider.add_span_processor(SimpleSpanProcessor(self._finished))
        self._tracer = self._provider.get_tracer("tests")

    def trace(self, spans: Mapping[str, Mapping[str, str]]) -> tuple[ReadableSpan, ...]:
        """Return finished spans of one trace, by name with their attributes; the first is the parent of the others."""
        names = iter(spans)
        root = next(names)
        with self._tracer.start_as_current_span(root, attributes=spans[root]):
            for name in names:
                self._tracer.start_span(name, attributes=spans[name]).end()
        made = self._finished.get_finished_spans()
        self._finished.clear()
        return tuple(made)


def span_ids(spans: Sequence[ReadableSpan]) -> set[str]:
    """Return the span ids as backends show them."""
    return {f"{span.context.span_id:016x}" for span in spans}


def trace_id(spans: Sequence[ReadableSpan]) -> str:
    """Return the trace id of spans of one trace as backends show it."""
    (found,) = {f"{span.context.trace_id:032x}" for span in spans}
    return found


@contextmanager
def exporter(endpoint: str, protocol: str = "http/protobuf", timeout_s: float = TIMEOUT_S) -> Iterator[SpanExporter]:
    """Give an OTLP exporter to an OTel Collector, closed at the end."""
    made: SpanExporter = (
        GrpcSpanExporter(endpoint=endpoint, insecure=True, timeout=timeout_s)
        if protocol == "grpc"
        else HttpSpanExporter(endpoint=f"{endpoint}/v1/traces", timeout=timeout_s)
    )
    try:
        yield made
    finally:
        made.shutdown()


def accepted(to: SpanExporter, spans: Sequence[ReadableSpan]) -> bool:
    """Export spans; return whether the OTel Collector answered with success."""
    return to.export(spans) is SpanExportResult.SUCCESS


@contextmanager
def meter(endpoint: str, writer: Writer) -> Iterator[Meter]:
    """Give a meter whose metrics have been exported when the block ends."""
    reader = PeriodicExportingMetricReader(OTLPMetricExporter(endpoint=f"{endpoint}/v1/metrics", timeout=TIMEOUT_S))
    provider = MeterProvider([reader], resource=writer.resource, shutdown_on_exit=False)
    try:
        yield provider.get_meter("tests")
    finally:
        provider.shutdown()
