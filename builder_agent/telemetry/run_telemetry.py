"""What one run exports, fed with its records once they are durable."""

import logging
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from build_events import clock as clocks
from build_events import ids
from build_events.clock import Clock
from build_events.envelope import Recorded, StreamHeader
from build_events.events import ExportFinished, RunStarted
from build_events.log import EventWriter
from build_events.stream import EventStream
from build_events.telemetry.run_spans import RunSpans
from builder_agent.telemetry.metrics import RunMetrics, Tell
from builder_agent.telemetry.outbox import ExportReport
from builder_agent.telemetry.settings import EXIT_S, TelemetrySettings
from builder_agent.telemetry.span_export import GRACE_S, SpanExport

SOURCE = "enginetrail/telemetry"

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class ExportEnd:
    """How a run's export ended."""

    header: StreamHeader  # of the run's main stream
    exports: tuple[ExportFinished, ...]
    shortfall: str | None  # one line, where an endpoint did not take everything


class RunTelemetry:
    """Nothing before ``run.started``: a run that is refused exports nothing, and has no thread here."""

    def __init__(self, settings: TelemetrySettings, *, observe: Tell = tuple) -> None:
        """``observe`` gives what gauges of this home show."""
        self._settings = settings
        self._spans = RunSpans(settings.intervals)
        self._export = SpanExport(settings) if settings.traces is not None else None
        self._metrics = RunMetrics(settings, observe=observe) if settings.metrics is not None else None
        self._header: StreamHeader | None = None

    def take(self, records: Sequence[Recorded]) -> None:
        """Take durable records of the run's streams; never waits, never raises.

        They stand in the log whatever becomes of their spans, and whoever stored them must not do it again.
        """
        try:
            self._take(records)
        except Exception:  # noqa: BLE001 # said aloud; neither the log nor the build depends on it
            _log.exception("run telemetry failed; the build and its events go on without it")

    def _take(self, records: Sequence[Recorded]) -> None:
        if self._header is None:
            started = (record.stream for record in records if isinstance(record.event, RunStarted))
            self._header = next(started, None)
        if self._header is None or not records:
            return
        taken = tuple(records)
        if self._export is not None:
            self._export.put(lambda: self._spans.take(taken))
        if self._metrics is not None:
            self._metrics.take(taken)

    def finish(self, timeout_s: float = EXIT_S) -> ExportEnd | None:
        """Export what ends the run, within ``timeout_s`` for both signals together.

        ``None`` where there was no run, or nothing is exported.
        """
        try:
            return None if self._header is None else self._finish(self._header, timeout_s)
        except Exception:  # noqa: BLE001 # as in take; without export.finished a trace lint finds it
            _log.exception("run telemetry failed at the run's end; its events are whole without it")
            return None

    def _finish(self, header: StreamHeader, timeout_s: float) -> ExportEnd | None:
        deadline = time.monotonic() + timeout_s
        if self._metrics is not None:
            self._metrics.end()
        report = None if self._export is None else self._export.finish(timeout_s - GRACE_S, self._spans.final)
        ends: tuple[ExportFinished, ...] = () if report is None else (traces_finished(report),)
        if self._metrics is not None:
            metrics = self._metrics.finish(max(deadline - time.monotonic(), GRACE_S), ends)
            ends += (metrics,) if metrics is not None else ()
        return ExportEnd(header, ends, shortfall(ends, self._settings)) if ends else None


def traces_finished(report: ExportReport) -> ExportFinished:
    """Return a report as the event that declares it."""
    return ExportFinished(signal="traces", exported=report.exported, dropped=report.dropped, reason=report.reason)


def shortfall(ends: Iterable[ExportFinished], settings: TelemetrySettings) -> str | None:
    """Return one line that says what did not arrive; ``None`` where everything did."""
    what = {"traces": "spans", "metrics": "readings of all metrics"}
    signals = {"traces": settings.traces, "metrics": settings.metrics}
    parts = [
        f"{end.dropped} of {end.exported + end.dropped} {what[end.signal]} did not reach {signal.endpoint} "
        f"({end.reason})"
        for end in ends
        if end.dropped and (signal := signals[end.signal]) is not None
    ]
    return f"{'; '.join(parts)}; the run's events are whole without them" if parts else None


def declare(end: ExportEnd, writer: EventWriter, *, clock: Clock) -> list[Recorded]:
    """Append what was exported to the log, in a short stream of its own, and return its records.

    Raises:
        LogUnavailableError: the log did not take it.
    """
    header = StreamHeader(
        stream_id=ids.random_id(),
        role="observer",
        run_id=end.header.run_id,
        trace_id=end.header.trace_id,
        source=SOURCE,
        boot_id=clocks.boot_id(),
    )
    return EventStream(header, writer, clock=clock).close(*end.exports)
