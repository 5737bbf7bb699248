"""Real builds and what of them reaches an endpoint: every span once, declared in the run, nothing when it is off."""

import json
import os
import signal
import subprocess
import sys
import textwrap
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.proto.trace.v1.trace_pb2 import Span
from typing_extensions import override

from build_events import ids
from build_events.clock import NS_PER_S
from build_events.envelope import Recorded
from build_events.events import ExportFinished, RunContextRecorded, RunLost, RunStarted
from build_events.telemetry import names
from tests.builder_agent.builds import of_type, records_at
from tests.enginetrail.conftest import Cli
from tests.models import chain_model, small_model
from tests.services.answers import eventually
from tests.telemetry.backends import in_jaeger
from tests.telemetry.conftest import TelemetryServices
from tests.telemetry.endpoints import HttpEndpoint, closed_port, http_endpoint

BUILD = ("build", "model.onnx", "-o", "out.engine", "--route", "r/fp32/sm89", "--target", "sm89")
LARGE = ("build", "large.onnx", *BUILD[2:])
CI_TRACE, CI_SPAN = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
EAGER = {"ENGINETRAIL_TRACE_MARKER_S": "0.1", "ENGINETRAIL_TRACE_SLICE_S": "0.2"}


@dataclass(frozen=True)
class TracedCli(Cli):
    """``enginetrail`` with further variables."""

    variables: tuple[tuple[str, str], ...] = ()

    @property
    @override
    def environment(self) -> dict[str, str]:
        return {**super().environment, **dict(self.variables)}

    def to(self, url: str, **more: str) -> "TracedCli":
        """Return the same, exporting traces to ``url``."""
        added = {"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": f"{url}/v1/traces", **more}
        return replace(self, variables=(*self.variables, *added.items()))

    def records(self, run_id: str) -> list[Recorded]:
        """Return what the log has of a run."""
        return records_at(self.home, run_id)

    def only_run(self) -> str:
        """Return the id of the only run of the home."""
        (folder,) = (self.home / "log" / "runs").iterdir()
        return folder.name


@pytest.fixture
def traced(tmp_path: Path) -> TracedCli:
    """Return the command in a folder with a tiny model, and one that builds for a second or two."""
    (tmp_path / "model.onnx").write_bytes(small_model())
    (tmp_path / "large.onnx").write_bytes(chain_model(400))
    return TracedCli(tmp_path)


@pytest.fixture
def endpoint() -> Iterator[HttpEndpoint]:
    """Return an endpoint that takes everything."""
    with http_endpoint() as taking:
        yield taking


def attribute(span: Span, key: str) -> Any:
    """Return the value of an attribute, ``None`` without it."""
    return next((item.value.string_value for item in span.attributes if item.key == key), None)


def by_kind(endpoint: HttpEndpoint) -> Counter[str]:
    """Return how many spans of each kind there are."""
    return Counter(attribute(span, names.SPAN_KIND) for span in endpoint.spans)


def declared(records: list[Recorded]) -> ExportFinished:
    """Return the one declaration of a run, which stands in a closed stream of its own."""
    (export,) = of_type(records, ExportFinished)
    (stream,) = {record.stream for record in records if record.event is export}
    assert stream.role == "observer"
    assert len([record for record in records if record.stream == stream]) == 2
    return export


def assert_each_once(endpoint: HttpEndpoint, export: ExportFinished) -> None:
    """Check that what is declared is what is there, and that nothing is there twice."""
    assert len({span.span_id for span in endpoint.spans}) == len(endpoint.spans)
    assert (export.signal, export.exported, export.dropped) == ("traces", len(endpoint.spans), 0)


def test_a_supervised_build_is_exported_once_and_declared(traced: TracedCli, endpoint: HttpEndpoint) -> None:
    """Under the CI job's span, with the time in the queue, and with markers and slices where a phase is long."""
    ci = {"TRACEPARENT": f"00-{CI_TRACE}-{CI_SPAN}-01", "ENGINETRAIL_QUEUED_AT": "2026-11-30T10:00:00Z"}
    run = traced.to(endpoint.url, **ci, **EAGER).json(*LARGE)["run_id"]
    records = traced.records(run)
    main = [record.event for record in records if record.stream.role == "main"]
    assert isinstance(main[0], RunStarted)
    assert main[1] == RunContextRecorded(queued_at_ns=1_796_032_800_000_000_000, parent_span_id=CI_SPAN)
    assert main[0].heartbeat_interval_ns == NS_PER_S // 10
    assert_each_once(endpoint, declared(records))
    kinds = by_kind(endpoint)
    assert kinds["anchor"] == 1
    assert kinds["marker"] > 0
    assert kinds["slice"] > 0
    assert attribute(endpoint.spans[0], names.SPAN_KIND) == "anchor"
    (root,) = (span for span in endpoint.spans if span.name == "BUILD r/fp32/sm89")
    assert (root.trace_id.hex(), root.parent_span_id.hex()) == (CI_TRACE, CI_SPAN)
    assert attribute(root, names.PIPELINE_RESULT) == "success"
    assert {span.trace_id.hex() for span in endpoint.spans} == {CI_TRACE}
    assert [span.name for span in endpoint.spans if span.name.startswith("run.q")] == ["run.queued"]


def test_a_retry_links_to_the_run_that_it_retries(traced: TracedCli, endpoint: HttpEndpoint) -> None:
    """The trace of the retried run is found in the log."""
    first = traced.json(*BUILD)["run_id"]
    policy = ("--retry-of", first, "--retry-policy", "retry_cold")
    traced.to(endpoint.url).json(*BUILD, *policy)
    (root,) = (span for span in endpoint.spans if span.name.startswith("BUILD"))
    (link,) = root.links
    assert link.span_id.hex() == ids.span_id(first, ids.ROOT_ORDINAL)
    assert link.trace_id.hex() == traced.records(first)[0].stream.trace_id


def test_an_embedded_build_is_exported_once_and_declared(traced: TracedCli, endpoint: HttpEndpoint) -> None:
    """By the threads of the agent, and the host's exit waits for them within their bound."""
    code = """
        import builder_agent
        with builder_agent.observe(route="r", output="out.engine", queued_at=1.5) as run:
            pass
        print(run.run_id)
    """
    run = embedded(traced.to(endpoint.url), code).strip()
    records = traced.records(run)
    assert of_type(records, RunContextRecorded) == [RunContextRecorded(queued_at_ns=1_500_000_000)]
    assert_each_once(endpoint, declared(records))
    assert by_kind(endpoint)["anchor"] == 1
    assert by_kind(endpoint)["final"] > 1


def test_a_run_that_is_refused_exports_nothing(traced: TracedCli, endpoint: HttpEndpoint) -> None:
    """No run, no span."""
    (traced.folder / "model.onnx").write_bytes(b"no model")
    traced.to(endpoint.url)(*BUILD, code=2)
    assert endpoint.requests == 0


@pytest.mark.parametrize("mode", ["supervised", "embedded"])
def test_when_it_is_off_there_is_no_import_and_no_thread(traced: TracedCli, mode: str) -> None:
    """Neither by default nor where the variables say so; checked at the end of a process that has built."""
    build = {
        "supervised": f"from enginetrail.cli import run\nrun({BUILD!r}, started_ns=time.monotonic_ns())",
        "embedded": "import builder_agent\nwith builder_agent.observe(route='r', output='o.engine'): pass",
    }[mode]
    code = f"""
import sys, threading, time
started, start = [], threading.Thread.start
def noted(thread):
    started.append(thread.name)
    start(thread)
threading.Thread.start = noted
{build}
print([name for name in sys.modules if name.split(".")[0] in ("opentelemetry", "grpc", "requests")])
print([name for name in started if name in ("enginetrail-telemetry", "enginetrail-export")])
"""
    off = {"OTEL_SDK_DISABLED": "true", "OTEL_EXPORTER_OTLP_ENDPOINT": closed_port()}
    for cli in (traced, replace(traced, variables=tuple(off.items()))):
        assert embedded(cli, code).splitlines()[-2:] == ["[]", "[]"]
    assert not any(of_type(records_at(traced.home, run.name), ExportFinished) for run in runs(traced))


@pytest.mark.quiet
@pytest.mark.parametrize("protocol", ["http/protobuf", "grpc"])
def test_a_build_ends_in_time_without_an_endpoint_and_says_what_is_missing(traced: TracedCli, protocol: str) -> None:
    """One line, and the declaration holds the count; the build itself is whole."""
    began = time.monotonic()
    process = traced.to(closed_port(), OTEL_EXPORTER_OTLP_PROTOCOL=protocol)(*BUILD)
    took_s = time.monotonic() - began
    export = declared(traced.records(traced.only_run()))
    assert export.exported == 0
    assert export.dropped > 1
    (line,) = (line for line in process.stderr.splitlines() if "did not reach" in line)
    assert f"{export.dropped} of {export.dropped} spans did not reach" in line
    assert process.stdout.count("completed")
    assert took_s < 15  # of which the exporter's bound is 2


def test_a_killed_run_is_exported_by_the_next_start_of_its_home(traced: TracedCli, endpoint: HttpEndpoint) -> None:
    """With its end where it was last seen; the open phase is closed as lost, and a further start adds nothing."""
    cli = traced.to(endpoint.url, **EAGER)
    with cli.start("build", "large.onnx", *BUILD[2:]) as process:
        eventually(lambda: by_kind(endpoint)["slice"], bool)
        children = subprocess.run(["ps", "-o", "pid=", "--ppid", str(process.pid)], capture_output=True, check=True)
        process.send_signal(signal.SIGKILL)
        process.wait(20)
        for child in children.stdout.split():
            eventually(lambda child=child: not Path(f"/proc/{int(child)}").exists(), bool)  # type: ignore[misc]
    live = len(endpoint.spans)
    assert by_kind(endpoint)["final"] == 0
    cli("runs")
    records = cli.records(cli.only_run())
    (root,) = (span for span in endpoint.spans if span.name.startswith("BUILD"))
    assert attribute(root, names.BUILD_OUTCOME) == "lost"
    last = max(record.wall_ns for record in records if record.stream.role == "main")
    (lost,) = (record for record in records if isinstance(record.event, RunLost))
    assert root.end_time_unix_nano <= last < lost.wall_ns
    assert declared(records).exported == len(endpoint.spans) - live
    cli("runs")
    assert declared(cli.records(cli.only_run())).exported == by_kind(endpoint)["final"]
    assert len({span.span_id for span in endpoint.spans}) == len(endpoint.spans)


def test_a_start_inside_a_host_exports_what_it_declares_lost(traced: TracedCli, endpoint: HttpEndpoint) -> None:
    """In the background: the build that starts does not wait for it."""
    hang = "import builder_agent, os\nwith builder_agent.observe(route='lost', output='l.engine'): os._exit(9)"
    assert run_python(traced, hang).returncode == 9
    lost = traced.only_run()
    embedded(
        traced.to(endpoint.url), "import builder_agent\nwith builder_agent.observe(route='r', output='o.engine'): pass"
    )
    assert declared(traced.records(lost)).exported == len(
        [span for span in endpoint.spans if span.trace_id.hex() == traced.records(lost)[0].stream.trace_id]
    )


@pytest.mark.service
@pytest.mark.parametrize("protocol", ["http/protobuf", "grpc"])
def test_jaeger_holds_what_is_declared(traced: TracedCli, telemetry_services: TelemetryServices, protocol: str) -> None:
    """Through a real OTel Collector, each span once."""
    url = {"http/protobuf": telemetry_services.otlp_http, "grpc": telemetry_services.otlp_grpc}[protocol]
    variables = {"OTEL_EXPORTER_OTLP_ENDPOINT": url, "OTEL_EXPORTER_OTLP_PROTOCOL": protocol, **EAGER}
    cli = replace(traced, variables=tuple({**variables, "OTEL_METRICS_EXPORTER": "none"}.items()))
    records = cli.records(cli.json(*LARGE)["run_id"])
    export = declared(records)
    trace = records[0].stream.trace_id
    assert trace is not None
    found = eventually(
        lambda: in_jaeger(telemetry_services.jaeger, [trace], set()), lambda spans: len(spans) >= export.exported
    )
    assert (len(found), set(found.values())) == (export.exported, {1})
    assert export.dropped == 0


def test_a_value_that_cannot_be_used_is_said_once_and_the_build_goes_on(traced: TracedCli) -> None:
    """Exit 0, one line, no export."""
    cli = replace(traced, variables=(("OTEL_TRACES_EXPORTER", "zipkin"),))
    process = cli(*BUILD)
    assert process.stderr.count("OTEL_TRACES_EXPORTER=zipkin") == 1
    cli("build", *BUILD[1:], "--queued-at", "yesterday", code=2)


def test_the_console_shows_spans_beside_the_result(traced: TracedCli) -> None:
    """On standard error: what a command prints on standard output stays its own."""
    cli = replace(traced, variables=(("OTEL_TRACES_EXPORTER", "console"),))
    process = cli(*BUILD, "--format", "json")
    assert json.loads(process.stdout)["outcome"] == "completed"
    assert '"name": "BUILD r/fp32/sm89"' in process.stderr


def embedded(cli: TracedCli, code: str) -> str:
    """Return what a host prints."""
    process = run_python(cli, code)
    assert process.returncode == 0, process.stderr
    return process.stdout


def run_python(cli: TracedCli, code: str) -> subprocess.CompletedProcess[str]:
    """Run a host of the agent to its end."""
    return subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)],
        cwd=cli.folder, env={**cli.environment, "PYTHONPATH": os.fspath(Path(__file__).parents[2])},
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip


def runs(cli: TracedCli) -> list[Path]:
    """Return the folders of the home's runs."""
    return list((cli.home / "log" / "runs").iterdir())
