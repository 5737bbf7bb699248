"""Telemetry of a run that is observed inside its host's process: fed by what its log has taken."""

import atexit
import logging
import os
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

from build_events.clock import Clock
from build_events.envelope import Recorded
from build_events.errors import EngineTrailError
from builder_agent.recovery import RecoveredRun
from builder_agent.telemetry.lost_runs import export_lost
from builder_agent.telemetry.run_telemetry import RunTelemetry, declare
from builder_agent.telemetry.settings import EXIT_S, TelemetrySettings
from builder_agent.telemetry.span_export import GRACE_S

_log = logging.getLogger(__name__)


class _Log(Protocol):
    folder: Path

    def append(self, records: Sequence[Recorded]) -> None:
        """Store them durably."""
        ...

    def close(self) -> None:
        """Append no more."""
        ...


class ExportedLog:
    """``EventWriter`` around a run's log. The delivery thread owns it, and only that thread waits for an endpoint.

    The host is held only at its own exit, and only within the bounds.
    """

    def __init__(self, log: _Log, settings: TelemetrySettings, *, clock: Clock, spooled: bool) -> None:
        """Start nothing. ``spooled``: the log is a spool, and collectors of other hosts see its runs."""
        self.folder = log.folder
        self._log, self._settings, self._clock, self._spooled = log, settings, clock, spooled
        self._telemetry = RunTelemetry(settings)
        self._lost: threading.Thread | None = None
        self._owner = os.getpid()
        self._ended = threading.Event()
        self._registered = False

    def append(self, records: Sequence[Recorded]) -> None:
        """Return once the records are durable; then they may become spans.

        Raises:
            LogUnavailableError: not all were stored.
        """
        self._log.append(records)
        if not self._registered:
            self._registered = True
            atexit.register(self._wait)
        self._telemetry.take(records)

    def recovered(self, runs: Sequence[RecoveredRun]) -> None:
        """Export the runs that this start has declared lost, in the background: the build is about to begin."""
        lost = [run.records for run in runs if run.lost]
        if lost:
            name = "enginetrail-lost-runs"
            self._lost = threading.Thread(target=self._export_lost, args=(lost,), name=name, daemon=True)
            self._lost.start()

    def close(self) -> None:
        """Export what ends the run, declare it in the log, and close that."""
        try:
            self._export()
        except (EngineTrailError, OSError) as error:
            _log.warning("what was exported could not be recorded: %s", error)
        finally:
            self._log.close()
            self._ended.set()
            atexit.unregister(self._wait)

    def _export(self) -> None:
        deadline = time.monotonic() + EXIT_S
        end = self._telemetry.finish(EXIT_S)
        if self._lost is not None:  # it began with the run, and has the same bound
            self._lost.join(max(deadline - time.monotonic(), 0))
        if end is None:
            return
        declare(end, self._log, clock=self._clock)
        if end.shortfall is not None:
            _log.warning("run %s: %s", end.header.run_id, end.shortfall)

    def _export_lost(self, runs: list[tuple[Recorded, ...]]) -> None:
        try:
            export_lost(runs, self._settings, self.folder, clock=self._clock, spooled=self._spooled)
        except (EngineTrailError, OSError) as error:
            _log.warning("what was exported of lost runs could not be recorded: %s", error)

    def _wait(self) -> None:
        if os.getpid() == self._owner:  # a forked child inherits the exit handler, not the threads
            self._ended.wait(EXIT_S + GRACE_S)  # the grace: to write what was exported
