"""Metrics on their way out, on a thread of their own, with a bounded end.

Whoever measures only puts a call into a queue; OpenTelemetry itself runs on the thread alone, its import
included. Values are cumulative, one writer per ``service.instance.id``: a reading that does not arrive
loses nothing as long as a later one does.
"""

import logging
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from queue import Empty, SimpleQueue
from typing import Protocol

from build_events.envelope import Recorded
from build_events.events import ExportFinished, RunStarted
from build_events.telemetry.identity import resource
from build_events.telemetry.measurements import DROPPED_BY_SIGNAL, Measurement, RunMeasurements, dropped
from builder_agent import forks
from builder_agent.telemetry.outbox import Answer
from builder_agent.telemetry.settings import SignalSettings, TelemetrySettings

Tell = Callable[[], Iterable[Measurement]]

_log = logging.getLogger(__name__)


class _Meters(Protocol):
    def record(self, item: Measurement) -> None:
        """Record one measurement."""

    def export(self) -> Answer | None:
        """Send all values, and wait; return what came of it, ``None`` where there is no value yet."""
        ...

    def close(self) -> None:
        """Close the connection."""


class MetricsExport:
    """Exports what is added: soon after the first, then every ``interval_s``, and at the end.

    An endpoint that fails costs values, never time: it is tried again at the next interval. A forked
    child of the host exports nothing.
    """

    def __init__(
        self,
        settings: SignalSettings,
        attributes: Mapping[str, str | int],
        *,
        interval_s: float,
        observe: Tell = tuple,
    ) -> None:
        """Start the thread. ``observe`` is asked there before each export, for what gauges show."""
        self._settings, self._attributes = settings, attributes
        self._interval_s, self._observe = interval_s, observe
        self._told: SimpleQueue[Tell | None] = SimpleQueue()
        self._exported = 0
        self._undelivered = 0  # readings since the last one that arrived
        self._reason: str | None = None
        self._ended = threading.Event()
        self._dead = False  # finished, or this is a forked child
        forks.register(self)
        try:
            threading.Thread(target=self._run, name="enginetrail-metrics", daemon=True).start()
        except RuntimeError as error:  # the process may have no more threads; nothing depends on metrics
            self._undelivered, self._reason, self._dead = 1, f"{type(error).__name__}: {error}", True

    def add(self, tell: Tell) -> None:
        """Have measurements made and recorded, on the thread. Never waits."""
        if not self._dead:
            self._told.put(tell)

    def finish(self, timeout_s: float) -> ExportFinished:
        """Export the rest, for at most ``timeout_s``, and say how it went: in readings of all metrics."""
        self._told.put(None)
        in_time = self._dead or self._ended.wait(timeout_s)
        self._dead = True
        lost, reason = self._undelivered, self._reason
        if not in_time:
            lost, reason = lost + 1, reason or f"no answer within {timeout_s:g} s"
        return ExportFinished(signal="metrics", exported=self._exported, dropped=lost, reason=reason if lost else None)

    def after_fork_in_child(self) -> None:
        """Export nothing here: thread and connection are the parent's."""
        self._dead = True

    def _run(self) -> None:
        try:
            meters = self._connect()
            try:
                self._follow(meters)
                self._export(meters)
            finally:
                meters.close()
        except Exception as error:  # noqa: BLE001 # the reason of the drop; nothing depends on metrics
            self._undelivered += 1
            self._reason = f"{type(error).__name__}: {error}"
        finally:
            self._ended.set()

    def _connect(self) -> _Meters:
        from builder_agent.telemetry.meters import Meters  # noqa: PLC0415 # heavy, and only where asked for

        return Meters(self._settings, self._attributes)

    def _follow(self, meters: _Meters) -> None:
        """Record what is told, and export when it is time, until the end is told."""
        due: float | None = None  # the first export follows the first measurements: a run shows from its start
        while True:
            try:
                tell = self._told.get(timeout=None if due is None else max(due - time.monotonic(), 0))
            except Empty:
                self._export(meters)
                due = time.monotonic() + self._interval_s
                continue
            if tell is None:
                return
            _record(meters, tell)
            due = time.monotonic() if due is None else due

    def _export(self, meters: _Meters) -> None:
        _record(meters, self._observe)
        answer = meters.export()
        if answer is None:
            return
        if answer.refused is None:
            self._exported, self._undelivered, self._reason = self._exported + 1, 0, None
        else:
            self._undelivered, self._reason = self._undelivered + 1, answer.refused


class RunMetrics:
    """The metrics of one run, from its records: ``take`` them as they become durable, then ``finish``."""

    def __init__(self, settings: TelemetrySettings, *, observe: Tell = tuple) -> None:
        """Start nothing yet: the resource is the building process, which ``run.started`` names.

        ``observe`` gives gauges of this home, asked on the export's thread.
        """
        self._settings, self._observe = settings, observe
        self._run = RunMeasurements()
        self._export: MetricsExport | None = None

    def take(self, records: Iterable[Recorded]) -> None:
        """Take records of the run's streams, a stream's in their order. Never waits."""
        taken = tuple(records)
        if self._export is None:
            self._export = self._begun(taken)
        if self._export is not None:
            self._export.add(lambda: self._run.take(taken))

    def end(self) -> None:
        """Tell the run's end. Never waits; the values are on their way until ``finish``."""
        if self._export is not None:
            self._export.add(self._run.final)

    def finish(self, timeout_s: float, others: Iterable[ExportFinished] = ()) -> ExportFinished | None:
        """Export the rest within ``timeout_s``, and say how it went; ``None`` where there was no run.

        ``others`` are the ends of the run's other exporters, whose drops are counted.
        """
        if self._export is None:
            return None
        lost = [dropped(DROPPED_BY_SIGNAL[end.signal], end.dropped) for end in others if end.dropped]
        self.end()
        self._export.add(lambda: lost)
        return self._export.finish(timeout_s)

    def _begun(self, records: Iterable[Recorded]) -> MetricsExport | None:
        started = next((record for record in records if isinstance(record.event, RunStarted)), None)
        if self._settings.metrics is None or started is None or not isinstance(started.event, RunStarted):
            return None
        process = resource(started.stream, started.event)
        return MetricsExport(
            self._settings.metrics,
            {
                **{key: value for key, value in process.items() if isinstance(value, str | int)},
                **self._settings.resource,
            },
            interval_s=self._settings.metric_interval_s,
            observe=self._observe,
        )


def _record(meters: _Meters, tell: Tell) -> None:
    try:
        for item in tell():
            meters.record(item)
    except Exception:  # noqa: BLE001 # one record that makes no measurement must not end the others
        _log.exception("metrics are incomplete; the build goes on")
