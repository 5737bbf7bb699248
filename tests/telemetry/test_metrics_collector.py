"""What a store holds, in numbers."""

import uuid
from pathlib import Path

import pytest

from build_events import events as ev
from build_events.clock import system_clock
from build_events.envelope import Recorded, StreamHeader
from build_events.kafka_settings import kafka_settings
from build_events.log import InMemoryEventLog
from build_events.stream import EventStream
from build_events.telemetry import metrics, names
from build_events.telemetry.measurements import Measurement
from builder_agent.kafka.topics import TopicPlan, ensure_topic
from collector.ingest import Ingester
from collector.metrics import OPEN, Changes, lag_of, totals
from collector.store import Store
from tests.build_events.scenes import ENDS, Scene, flatten
from tests.collector.stores import payloads
from tests.models import small_model
from tests.services.answers import eventually
from tests.telemetry.backends import by_label
from tests.telemetry.conftest import TelemetryServices
from tests.telemetry.fleet import FleetCli

OPERATIONS = flatten([[], []])


def by_labels(told: list[Measurement], metric: metrics.Metric) -> dict[tuple[str, ...], float]:
    """Return a metric's values by its labels' values, in the order of the labels' names."""
    return {
        tuple(item.labels[key] for key in sorted(item.labels)): item.value for item in told if item.metric is metric
    }


def observed(run_id: str, *events: ev.Event) -> list[Recorded]:
    """Return the records of a short observer stream about a run."""
    header = StreamHeader(
        stream_id=f"{run_id}-observed", role="observer", run_id=run_id, source="tests", boot_id="boot-1"
    )
    return EventStream(header, InMemoryEventLog(), clock=system_clock).close(*events)


def decided(verdict: ev.Verdict) -> ev.DecisionRecorded:
    """Return a decision."""
    return ev.DecisionRecorded(
        kind="sbat",
        verdict=verdict,
        policy_sha256="0" * 64,
        evaluator_version="1",
        as_of_ns=1,
        inputs={},
        inputs_sha256="0" * 64,
        report={},
    )


def test_totals_are_what_the_store_holds_and_only_changes_are_added(tmp_path: Path) -> None:
    """Also after the store was closed and opened by another process: nothing is counted twice."""
    runs = [record for end in ENDS for record in Scene(run_id=end).play(end, OPERATIONS, 2)]
    facts = observed("completed", decided("hold"), ev.ExportFinished(signal="traces", exported=1, dropped=4))
    fence = ev.RunFenced(main_stream_id="open-build", lease_ns=1, silent_ns=2)
    stored = [*payloads(runs), *payloads(facts), b"no event"]
    path, changes = tmp_path / "store.duckdb", Changes()
    log = InMemoryEventLog("memory", stored)
    with Store.open(path, log_identity="memory", views=[]) as store, Ingester(log, store) as ingester:
        ingester.ingest()
        first = changes.since(totals(store.cursor()))
        assert changes.since(totals(store.cursor())) == [
            Measurement(item.metric, 0, item.labels) for item in first
        ]  # nothing came in between
        stored += payloads(observed("open", fence))
        ingester.ingest()
        second = changes.since(totals(store.cursor()))
        before = totals(store.cursor())
    with Store.open(path, log_identity="memory", views=[]) as store:
        assert totals(store.cursor()) == before
    assert by_labels(first, metrics.COLLECTOR_EVENTS) == {(): len(runs) + len(facts)}
    assert by_labels(first, metrics.COLLECTOR_DEAD_LETTERS) == {(): 1}
    assert by_labels(first, metrics.COLLECTOR_RUNS) == {(OPEN if end == "open" else end,): 1 for end in ENDS}
    verdicts = by_labels(first, metrics.COLLECTOR_VERDICTS)
    assert len(verdicts) == 6
    assert {key for key, count in verdicts.items() if count} == {("sbat", "hold")}
    assert by_labels(first, metrics.COLLECTOR_DROPPED) == {("event",): 0, ("span",): 4, ("collection",): 0}
    moved = {key: count for key, count in by_labels(second, metrics.COLLECTOR_RUNS).items() if count}
    assert moved == {(OPEN,): -1, ("lost",): 1}
    assert by_labels(second, metrics.COLLECTOR_FENCED) == {(): 1}
    assert by_labels(second, metrics.COLLECTOR_EVENTS) == {(): 2}


def test_lag_has_the_unit_of_its_log() -> None:
    """Records and bytes are two metrics: their sum would mean nothing."""
    assert lag_of({"a": 2, "b": 3}, in_bytes=False) == Measurement(metrics.COLLECTOR_LAG, 5)
    assert lag_of({}, in_bytes=True) == Measurement(metrics.COLLECTOR_LAG_BYTES, 0)
    assert names.BUILD_OUTCOME in metrics.COLLECTOR_RUNS.labels


@pytest.mark.service
@pytest.mark.timeout(1800)
def test_a_member_of_a_group_is_a_writer_for_each_partition(
    telemetry_services: TelemetryServices, tmp_path: Path
) -> None:
    """Each store's numbers under an instance of its own; one whose member ends goes on with the next."""
    line, service = telemetry_services, f"group-{uuid.uuid4()}"
    (tmp_path / "small").write_bytes(small_model())
    topic = kafka_settings(f"kafka://{line.kafka}/{service}", {})
    ensure_topic(topic, TopicPlan(partitions=2))
    cli = FleetCli(tmp_path).having(
        ENGINETRAIL_LOG=topic.url,
        OTEL_EXPORTER_OTLP_ENDPOINT=line.otlp_http,
        OTEL_METRIC_EXPORT_INTERVAL="200",
        OTEL_SERVICE_NAME=service,
    )
    stored = f'enginetrail_collector_runs{{job="{service}",trt_build_outcome="completed"}}'

    def completed() -> tuple[int, float]:
        values = by_label(line.prometheus, stored, "instance").values()
        return len(values), sum(values)

    for count in (1, 2):
        cli.build("small")
        with cli.following("--group", service):
            found = eventually(completed, (2, count).__eq__)
        assert found == (2, count)
