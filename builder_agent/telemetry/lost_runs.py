"""The spans of runs that nobody saw end, by whoever declared them lost: at most once, and within one bound."""

import time
from collections.abc import Iterable, Sequence
from pathlib import Path

from build_events import clock as clocks
from build_events.clock import Clock, Instant
from build_events.envelope import Recorded
from build_events.events import RunLost, RunStarted
from build_events.local_log import LocalLog
from build_events.log import EventWriter
from build_events.telemetry.run_spans import RunSpans
from builder_agent.telemetry.run_telemetry import ExportEnd, declare, shortfall, traces_finished
from builder_agent.telemetry.settings import EXIT_S, TelemetrySettings
from builder_agent.telemetry.span_export import SpanExport


def export_ended(
    runs: Iterable[Sequence[Recorded]],
    settings: TelemetrySettings,
    writer: EventWriter,
    *,
    clock: Clock,
    timeout_s: float = EXIT_S,
) -> list[ExportEnd]:
    """Export what ends each run, from all its records, and declare it; ``timeout_s`` is for all of them.

    What showed the runs while they went on was exported then, or is lost.

    Raises:
        LogUnavailableError: the log did not take a declaration.
    """
    deadline = time.monotonic() + timeout_s
    ends = []
    for records in runs:
        end = _export(records, settings, max(deadline - time.monotonic(), 0))
        if end is not None:
            declare(end, writer, clock=clock)
            ends.append(end)
    return ends


def export_lost(
    runs: Iterable[Sequence[Recorded]], settings: TelemetrySettings, log_folder: Path, *, clock: Clock, spooled: bool
) -> list[ExportEnd]:
    """Export the runs that a start of their home has declared lost.

    Where the folder is the ``spooled`` one of a log that collectors of other hosts read, a run that has been
    silent for half of its lease or longer is left to them: they fence it, and export it then.

    Raises:
        LogUnavailableError: the log did not take a declaration.
    """
    now = clock()
    own = [records for records in runs if not (spooled and _is_for_collectors(records, now))]
    return export_ended(own, settings, LocalLog(log_folder), clock=clock)


def _export(records: Sequence[Recorded], settings: TelemetrySettings, timeout_s: float) -> ExportEnd | None:
    spans = RunSpans(settings.intervals)
    spans.take(records)
    final = spans.final()
    if not final or settings.traces is None:
        return None
    export = SpanExport(settings)
    export.put(tuple)  # opens the exporter: what it sends are the last spans
    report = export.finish(timeout_s, lambda: final)
    header = next(record.stream for record in records if record.stream.role == "main")
    if report is None:
        return None
    ends = (traces_finished(report),)
    return ExportEnd(header, ends, shortfall(ends, settings))


def _is_for_collectors(records: Sequence[Recorded], now: Instant) -> bool:
    """Say whether a collector may fence the run before it hears that the run was declared lost here."""
    lost = {record.event.main_stream_id for record in records if isinstance(record.event, RunLost)}
    main = [record for record in records if record.stream.stream_id in lost]
    started = next((record.event for record in main if isinstance(record.event, RunStarted)), None)
    if started is None or main[-1].stream.boot_id != clocks.boot_id():
        return True
    return now.monotonic_ns - max(record.monotonic_ns for record in main) >= started.lease_ns // 2
