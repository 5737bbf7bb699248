"""otel-config.yaml in the real OTel Collector: valid, and every span and metric where it belongs."""

import os
import re
import subprocess
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from deploy.services import Services
from deploy.services.cache import BuildCache, default_folder
from deploy.services.otelcol import CONFIG, otelcol_program
from deploy.services.tools import Tools
from tests.services.answers import eventually
from tests.telemetry.backends import by_label, in_jaeger, in_kafka, series, span_records
from tests.telemetry.conftest import TelemetryServices
from tests.telemetry.sending import Writer, accepted, exporter, meter, span_ids, trace_id

# A cold machine compiles for minutes first.
pytestmark = [pytest.mark.service, pytest.mark.timeout(1800)]


@pytest.fixture(scope="session")
def program(environ: dict[str, str]) -> str:
    """The path of the OTel Collector."""
    return otelcol_program(Tools(environ, print), BuildCache(default_folder(environ), print))


def validate(program: str, *configs: Path, **environ: str) -> subprocess.CompletedProcess[str]:
    """Run ``otelcol validate`` over configurations, merged in their order."""
    command = [program, "validate", *(f"--config={config}" for config in configs)]
    return subprocess.run(command, env=os.environ | environ, capture_output=True, text=True, timeout=60, check=False)


DOCS = CONFIG.with_name("docs") / "otel-collector.md"


def test_the_configuration_is_valid(program: str) -> None:
    """With its defaults alone, and without a word of deprecation."""
    done = validate(program, CONFIG)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


@pytest.mark.parametrize(
    ("line", "instead", "reason"),
    [
        ("max_elapsed_time: 0s", "max_elapsed_tine: 0s", "max_elapsed_tine"),
        ("receivers: [forward/finished]", "receivers: [forward/finnished]", "forward/finnished"),
        ('["trt.span.kind"] == "slice"', '["trt.span.kind"] = "slice"', "invalid syntax"),
        ("name: error.type", "name: service.name", "duplicate dimension name"),
    ],
    ids=["unknown setting", "unknown component", "bad condition", "dimension twice"],
)
def test_a_wrong_configuration_is_refused(program: str, tmp_path: Path, line: str, instead: str, reason: str) -> None:
    """The validation sees what is wrong in the parts that matter here."""
    text = CONFIG.read_text()
    assert line in text
    wrong = tmp_path / "wrong.yaml"
    wrong.write_text(text.replace(line, instead))
    done = validate(program, wrong)
    assert done.returncode != 0
    assert reason in done.stderr


def test_the_documented_second_file_is_merged_over_the_first(program: str, tmp_path: Path) -> None:
    """TLS and SASL for Kafka stand beside our own settings of the same exporter."""
    (example,) = re.findall(r"^```yaml\n(.*?)^```", DOCS.read_text(), flags=re.MULTILINE | re.DOTALL)
    second = tmp_path / "mine.yaml"
    (tmp_path / "ca.pem").touch()
    second.write_text(example.replace("/etc/kafka", str(tmp_path)))
    done = validate(program, CONFIG, second, KAFKA_SASL_PASSWORD="secret")  # noqa: S106 # of nothing
    assert (done.returncode, done.stderr) == (0, "")
    second.write_text(example.replace("SCRAM-SHA-512", "SCRAM-SHA-1"))
    assert "SCRAM-SHA-1" in validate(program, CONFIG, second).stderr


def test_the_documented_settings_are_those_of_the_configuration() -> None:
    """Every variable, with its default, and no other."""
    known = dict(re.findall(r"\$\{env:(\w+):-([^}]*)\}", CONFIG.read_text()))
    rows = re.findall(r"^\| (`[A-Z].*?) \| (.*?) \|", DOCS.read_text(), flags=re.MULTILINE)
    names = [name for row, _ in rows for name in re.findall(r"`(\w+)`", row)]
    defaults = [default for _, cell in rows for default in re.findall(r"`(.*?)`", cell)]
    assert dict(zip(names, defaults, strict=True)) == known


RUN = {
    "BUILD r": {"cicd.pipeline.name": "r", "cicd.pipeline.result": "cancellation", "trt.cancel.source": "ctrl_c"},
    "run.started r": {"trt.span.kind": "anchor", "cicd.pipeline.name": "r"},
    "phase.started tactics": {"trt.span.kind": "marker"},
    "phase.slice tactics": {"trt.span.kind": "slice"},
    "tactics": {"trt.span.kind": "final", "cicd.pipeline.run.id": "run-1"},
}


@pytest.mark.parametrize("protocol", ["http/protobuf", "grpc"])
def test_spans_arrive_in_jaeger_and_kafka_once_and_the_finished_ones_in_prometheus(
    telemetry_services: TelemetryServices, protocol: str
) -> None:
    """Both protocols: the same ids in Jaeger and on the topic; markers, slices and anchors are no calls."""
    line, service = telemetry_services, f"service-{uuid.uuid4()}"
    spans = Writer(service, "process-1").trace(RUN)
    trace, ids = trace_id(spans), span_ids(spans)
    with exporter(line.otlp_grpc if protocol == "grpc" else line.otlp_http, protocol) as to:
        assert accepted(to, spans)
    once = dict.fromkeys(ids, 1)
    assert in_jaeger(line.jaeger, [trace], ids) == once
    assert in_kafka(line.kafka, line.topic, [trace], ids) == once
    calls = f'traces_span_metrics_calls_total{{service_name="{service}"}}'
    wanted = {"BUILD r": 1, "tactics": 1}
    assert eventually(lambda: by_label(line.prometheus, calls, "span_name"), wanted.__eq__) == wanted


def test_a_request_larger_than_a_kafka_record_is_split_not_dropped(telemetry_services: TelemetryServices) -> None:
    """Three megabytes in one export, which the topic takes at most one of in a record."""
    line = telemetry_services
    spans = Writer("large", "process-1").trace({f"span {number}": {"text": "x" * 75_000} for number in range(40)})
    trace, ids = trace_id(spans), span_ids(spans)
    with exporter(line.otlp_http) as to:
        assert accepted(to, spans)
    assert in_kafka(line.kafka, line.topic, [trace], ids) == dict.fromkeys(ids, 1)
    assert in_jaeger(line.jaeger, [trace], ids) == dict.fromkeys(ids, 1)
    parts = {record.partition for record in span_records(line.kafka, line.topic) if record.key == trace}
    assert len(parts) == 1


def test_metrics_of_each_process_arrive_in_prometheus_under_its_own_instance(
    telemetry_services: TelemetryServices,
) -> None:
    """Two processes with one counter: `job` is the service, `instance` the process, the sum is the fleet's."""
    line, service = telemetry_services, f"service-{uuid.uuid4()}"
    for number in (1, 2):
        with meter(line.otlp_http, Writer(service, f"process-{number}")) as metrics:
            metrics.create_counter("trt.test.drops", unit="{span}").add(number)
    counters, wanted = f'trt_test_drops_total{{job="{service}"}}', {"process-1": 1, "process-2": 2}
    assert eventually(lambda: by_label(line.prometheus, counters, "instance"), wanted.__eq__) == wanted


def test_span_metrics_are_one_series_for_all_processes_of_a_service(telemetry_services: TelemetryServices) -> None:
    """Two processes, one build each: a counter of two, of the writer that is the OTel Collector; hours have buckets."""
    line, service = telemetry_services, f"service-{uuid.uuid4()}"
    with exporter(line.otlp_http) as to:
        for number in (1, 2):
            assert accepted(to, Writer(service, f"process-{number}").trace(RUN))
    calls = f'traces_span_metrics_calls_total{{service_name="{service}", trt_cancel_source="ctrl_c"}}'
    address = f"127.0.0.1:{line.services.port('otelcol', 'prometheus')}"
    assert eventually(lambda: by_label(line.prometheus, calls, "instance"), {address: 2}.__eq__) == {address: 2}
    (labels,) = (one["metric"] for one in series(line.prometheus, calls))
    assert (labels["cicd_pipeline_name"], labels["cicd_pipeline_result"]) == ("r", "cancellation")
    assert "cicd_pipeline_run_id" not in labels
    buckets = f'traces_span_metrics_duration_seconds_bucket{{service_name="{service}", span_name="BUILD r"}}'
    bounds = by_label(line.prometheus, buckets, "le")
    assert max(float(bound) for bound in bounds if bound != "+Inf") == 8 * 3600


@pytest.fixture
def alone(tmp_path: Path, environ: dict[str, str]) -> Iterator[Services]:
    """Services of a folder where neither Jaeger nor Kafka was ever started; small queues."""
    mine = Services(tmp_path / "home", {**environ, "OTELCOL_QUEUE_BYTES": str(QUEUE)}, print)
    yield mine
    mine.purge()


QUEUE = 300_000


def test_alone_it_accepts_what_its_queues_hold_and_refuses_the_rest(alone: Services) -> None:
    """Nothing behind it: exports succeed until the disk's share is full; what was accepted arrives later."""
    writer, wanted, traces = Writer("alone", "process-1"), set[str](), list[str]()
    with exporter(alone.start("otelcol"), timeout_s=1.0) as to:
        while accepted(to, spans := writer.trace({"BUILD r": {"text": "x" * 20_000}})):
            wanted |= span_ids(spans)
            traces.append(trace_id(spans))
    assert QUEUE // 20_500 - 1 <= len(traces) <= QUEUE // 20_000
    alone.start("jaeger")
    assert wanted <= in_jaeger(alone.address("jaeger"), traces, wanted).keys()
    log = alone.log("otelcol").read_text()
    assert "sending queue is full" in log
    assert "Dropping data" not in log
