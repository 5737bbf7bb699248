"""However a run ends, and whoever exports its end: one clean tree in a stock Jaeger."""

import os
import signal
from pathlib import Path

import pytest

from build_events import ids
from build_events.envelope import Recorded
from build_events.events import PhaseFinished, PhaseStarted
from build_events.telemetry import names
from build_events.telemetry.span import Span
from deploy.services.ports import HOST
from tests.builder_agent.builds import of_type, records_at
from tests.builder_agent.supervised import children_of, is_running, wait_until
from tests.enginetrail.conftest import TIMEOUT_S
from tests.models import chain_model, small_model
from tests.services.answers import eventually
from tests.telemetry.conftest import TelemetryServices
from tests.telemetry.fleet import FleetCli
from tests.telemetry.jaeger_runs import Shown, assert_one_tree, declared, root_of, shown, trace_of
from tests.telemetry.otlp_documents import send

pytestmark = [pytest.mark.service, pytest.mark.timeout(1800)]
EAGER = {"ENGINETRAIL_TRACE_MARKER_S": "0.2", "ENGINETRAIL_TRACE_SLICE_S": "0.2"}


@pytest.fixture
def jaeger(telemetry_services: TelemetryServices) -> str:
    """Return the base URL of the query API."""
    return telemetry_services.jaeger


@pytest.fixture
def otlp(telemetry_services: TelemetryServices) -> str:
    """Return where Jaeger itself takes spans."""
    return f"http://{HOST}:{telemetry_services.services.port('jaeger', 'otlp_http')}"


@pytest.fixture
def cli(tmp_path: Path, otlp: str) -> FleetCli:
    """Return the command, exporting straight into Jaeger, with models that build for a moment, a second, and many."""
    for name, model in (("small", small_model()), ("middle", chain_model(400)), ("long", chain_model(1400))):
        (tmp_path / name).write_bytes(model)
    return FleetCli(tmp_path).having(OTEL_EXPORTER_OTLP_ENDPOINT=otlp, OTEL_METRICS_EXPORTER="none", **EAGER)


def slices(jaeger: str, trace: str) -> list[Shown]:
    """Return the slices of a trace."""
    return [span for span in shown(jaeger, trace) if span.kind == "slice"]


def assert_open_phases_closed(spans: list[Shown], records: list[Recorded], status: str) -> None:
    """Check that the phases that were open, and no others, end with their run and have its status."""
    finished = {event.phase_id for event in of_type(records, PhaseFinished)}
    were_open = {event.phase_id for event in of_type(records, PhaseStarted)} - finished
    closed = [span for span in spans if span.tags.get(names.PHASE_STATUS) == status]
    assert {span.tags[names.PHASE_INSTANCE_ID] for span in closed} == were_open != set()
    assert {span.tags[names.TASK_RUN_RESULT] for span in closed} == {spans[0].tags[names.PIPELINE_RESULT]}
    assert max(spans[0].end_us - span.end_us for span in closed) <= 1  # microseconds, cut off


def clean(cli: FleetCli, jaeger: str, run: str, count: int) -> None:
    """Check that the command finds all spans of a run and nothing wrong."""
    report = cli.json("trace", "lint", run, "--jaeger", jaeger, "--ended")
    assert (report["findings"], report["spans"]) == ([], count)


def test_a_worker_killed_inside_a_phase_leaves_a_clean_tree(cli: FleetCli, jaeger: str) -> None:
    """Its supervisor closes the open phases and the root: an error, with the reason."""
    process, run = cli.begun("long")
    assert eventually(lambda: slices(jaeger, trace_of(records_at(cli.home, run))), bool)
    (child,) = children_of(process.pid)
    os.kill(child, signal.SIGKILL)
    process.communicate(timeout=TIMEOUT_S)
    assert process.returncode == 1
    records = records_at(cli.home, run)
    spans = assert_one_tree(jaeger, records, declared(records))
    told = [spans[0].tags.get(name) for name in (names.PIPELINE_RESULT, names.ERROR_TYPE, names.BUILD_OUTCOME)]
    assert told == ["error", "crashed", "crashed"]
    assert_open_phases_closed(spans, records, "crashed")
    clean(cli, jaeger, run, len(spans))


def test_a_run_that_nobody_saw_end_is_closed_by_the_next_start(cli: FleetCli, jaeger: str) -> None:
    """Worker and supervisor killed: an open trace until then, and what was shown before is not shown again."""
    process, run = cli.begun("long")
    trace = trace_of(records_at(cli.home, run))
    assert eventually(lambda: slices(jaeger, trace), bool)
    children = children_of(process.pid)
    process.kill()
    process.communicate(timeout=TIMEOUT_S)
    wait_until(lambda: not any(is_running(child) for child in children), "the end of the worker")
    live = shown(jaeger, trace)
    report = cli.json("trace", "lint", trace, "--jaeger", jaeger, "--ended", code=1)
    assert {finding["code"] for finding in report["findings"]} == {"root_missing", "parent_missing", "backend_warning"}
    cli("runs")
    records = records_at(cli.home, run)
    spans = assert_one_tree(jaeger, records, len(live) + declared(records))
    told = [spans[0].tags.get(name) for name in (names.PIPELINE_RESULT, names.ERROR_TYPE, names.BUILD_OUTCOME)]
    assert told == ["error", "worker_lost", "lost"]
    assert_open_phases_closed(spans, records, "lost")
    clean(cli, jaeger, run, len(spans))


def test_a_cancelled_run_and_its_retry_inside_a_job(
    cli: FleetCli, telemetry_services: TelemetryServices, otlp: str, jaeger: str
) -> None:
    """The cancellation is a span with its steps; the retry, by way of a real OTel Collector, links to it."""
    cancelled = cli.cancelled("middle")
    first = records_at(cli.home, cancelled)
    spans = assert_one_tree(jaeger, first, declared(first))
    (cancellation,) = (span for span in spans if span.name == "run.cancelled")
    assert cancellation.parent == root_of(first)
    assert cancellation.tags[names.CANCEL_SOURCE] == "ctrl_c"
    steps = [name for name, _ in cancellation.steps]
    assert (steps[0], steps[-1]) == ("cancel.requested", "process.exited")
    assert {"cancel.signalled", "cancel.observed", "builder.returned", "cleanup.finished"} < set(steps)
    assert [at for _, at in cancellation.steps] == sorted(at for _, at in cancellation.steps)
    clean(cli, jaeger, cancelled, len(spans))

    job = Span(
        name="job",
        trace_id=ids.trace_id(),
        span_id="00f067aa0ba902b7",
        parent_span_id=None,
        start_ns=first[0].wall_ns,
        end_ns=first[0].wall_ns + 3600 * 10**9,
        attributes={},
    )
    in_job = cli.having(
        OTEL_EXPORTER_OTLP_ENDPOINT=telemetry_services.otlp_http,
        TRACEPARENT=f"00-{job.trace_id}-{job.span_id}-01",
    )
    runs = [
        records_at(cli.home, in_job.build("small", *more)["run_id"])
        for more in (("--retry-of", cancelled, "--retry-policy", "retry_cold"), ())
    ]
    counts = [declared(records) for records in runs]
    so_far = eventually(lambda: shown(jaeger, job.trace_id), lambda found: len(found) >= sum(counts))
    assert {span.span_id for span in so_far if span.warnings} == {root_of(records) for records in runs}
    assert cli.json("trace", "lint", job.trace_id, "--jaeger", jaeger, "--ended")["findings"] == []
    send(otlp, [job])
    eventually(lambda: shown(jaeger, job.trace_id), lambda found: len(found) > sum(counts))
    trees = [assert_one_tree(jaeger, records, count) for records, count in zip(runs, counts, strict=True)]
    assert [tree[0].parent for tree in trees] == [job.span_id] * 2
    assert [tree[0].links for tree in trees] == [((trace_of(first), root_of(first)),), ()]
    clean(cli, jaeger, runs[0][0].stream.subject, sum(counts) + 1)
