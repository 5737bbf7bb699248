"""What Jaeger, Kafka and Prometheus hold of spans and metrics, asked as any client asks."""

import itertools
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from kafka import KafkaConsumer, TopicPartition
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from tests.services.answers import PATIENCE_S, eventually, get

Spans = Counter[str]  # how often each span id is there, in hexadecimal digits


def jaeger_spans(jaeger: str, trace: str, *, stored: bool = False) -> list[dict[str, Any]]:
    """Return the spans of a trace as Jaeger's API has them; none while it does not know the trace.

    Without ``stored`` spans that are equal to the byte are told once, and warnings come with them.
    """
    found = get(f"{jaeger}/api/traces/{trace}{'?raw=true' if stored else ''}") or {}
    return [span for known in found.get("data") or () for span in known["spans"]]


def in_jaeger(jaeger: str, traces: Iterable[str], wanted: set[str], patience_s: float = PATIENCE_S) -> Spans:
    """Return how often Jaeger has each span of the traces, once it has all wanted or no more time is left."""
    asked = list(traces)

    def ids() -> Spans:
        return Counter(span["spanID"] for trace in asked for span in jaeger_spans(jaeger, trace, stored=True))

    return eventually(ids, lambda found: wanted <= found.keys(), patience_s)


@dataclass(frozen=True)
class SpanRecord:
    """One record of the topic of spans."""

    partition: int
    key: str
    spans: tuple[Span, ...]

    def ids(self) -> list[str]:
        """Return the ids of its spans."""
        return [span.span_id.hex() for span in self.spans]


def span_records(kafka: str, topic: str) -> list[SpanRecord]:
    """Return every record that the topic of spans has at the time of the call."""
    consumer = KafkaConsumer(bootstrap_servers=kafka, consumer_timeout_ms=int(PATIENCE_S * 1000))
    try:
        seats = [TopicPartition(topic, number) for number in consumer.partitions_for_topic(topic)]
        consumer.assign(seats)
        consumer.seek_to_beginning()
        count = sum(consumer.end_offsets(seats).values())
        return [
            SpanRecord(record.partition, record.key.decode(), decoded(record.value))
            for record in itertools.islice(consumer, count)
        ]
    finally:
        consumer.close()


def decoded(value: bytes) -> tuple[Span, ...]:
    """Return the spans of a record's value (`otlp_proto`: an export request)."""
    request = ExportTraceServiceRequest.FromString(value)
    return tuple(span for of in request.resource_spans for scope in of.scope_spans for span in scope.spans)


def in_kafka(kafka: str, topic: str, traces: Iterable[str], wanted: set[str], patience_s: float = PATIENCE_S) -> Spans:
    """Return how often the topic has each span of the traces, once it has all wanted or no more time is left."""
    asked = set(traces)

    def ids() -> Spans:
        return Counter(name for record in span_records(kafka, topic) if record.key in asked for name in record.ids())

    return eventually(ids, lambda found: wanted <= found.keys(), patience_s)


def series(prometheus: str, query: str) -> list[dict[str, Any]]:
    """Return the series that a PromQL query gives now: each with `metric` (its labels) and `value`."""
    found = get(f"{prometheus}/api/v1/query?query={quote(query)}")
    return list(found["data"]["result"])


def by_label(prometheus: str, query: str, label: str) -> dict[str, float]:
    """Return the value of each series that a PromQL query gives now, by one of its labels."""
    return {one["metric"].get(label, ""): float(one["value"][1]) for one in series(prometheus, query)}
