"""The supervised build: a child process that builds, and the parent that can always end it.

The parent owns signals, the deadline, the ladder, reaping and sweeping; it learns of the build by
tailing the child's segment and writes an observer stream of its own (docs/contract.md section 3).
"""

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from build_events.clock import NS_PER_MS, NS_PER_S, Clock
from build_events.envelope import Recorded
from build_events.errors import EngineTrailError
from build_events.local_log import LocalLog
from builder_agent.errors import UsageError
from builder_agent.supervised.child_output import ChildOutput
from builder_agent.supervised.conclusion import SupervisedResult, conclude_run, conclude_without_run, memory_kills
from builder_agent.supervised.control import BuildSpec
from builder_agent.supervised.feed import Feed
from builder_agent.supervised.ladder import Graces
from builder_agent.supervised.mailbox import Mailbox
from builder_agent.supervised.main_stream import MainStream
from builder_agent.supervised.observer import Observer
from builder_agent.supervised.process import ChildProcess
from builder_agent.supervised.signals import signals_noted
from builder_agent.supervised.watch import Watch
from builder_agent.supervisor_lock import SupervisorLock

if TYPE_CHECKING:  # most builds export nothing, and start the sooner
    from builder_agent.telemetry.run_telemetry import RunTelemetry

__all__ = ["Mailbox", "SupervisedResult", "SupervisorSettings", "supervise"]


@dataclass(frozen=True, slots=True, kw_only=True)
class SupervisorSettings:
    """How the supervisor behaves. Times in nanoseconds."""

    graces: Graces = field(default_factory=Graces)
    poll_ns: int = 15 * NS_PER_MS  # between two looks at the child's segment; bar 20 ms
    feed_close_ns: int = 2 * NS_PER_S  # for a terminal that stands still at the end


def supervise(
    spec: BuildSpec,
    *,
    clock: Clock,
    on_event: Callable[[Recorded], None] = lambda _record: None,
    on_message: Callable[[str], None] = lambda _text: None,
    on_output: Callable[[str], None] | None = None,
    mailbox: Mailbox | None = None,
    settings: SupervisorSettings = SupervisorSettings(),
    telemetry: "RunTelemetry | None" = None,
) -> SupervisedResult:
    """Build in a child process; return when it is gone, its files are in order and all is recorded.

    ``on_event`` gets every event of the run, the supervisor's own included, ``on_message`` sentences
    for a person, and ``on_output`` the lines that the child prints: why it refuses a build, and the
    builder's log (default: they go to this process's stderr). All are called on one other thread,
    never two at once. ``mailbox`` takes requests to stop from other threads; ``telemetry`` gets what is
    durable, however the callbacks stand still, and ends with the run. SIGINT, SIGTERM and
    SIGHUP are taken while this runs, and given back; one that comes when the build is over, and its
    end is still being told, changes nothing. A caller that has more to tell afterwards calls this
    inside ``signals_noted`` of its own.

    Raises:
        UsageError: not called in the main thread.
        LogUnavailableError: the log folder cannot be written; nothing was started.
        LogCorruptError: the log folder cannot be used; nothing was started.
        Exception: what a callback raised, after everything else is done.
    """
    if threading.current_thread() is not threading.main_thread():
        # Only this thread gets signals, and the kernel ties the child's life to the thread that forked it.
        raise UsageError("a build can be supervised in the main thread only: call supervise there")
    mail = mailbox or Mailbox(clock=clock)
    folder = Path(spec.log_folder)
    LocalLog.create(folder).identity()
    lock = SupervisorLock(folder, spec.run_id)
    with signals_noted(lambda source, at: mail.request_cancel(source, at=at), clock):
        lock.acquire()
        feed = Feed(on_event, on_message, on_output or (lambda _line: None))
        try:
            output = ChildOutput(feed.output) if on_output else None
            result = _supervise(spec, mail, feed, settings, clock=clock, output=output, telemetry=telemetry)
        except BaseException:
            feed.stop()
            raise
        finally:
            lock.release()
        # Still under our handlers: a signal now must not keep the caller from hearing how the build ended.
        if output is not None:
            output.close(settings.feed_close_ns)
        feed.close(settings.feed_close_ns)
    return result


def _supervise(
    spec: BuildSpec,
    mailbox: Mailbox,
    feed: Feed,
    settings: SupervisorSettings,
    *,
    clock: Clock,
    output: ChildOutput | None,
    telemetry: "RunTelemetry | None",
) -> SupervisedResult:
    spec = spec.model_copy(update={"terminate_grace_ns": settings.graces.kill_ns})
    main = MainStream(spec)
    durable = telemetry.take if telemetry else _to_nobody
    observer = Observer(spec, clock=clock, on_failure=feed.message, on_durable=durable)
    watch = Watch(
        spec,
        main=main,
        observer=observer,
        feed=feed,
        mailbox=mailbox,
        graces=settings.graces,
        clock=clock,
        on_durable=durable,
    )
    kills_before = memory_kills()
    try:
        printing = output.write_end if output else None
        child = ChildProcess(spec, clock=clock, on_exit=mailbox.report_exit, stderr=printing)
    finally:
        if output is not None:
            output.close_write_end()
    try:
        how = watch.until_exit(child, settings.poll_ns)
    finally:
        child.close()
        main.close()
    if not main.started:
        return conclude_without_run(spec, how, watch=watch, feed=feed)
    result = conclude_run(
        spec, how, pid=child.pid, kills_before=kills_before, main=main, observer=observer, watch=watch
    )
    if telemetry is not None:
        _export(telemetry, Path(spec.log_folder), feed, clock=clock)
    return result


def _export(telemetry: "RunTelemetry", log_folder: Path, feed: Feed, *, clock: Clock) -> None:
    """Export what ends the run, declare it in the log, and say what is missing; within the exporter's bound."""
    from builder_agent.telemetry.run_telemetry import declare  # noqa: PLC0415 # as above

    end = telemetry.finish()
    if end is None:
        return
    try:
        for record in declare(end, LocalLog(log_folder), clock=clock):
            feed.event(record)
    except (EngineTrailError, OSError) as error:
        feed.message(f"event log: {error}")
    if end.shortfall is not None:
        feed.message(end.shortfall)


def _to_nobody(_records: Sequence[Recorded]) -> None:
    pass
