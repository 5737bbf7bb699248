"""otel-config.yaml in the real OTel Collector: valid, and every span and metric where it belongs."""

import os
import subprocess
import uuid
from pathlib import Path

import pytest

from deploy.services.cache import BuildCache, default_folder
from deploy.services.otelcol import CONFIG, otelcol_program
from deploy.services.tools import Tools
from tests.services.answers import eventually
from tests.telemetry.backends import by_label, in_jaeger, in_kafka
from tests.telemetry.conftest import TelemetryServices
from tests.telemetry.sending import Writer, accepted, exporter, span_ids, trace_id

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
