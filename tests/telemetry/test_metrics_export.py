"""Metrics on their way to a real OTel Collector, and to endpoints that take nothing."""

import dataclasses
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from opentelemetry import metrics as opentelemetry_metrics

from build_events.envelope import Recorded
from build_events.events import ExportFinished
from build_events.telemetry import metrics, names
from build_events.telemetry.measurements import Measurement
from builder_agent.telemetry.environment import telemetry_settings
from builder_agent.telemetry.metrics import MetricsExport, RunMetrics
from builder_agent.telemetry.run_telemetry import RunTelemetry
from builder_agent.telemetry.settings import EXIT_S, SignalSettings, TelemetrySettings
from tests.build_events.scenes import Scene, flatten
from tests.builder_agent.builds import of_type, records_at
from tests.models import small_model
from tests.services.answers import eventually
from tests.telemetry.backends import by_label, series
from tests.telemetry.conftest import TelemetryServices
from tests.telemetry.fleet import FleetCli

pytestmark = [pytest.mark.service, pytest.mark.timeout(1800)]
BOUND_S = 1.5
INTERVAL = "OTEL_METRIC_EXPORT_INTERVAL"


def cancelled_run(run_id: str, route: str) -> list[Recorded]:
    """Return the records of a run that was cancelled; each takes a second of its clocks."""
    return Scene(run_id=run_id, route=route).play("cancelled", flatten([[]]), 2)


def settings_for(endpoint: str, **more: str) -> TelemetrySettings:
    """Return what the standard variables choose for an endpoint."""
    chosen = telemetry_settings({"OTEL_EXPORTER_OTLP_ENDPOINT": endpoint, **more})
    assert chosen.problems == ()
    return chosen


def test_the_interval_is_in_milliseconds_and_one_that_is_none_is_said() -> None:
    """As the specification has it; a wrong value fails nothing."""
    endpoint = {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://h:1"}
    assert telemetry_settings(endpoint).metric_interval_s == 60
    assert telemetry_settings({**endpoint, INTERVAL: "1500"}).metric_interval_s == 1.5
    wrong = telemetry_settings({**endpoint, INTERVAL: "-1"})
    assert (wrong.metric_interval_s, len(wrong.problems)) == (60, 1)
    assert wrong.problems[0].startswith(f"{INTERVAL}=-1 ")


@pytest.mark.parametrize("protocol", ["http/protobuf", "grpc"])
def test_a_run_is_active_in_prometheus_while_it_goes_on_and_measured_at_its_end(
    telemetry_services: TelemetryServices, protocol: str
) -> None:
    """Before the first interval is over, under its own instance, with buckets that reach hours."""
    line, route = telemetry_services, f"active/{protocol.partition('/')[0]}"
    endpoint = line.otlp_grpc if protocol == "grpc" else line.otlp_http
    records = cancelled_run(f"run-{protocol[:4]}", route)
    run = RunMetrics(settings_for(endpoint, OTEL_EXPORTER_OTLP_PROTOCOL=protocol))
    run.take(records[:3])
    active = f'cicd_pipeline_run_active{{cicd_pipeline_name="{route}"}}'
    state = names.PIPELINE_RUN_STATE.replace(".", "_")
    assert eventually(lambda: by_label(line.prometheus, active, state), bool) == {"executing": 1}
    run.take(records[3:])
    end = run.finish(10)
    assert end is not None
    assert (end.signal, end.dropped, end.reason) == ("metrics", 0, None)
    assert end.exported >= 2
    done = {"executing": 0.0, "finalizing": 0.0}
    assert eventually(lambda: by_label(line.prometheus, active, state), done.__eq__) == done
    (executing,) = series(
        line.prometheus,
        f'cicd_pipeline_run_duration_seconds_sum{{cicd_pipeline_name="{route}",{state}="executing"}}',
    )
    assert float(executing["value"][1]) > 1
    assert {
        "instance": executing["metric"]["instance"],
        "job": executing["metric"]["job"],
        "result": executing["metric"]["cicd_pipeline_result"],
    } == {"instance": records[0].stream.stream_id, "job": "enginetrail-build", "result": "cancellation"}
    longest = series(
        line.prometheus, f'cicd_pipeline_run_duration_seconds_bucket{{cicd_pipeline_name="{route}",le="28800.0"}}'
    )
    assert len(longest) == 2


def test_what_did_not_arrive_while_the_endpoint_was_away_is_in_what_arrives_later(
    telemetry_services: TelemetryServices,
) -> None:
    """Values are cumulative: nothing is dropped, as long as one reading arrives in the end."""
    line = telemetry_services
    chosen = settings_for(line.otlp_http).metrics
    assert chosen is not None
    line.services.stop("otelcol")
    try:
        export = MetricsExport(chosen, {names.SERVICE_INSTANCE_ID: "away"}, interval_s=0.05)
        export.add(lambda: [Measurement(metrics.SPOOL_WAITING, 41)])
        assert eventually(lambda: export._undelivered, lambda count: count >= 2) >= 2
    finally:
        line.services.start("otelcol")
    export.add(lambda: [Measurement(metrics.SPOOL_WAITING, 42)])
    end = export.finish(10)
    assert (end.dropped, end.reason) == (0, None)
    assert end.exported >= 1
    waiting = 'enginetrail_spool_waiting{instance="away"}'
    assert eventually(lambda: by_label(line.prometheus, waiting, "instance"), bool) == {"away": 42}


def test_a_run_whose_spans_are_lost_counts_them(telemetry_services: TelemetryServices) -> None:
    """The ends of both exporters are declared, and the spans' drops stand in the metrics."""
    chosen = settings_for(telemetry_services.otlp_http)
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    spans = settings_for(f"http://127.0.0.1:{port}").traces
    records = cancelled_run("run-without-spans", "without/spans")
    run = RunTelemetry(dataclasses.replace(chosen, traces=spans))
    run.take(records)
    end = run.finish(1.0)
    assert end is not None
    traces, measured = end.exports
    assert (traces.signal, traces.exported, traces.dropped > 0) == ("traces", 0, True)
    assert (measured.signal, measured.dropped) == ("metrics", 0)
    lost = f'enginetrail_run_dropped_total{{instance="{records[0].stream.stream_id}"}}'
    found = eventually(lambda: by_label(telemetry_services.prometheus, lost, "enginetrail_dropped_kind"), bool)
    assert found == {"span": traces.dropped}


@pytest.fixture
def silent() -> Iterator[str]:
    """The address of somebody who listens and never answers."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield f"http://127.0.0.1:{server.getsockname()[1]}"


@pytest.fixture(params=["refused", "silent"])
def deaf(request: pytest.FixtureRequest) -> Iterator[SignalSettings]:
    """An endpoint where nobody listens, or where somebody does and never answers."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        if request.param == "refused":
            server.close()
        chosen = settings_for(f"http://127.0.0.1:{port}").metrics
        assert chosen is not None
        yield chosen


@pytest.mark.quiet
def test_an_endpoint_that_takes_nothing_costs_its_bound_and_is_declared(
    deaf: SignalSettings, caplog: pytest.LogCaptureFixture
) -> None:
    """Nobody waits for it but the end, and that briefly; the host's logs stay empty."""
    began = time.monotonic()
    export = MetricsExport(deaf, {}, interval_s=0.05)
    for _ in range(1000):
        export.add(lambda: [Measurement(metrics.SPOOL_WAITING, 1)])
    added_s = time.monotonic() - began
    end = export.finish(BOUND_S)
    assert added_s < 0.5
    assert time.monotonic() - began < added_s + BOUND_S + 0.5
    assert (end.exported, end.dropped >= 1, bool(end.reason)) == (0, True, True)
    assert caplog.records == []


def test_one_measurement_that_fails_costs_no_other(telemetry_services: TelemetryServices) -> None:
    """It is said in the log; the rest arrives."""
    chosen = settings_for(telemetry_services.otlp_http).metrics
    assert chosen is not None
    export = MetricsExport(chosen, {names.SERVICE_INSTANCE_ID: "clumsy"}, interval_s=60)
    export.add(lambda: [Measurement(metrics.SPOOL_WAITING, 1, {names.PIPELINE_RUN_ID: "r"})])
    export.add(lambda: [Measurement(metrics.SPOOL_WAITING, 7)])
    assert export.finish(10).dropped == 0
    waiting = 'enginetrail_spool_waiting{instance="clumsy"}'
    assert eventually(lambda: by_label(telemetry_services.prometheus, waiting, "instance"), bool) == {"clumsy": 7}


def test_a_forked_child_exports_nothing_and_the_global_provider_stays_the_hosts(
    telemetry_services: TelemetryServices,
) -> None:
    """Two writers of one series, and a provider that somebody else meant to set, are both faults of ours."""
    before = opentelemetry_metrics.get_meter_provider()
    chosen = settings_for(telemetry_services.otlp_http).metrics
    assert chosen is not None
    export = MetricsExport(chosen, {names.SERVICE_INSTANCE_ID: "parent"}, interval_s=60)
    child = os.fork()
    if child == 0:
        end = export.finish(5)
        os._exit(0 if (end.exported, end.dropped) == (0, 0) else 1)
    assert os.waitpid(child, 0)[1] == 0
    assert export.finish(10).dropped == 0
    assert opentelemetry_metrics.get_meter_provider() is before


EMBEDDED = """
import builder_agent
with builder_agent.observe(route="r/fp32/sm89", output="o.engine"):
    pass
"""


@pytest.mark.quiet
@pytest.mark.parametrize("mode", ["supervised", "embedded"])
def test_a_run_whose_endpoint_is_silent_ends_within_its_bound_and_declares_both_exports(
    tmp_path: Path, silent: str, mode: str
) -> None:
    """Spans and metrics share one bound."""
    (tmp_path / "model.onnx").write_bytes(small_model())
    alone = FleetCli(tmp_path)
    ends: list[list[ExportFinished]] = []
    took: list[float] = []
    for command in (alone, alone.having(OTEL_EXPORTER_OTLP_ENDPOINT=silent)):
        began = time.monotonic()
        if mode == "supervised":
            command("build", "model.onnx", "-o", "m.engine", "--route", "r/fp32/sm89", "--target", "sm89")
        else:
            subprocess.run([sys.executable, "-c", EMBEDDED], cwd=tmp_path, env=command.environment, check=True)
        took.append(time.monotonic() - began)
        runs = [records_at(command.home, run) for run in command.runs()]
        ends.append([end for records in runs for end in of_type(records, ExportFinished)])
    assert ends[0] == []
    declared = {end.signal: end for end in ends[1]}
    assert declared.keys() == {"traces", "metrics"}
    assert all(end.exported == 0 and end.dropped > 0 and end.reason for end in declared.values())
    assert took[1] - took[0] < EXIT_S + 1.5, took  # the rest: loading the exporters, and a busy machine
