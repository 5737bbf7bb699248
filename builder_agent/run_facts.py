"""The facts that open and close a run, gathered without ever hurting it."""

import importlib.metadata
import logging
import os
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from build_events.events import CleanupFinished, ErrorRecorded, Event, RunContextRecorded, RunStarted
from builder_agent.files.output_folder import quarantine, temp_path
from builder_agent.settings import RunSettings
from builder_agent.texts import cut

T = TypeVar("T")

_log = logging.getLogger(__name__)


def run_started(settings: RunSettings) -> RunStarted:
    """Return the event that opens a run."""
    return RunStarted(
        route=settings.route,
        build_id=settings.run_id,
        mode=settings.mode,
        output=str(settings.output),
        retry_of=settings.retry_of,
        retry_policy=settings.retry_policy,
        deadline_ns=settings.deadline_ns,
        command_started_monotonic_ns=settings.command_started_monotonic_ns,
        lease_ns=settings.lease_ns,
        heartbeat_interval_ns=settings.delivery.heartbeat_interval_ns,
        host=cut(os.uname().nodename),  # any bytes may name a host, and this event must be written
        pid=os.getpid(),
        agent_version=agent_version(),
    )


def run_context(settings: RunSettings) -> RunContextRecorded | None:
    """Return what the run was told of its surroundings, ``None`` where nothing was."""
    context = RunContextRecorded(
        queued_at_ns=settings.queued_at_ns,
        parent_span_id=settings.parent_span_id,
        retried_trace_id=settings.retried_trace_id,
    )
    return None if context == RunContextRecorded() else context


def agent_version() -> str:
    """Return the installed version of EngineTrail, ``unknown`` where it runs from a bare folder."""
    try:
        return importlib.metadata.version("enginetrail")
    except importlib.metadata.PackageNotFoundError:
        return "unknown"


def degrade(what: str, gather: Callable[[], T], post: Callable[[Event], None]) -> T | None:
    """Return what ``gather`` returns, or ``None`` after recording why it failed: telemetry ends no build."""
    try:
        return gather()
    except Exception as error:  # noqa: BLE001 # recorded and said; the build goes on
        message = f"{what}: {type(error).__name__}: {error}"
        _log.warning("telemetry is incomplete, the build goes on: %s", message)
        post(ErrorRecorded(component="agent", code="telemetry", message=cut(message)))
        return None


def clean_up(target: Path, run_id: str, post: Callable[[Event], None]) -> CleanupFinished:
    """Quarantine what the run left beside its target and return what is to be said of it."""
    temp = temp_path(target, run_id)
    try:
        if not temp.exists():
            return CleanupFinished(status="cleaned", by="build")
        post(quarantine(temp, target, run_id, "left behind by its own run"))
    except OSError as error:
        post(ErrorRecorded(component="agent", code="cleanup", message=f"{temp}: {error.strerror}"))
        return CleanupFinished(status="failed", by="build")
    return CleanupFinished(status="quarantined", by="build")
