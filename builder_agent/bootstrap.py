"""The composition root of embedded use: reads the environment, makes ids, opens the log."""

import logging
import os
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Protocol

from build_events import clock, ids
from build_events.envelope import Recorded
from build_events.events import RetryPolicy
from build_events.home import LOG, SPOOL, home_folder
from build_events.kafka_settings import kafka_settings
from build_events.local_log import LocalLog
from build_events.local_log.layout import check_route
from builder_agent.errors import UsageError
from builder_agent.kafka.sink import KafkaSink
from builder_agent.recovery import RecoveredRun, recover
from builder_agent.session import RunSession
from builder_agent.settings import DeliverySettings, RunSettings
from builder_agent.spool.embedded import SpooledLog
from builder_agent.spool.quota import SpoolQuota, spool_limit
from builder_agent.telemetry.environment import telemetry_settings
from builder_agent.telemetry.surroundings import QUEUED_AT, queued_at_ns, trace_context_from, trace_id_of

LOG_VARIABLE = "ENGINETRAIL_LOG"

_log = logging.getLogger(__name__)


def observe(
    *,
    route: str,
    output: str | os.PathLike[str],
    home: str | os.PathLike[str] | None = None,
    retry_of: str | None = None,
    retry_policy: RetryPolicy | None = None,
    signals: bool = False,
    package: str | None = None,
    discard_late: bool = False,
    queued_at: datetime | float | None = None,
    delivery: DeliverySettings | None = None,
) -> RunSession:
    """Return a run to be used as a context manager: it observes one build in this process.

    Events go to the log under ``home``, else ``$ENGINETRAIL_HOME``, else ``.enginetrail`` here. A log
    that cannot be written is said once, through ``logging``, and the build goes on without it. Where
    ``$ENGINETRAIL_LOG`` names a Kafka topic, they go to a spool there and from it to the topic; what the
    topic has not acknowledged when the process ends waits for the next run or ``enginetrail relay``.
    Runs of this home that nobody saw the end of are declared lost first, and their files quarantined.
    ``retry_of`` names the run that this one retries. ``signals=True`` makes SIGINT and SIGTERM
    cancellation requests while the run lives. ``package`` (``tensorrt_rtx`` or ``tensorrt``) is needed
    only where a process has imported both. ``discard_late`` publishes no engine that came after a
    request to stop. ``queued_at`` is when the build was queued: a datetime with a time zone, or seconds
    since 1970; else ``$ENGINETRAIL_QUEUED_AT``.

    Where the standard ``OTEL_*`` variables ask for it, the run is exported as spans: see
    docs/telemetry.md. ``$TRACEPARENT`` makes it a part of the trace that it names.

    Raises:
        UsageError: the arguments contradict each other, are not UTF-8, or ``queued_at`` is no time.
        KafkaSettingsError: ``$ENGINETRAIL_LOG`` or a variable beside it cannot be used.
    """
    try:
        check_route(route)
    except ValueError as error:
        raise UsageError(f"route: {error}") from None
    if retry_policy is not None and retry_of is None:
        raise UsageError("retry_policy is given without retry_of: name the run that this one retries")
    target = Path(output).absolute()
    for what, text in (("route", route), ("output", str(target)), ("retry_of", retry_of or "")):
        _check_text(what, text)
    folder = home_folder(None if home is None else Path(home), os.environ)
    url = os.environ.get(LOG_VARIABLE, "")
    kafka = kafka_settings(url, os.environ) if url else None
    log_folder = folder / (LOG if kafka is None else SPOOL)
    telemetry = telemetry_settings(os.environ)
    for problem in telemetry.problems:
        _log.warning("%s", problem)
    chosen = delivery or DeliverySettings()
    trace = trace_context_from(os.environ)
    settings = RunSettings(
        route=route,
        output=target,
        run_id=ids.random_id(),
        trace_id=trace.trace_id,
        stream_id=ids.random_id(),
        retry_of=retry_of,
        retry_policy=retry_policy,
        queued_at_ns=_queued_at_ns(queued_at),
        parent_span_id=trace.parent_span_id,
        retried_trace_id=trace_id_of(log_folder, retry_of) if retry_of is not None else None,
        discard_late=discard_late,
        delivery=replace(chosen, heartbeat_interval_ns=telemetry.heartbeat_ns(chosen.heartbeat_interval_ns)),
    )
    log: _HomeLog | SpooledLog
    if kafka is None:
        log = _HomeLog(log_folder)
    else:
        drain_s = settings.delivery.drain_timeout_ns / clock.NS_PER_S
        log = SpooledLog(log_folder, KafkaSink(kafka), settings.run_id, exit_s=drain_s)
    writer: _Log = log
    recovered: Callable[[list[RecoveredRun]], None] = lambda _runs: None  # noqa: E731 # replaced below
    if telemetry.exports:
        from builder_agent.telemetry.embedded import ExportedLog  # noqa: PLC0415 # most runs export nothing

        writer = exported = ExportedLog(log, telemetry, clock=clock.system_clock, spooled=kafka is not None)
        recovered = exported.recovered
    return RunSession(
        settings,
        writer=writer,
        clock=clock.system_clock,
        boot_id=clock.boot_id(),
        on_closed=writer.close,
        housekeeping=lambda: recovered(recover(log_folder, clock=clock.system_clock)),
        signals=signals,
        package=package,
        pressure=SpoolQuota(log.folder, spool_limit(os.environ)).pressure if kafka else lambda: "none",
    )


def _queued_at_ns(given: datetime | float | None) -> int | None:
    text = os.environ.get(QUEUED_AT, "") if given is None else given
    if isinstance(text, datetime):
        text = text.isoformat()
    try:
        return queued_at_ns(str(text)) if text != "" else None
    except ValueError as error:
        raise UsageError(f"{QUEUED_AT if given is None else 'queued_at'}: {error}") from None


def _check_text(what: str, text: str) -> None:
    try:
        text.encode()
    except UnicodeEncodeError:
        raise UsageError(f"{what} {text!r} is not UTF-8, which events are written in: rename it") from None


class _Log(Protocol):
    """What a run's records are written to."""

    folder: Path

    def append(self, records: Sequence[Recorded]) -> None:
        """Store them durably."""
        ...

    def close(self) -> None:
        """Append no more."""
        ...


class _HomeLog:
    """The local log, made with the first append: what fails there is a log that is not available."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._log: LocalLog | None = None

    def append(self, records: Sequence[Recorded]) -> None:
        if self._log is None:
            self._log = LocalLog.create(self.folder)
        self._log.append(records)

    def close(self) -> None:
        if self._log is not None:
            self._log.close()
