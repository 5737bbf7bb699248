"""Two ways from the same events: the phase tree in Jaeger equals the phase tree in DuckDB, span by span."""

import subprocess
import sys
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest

from build_events import ids
from build_events.telemetry import names
from deploy.services.ports import HOST
from tests.builder_agent.builds import records_at
from tests.enginetrail.conftest import TIMEOUT_S
from tests.telemetry.conftest import TelemetryServices
from tests.telemetry.fleet import FleetCli
from tests.telemetry.jaeger_runs import Shown, assert_one_tree, declared
from tests.telemetry.real_models import MODELS

pytestmark = [pytest.mark.service, pytest.mark.timeout(1800)]
PHASES = """
SELECT run_id, phase_id, parent_id, name, epoch_ns(started_at) AS started_ns,
  (duration_ms * 1e6)::BIGINT AS duration_ns, steps_total, steps_seen, status
FROM phases
"""
ROUNDING_NS = 1_000  # Jaeger's older API tells whole microseconds


def told_by_row(row: dict[str, Any]) -> tuple[Any, ...]:
    """Return what a span must say of a phase, but for its times."""
    run = row["run_id"]
    parent = ids.named_span_id(run, "executing") if row["parent_id"] is None else ids.span_id(run, row["parent_id"])
    return (row["name"], parent, row["phase_id"], row["steps_total"], row["steps_seen"], row["status"])


def told_by_span(span: Shown) -> tuple[Any, ...]:
    """Return what a phase's span says, but for its times."""
    told = (names.PHASE_INSTANCE_ID, names.PHASE_STEPS_TOTAL, names.PHASE_STEPS_COMPLETED, names.PHASE_STATUS)
    return (span.name, span.parent, *(span.tags[name] for name in told))


def test_the_phase_trees_of_ten_real_models_are_those_of_duckdb(
    telemetry_services: TelemetryServices, tmp_path: Path
) -> None:
    """Names, parents, ids, steps and status are equal, starts and durations within Jaeger's rounding."""
    otlp = f"http://{HOST}:{telemetry_services.services.port('jaeger', 'otlp_http')}"
    cli = FleetCli(tmp_path).having(OTEL_EXPORTER_OTLP_ENDPOINT=otlp, OTEL_METRICS_EXPORTER="none")
    host = subprocess.run(
        [sys.executable, "-m", "tests.telemetry.real_models", str(tmp_path)],
        cwd=Path(__file__).parents[2], env=cli.environment,
        capture_output=True, text=True, timeout=TIMEOUT_S, check=False,
    )  # fmt: skip
    assert host.returncode == 0, host.stderr
    runs = host.stdout.split()
    assert len(runs) == len(MODELS) == 10
    rows: dict[str, dict[str, dict[str, Any]]] = defaultdict(dict)
    for row in cli.query(PHASES):
        rows[row["run_id"]][ids.span_id(row["run_id"], row["phase_id"])] = row
    for run in runs:
        records = records_at(cli.home, run)
        spans = assert_one_tree(telemetry_services.jaeger, records, declared(records))
        phases = {span.span_id: span for span in spans if names.TASK_RUN_ID in span.tags}
        assert len(phases) > 10
        assert {name: told_by_span(span) for name, span in phases.items()} == {
            name: told_by_row(row) for name, row in rows[run].items()
        }
        for name, span in phases.items():
            row = rows[run][name]
            assert abs(span.start_us * 1000 - row["started_ns"]) <= ROUNDING_NS
            assert abs((span.end_us - span.start_us) * 1000 - row["duration_ns"]) <= ROUNDING_NS
