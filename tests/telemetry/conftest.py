"""One line of real services for all tests of spans and metrics: OTel Collector, Jaeger, Kafka, Prometheus."""

from collections.abc import Iterator
from dataclasses import dataclass

import pytest
from kafka import KafkaAdminClient

from deploy.services import Services
from deploy.services.ports import HOST

TOPIC = "otlp_spans"  # the default of otel-config.yaml


@dataclass(frozen=True)
class TelemetryServices:
    """Where the services of the session answer."""

    services: Services  # of these four, except Kafka: to stop, kill and start them
    otlp_http: str  # base URL, for OTEL_EXPORTER_OTLP_ENDPOINT
    otlp_grpc: str  # the same for OTEL_EXPORTER_OTLP_PROTOCOL=grpc
    jaeger: str  # base URL of the query API; every span as often as it came
    prometheus: str  # base URL of the HTTP API
    kafka: str  # HOST:PORT, the broker that all tests share
    topic: str = TOPIC  # one record per trace and batch, OTLP protobuf


@pytest.fixture(scope="session")
def span_topic(services: Services) -> str:
    """The address of the shared broker, with the topic of spans on it."""
    address = services.start("kafka")
    with KafkaAdminClient(bootstrap_servers=address) as admin:
        if TOPIC not in admin.list_topics():
            admin.create_topics({TOPIC: {"num_partitions": 2, "replication_factor": 1}}, wait_for_metadata=True)
    return address


@pytest.fixture(scope="session")
def telemetry_services(
    span_topic: str, environ: dict[str, str], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[TelemetryServices]:
    """The whole line, started once, with short intervals and a Jaeger that shows duplicates."""
    quick = {"OTELCOL_SPAN_METRICS_INTERVAL": "1s", "PROMETHEUS_SCRAPE_INTERVAL": "1s", "JAEGER_STORAGE": "memory"}
    folder = tmp_path_factory.mktemp("telemetry") / "home"
    mine = Services(folder, {**environ, **quick, "KAFKA_BOOTSTRAP": span_topic}, print)
    try:
        jaeger, otlp_http, prometheus = (mine.start(name) for name in ("jaeger", "otelcol", "prometheus"))
        yield TelemetryServices(
            services=mine,
            otlp_http=otlp_http,
            otlp_grpc=f"http://{HOST}:{mine.port('otelcol', 'otlp_grpc')}",
            jaeger=jaeger,
            prometheus=prometheus,
            kafka=span_topic,
        )
    finally:
        mine.purge()
