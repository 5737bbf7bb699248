"""The metrics of a following collector: what its store holds, and how far it is behind."""

import os
import platform
import time
import uuid
from collections.abc import Callable
from pathlib import Path

import duckdb

from build_events import clock
from build_events.errors import LogUnavailableError
from build_events.telemetry import names
from build_events.telemetry.measurements import Measurement
from builder_agent.run_facts import agent_version
from builder_agent.telemetry.metrics import MetricsExport
from builder_agent.telemetry.settings import EXIT_S, TelemetrySettings
from collector.metrics import Changes, lag_of, totals
from collector.status import lag
from collector.steady import SteadyReader
from collector.store import Store
from enginetrail.exporting import spool_depth
from enginetrail.home import Home

SERVICE = "enginetrail-collector"


class CollectorMetrics:
    """Of one store. The store's lock makes this process the only writer of the instance's series."""

    def __init__(
        self, home: Home, settings: TelemetrySettings, log: SteadyReader, *, folder: Path, warn: Callable[[str], None]
    ) -> None:
        """Take the store's folder, the log it is made from, and who hears what did not arrive."""
        assert settings.metrics is not None
        self._home, self._log, self._warn = home, log, warn
        self._endpoint, self._interval_s = settings.metrics.endpoint, settings.metric_interval_s
        self._changes = Changes()
        self._due = 0.0
        instance = uuid.uuid5(uuid.NAMESPACE_URL, f"{platform.node()}{folder.absolute()}")
        process: dict[str, str | int] = {
            names.SERVICE_NAME: SERVICE,
            names.SERVICE_VERSION: agent_version(),
            names.SERVICE_INSTANCE_ID: str(instance),  # the store's: its totals go on when another process takes over
            names.HOST_ID: clock.boot_id(),
            names.HOST_NAME: platform.node(),
            names.PROCESS_PID: os.getpid(),
        }
        self._export = MetricsExport(
            settings.metrics, {**process, **settings.resource}, interval_s=settings.metric_interval_s
        )

    def look(self, store: Store) -> None:
        """Measure if it is time; called after each look at the log."""
        if time.monotonic() < self._due:
            return
        self._due = time.monotonic() + self._interval_s
        try:
            moved = self._changes.since(totals(store.cursor()))
        except duckdb.Error as error:
            self._warn(f"metrics: {error}")
            return
        moved += self._gauges(store)
        self._export.add(lambda: moved)

    def close(self) -> None:
        """Send what is left, within its bound."""
        end = self._export.finish(EXIT_S)
        if end.dropped:
            self._warn(f"metrics: the last {end.dropped} readings did not reach {self._endpoint} ({end.reason})")

    def _gauges(self, store: Store) -> list[Measurement]:
        gauges = spool_depth(self._home)
        try:
            behind = {} if self._log.at_end else lag(store.positions(), self._log.ends())
        except LogUnavailableError:
            return gauges  # how far it is behind is not known; 0 would be a lie
        return [*gauges, lag_of(behind, in_bytes=self._home.kafka is None)]


def collector_metrics(
    home: Home, settings: TelemetrySettings, log: SteadyReader, *, folder: Path, warn: Callable[[str], None]
) -> CollectorMetrics | None:
    """Return the metrics of a store; ``None`` where no variable asks for any."""
    return None if settings.metrics is None else CollectorMetrics(home, settings, log, folder=folder, warn=warn)
