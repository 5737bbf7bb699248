"""Real builds of every kind, with their spans and metrics on the way to the real services."""

import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from typing_extensions import override

from build_events.events import PhaseStarted
from build_events.kafka_settings import kafka_settings
from builder_agent.kafka.topics import TopicPlan, ensure_topic
from tests.builder_agent.builds import of_type, records_at
from tests.enginetrail.conftest import Cli
from tests.models import chain_model, small_model, unsupported_model
from tests.services.answers import eventually
from tests.telemetry.backends import series
from tests.telemetry.conftest import TelemetryServices

ROUTE = "fleet/fp32/sm89"
CANCELLATIONS = 'traces_span_metrics_duration_seconds_count{span_name="run.cancelled"}'


@dataclass(frozen=True)
class FleetCli(Cli):
    """``enginetrail`` with further variables."""

    variables: tuple[tuple[str, str], ...] = ()
    name: str = "home"

    @property
    @override
    def home(self) -> Path:
        return self.folder / self.name

    @property
    @override
    def environment(self) -> dict[str, str]:
        return {**super().environment, **dict(self.variables)}

    def having(self, *, name: str | None = None, **more: str) -> "FleetCli":
        """Return the same with more variables, and another home if one is named."""
        return replace(self, variables=(*self.variables, *more.items()), name=name or self.name)

    def build(self, model: str, *more: str, code: int = 0) -> dict[str, Any]:
        """Build a model to its end and return the summary."""
        summary: dict[str, Any] = self.json(*self._command(model), *more, code=code)
        return summary

    def cancelled(self, model: str) -> str:
        """Build a model, press Ctrl-C once it builds, and return the run's id; for a local log."""
        process, run = self.begun(model)
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=60)
        assert process.returncode == 130
        return run

    def begun(self, model: str) -> tuple[subprocess.Popen[str], str]:
        """Start to build a model, and return the process and the run's id once the builder is in a phase."""
        known = set(self.runs())
        process = self.start(*self._command(model))
        (run,) = eventually(lambda: set(self.runs()) - known, bool)
        eventually(lambda: of_type(records_at(self.home, run), PhaseStarted), bool)
        return process, run

    def runs(self) -> list[str]:
        """Return the ids of the runs in the local log."""
        folder = self.home / "log" / "runs"
        return [path.name for path in folder.iterdir()] if folder.is_dir() else []

    @contextmanager
    def following(self, *options: str) -> Iterator[subprocess.Popen[str]]:
        """Run ``collect --follow`` meanwhile; its end must be clean."""
        process = self.start("collect", "--follow", *options)
        try:
            yield process
        finally:
            process.send_signal(signal.SIGTERM)
            out, err = process.communicate(timeout=60)
        assert process.returncode == 0, f"{out}\n{err}"

    def _command(self, model: str) -> tuple[str, ...]:
        return ("build", model, "-o", f"{model}.engine", "--route", ROUTE, "--target", "sm89")


@dataclass(frozen=True)
class Fleet:
    """What was done."""

    trace: str  # of a completed run
    instance: str  # its main stream


@contextmanager
def working_fleet(line: TelemetryServices, folder: Path, nowhere: str) -> Iterator[Fleet]:
    """Build, fail, cancel and judge over Kafka and over a local log, while collectors follow both.

    ``nowhere`` is an address where nothing listens.
    """
    for name, model in (("small", small_model()), ("large", chain_model(600)), ("bad", unsupported_model())):
        (folder / name).write_bytes(model)
    topic = kafka_settings(f"kafka://{line.kafka}/fleet-{os.getpid()}", {})
    ensure_topic(topic, TopicPlan(partitions=1))
    local = FleetCli(folder, name="local").having(
        OTEL_EXPORTER_OTLP_ENDPOINT=line.otlp_http, OTEL_METRIC_EXPORT_INTERVAL="500"
    )
    shared = local.having(name="shared", ENGINETRAIL_LOG=topic.url)
    with local.following(), shared.following():
        shared.build("small")
        local.build("bad", code=1)
        first = local.cancelled("large")
        # An increase needs two samples: seen for the first time with both cancellations in it, a counter has none.
        eventually(lambda: series(line.prometheus, CANCELLATIONS), bool)
        local("accept", "stuck-build", first, local.cancelled("large"), code=4)
        local.having(OTEL_EXPORTER_OTLP_TRACES_ENDPOINT=nowhere).build("small")
        records = records_at(local.home, local.build("small")["run_id"])
        completed = next(record.stream for record in records if record.stream.role == "main")
        assert completed.trace_id is not None
        yield Fleet(trace=completed.trace_id, instance=completed.stream_id)
