"""What every start of a home does first: find the runs that nobody saw the end of, and end them.

A run is lost when the lock of its main stream is free, the stream was never closed, and neither its
supervisor nor an earlier start has declared its end. Only processes of the same home may judge so.
"""

from dataclasses import dataclass
from pathlib import Path

from build_events import clock as clocks
from build_events import ids
from build_events.clock import Clock
from build_events.envelope import Recorded, StreamHeader
from build_events.errors import LogUnavailableError
from build_events.events import ArtifactQuarantined, Event, ProcessExited, RetryPlanned, RunLost
from build_events.local_log import AbandonedStream, LocalLog, read_run, unlocked_streams
from build_events.stream import EventStream
from builder_agent.files.sweep import inventory_after, is_swept, sweep
from builder_agent.supervised.ends import plan_unseen
from builder_agent.supervisor_lock import is_supervised, remove_abandoned_locks
from builder_agent.unstarted import remove_unstarted

SOURCE = "enginetrail/recovery"


@dataclass(frozen=True, slots=True, kw_only=True)
class RecoveredRun:
    """A run whose end this call declared, or whose files it put in order."""

    run_id: str
    lost: bool  # false: its supervisor had recorded the exit, and died before the sweep
    quarantined: tuple[str, ...]  # where its temporary files lie now
    # All that is known of the run, this call's own facts included: a spool may have handed them on by now.
    records: tuple[Recorded, ...]


def recover(log_folder: Path, *, clock: Clock) -> list[RecoveredRun]:
    """Declare the abandoned runs of a home lost, quarantine what they left, and return them.

    A live build is never touched: its lock is held. Any number of processes may do this at once, and
    each may die in the middle: a run's lock goes only after everything about it is durable, so the
    next start does again what is not recorded yet.

    Raises:
        LogCorruptError: the log cannot be read.
        LogUnavailableError: the log cannot be written.
    """
    recovered = []
    for stream in unlocked_streams(log_folder):
        run_id = stream.run_id
        # First whether the supervisor lives, then what it has written: one that is gone by now wrote all it knew.
        if run_id is not None and is_supervised(log_folder, run_id):
            continue
        if run_id is not None and stream.role == "main":
            run = _end(log_folder, run_id, stream, clock)
            if run is not None:
                recovered.append(run)
        stream.remove_lock()
        if run_id is not None and stream.role is None:
            remove_unstarted(log_folder, run_id, stream.stream_id)
    remove_abandoned_locks(log_folder)
    return recovered


def _end(log_folder: Path, run_id: str, stream: AbandonedStream, clock: Clock) -> RecoveredRun | None:
    """Record what is missing of a run's end; ``None`` where nothing is. The stream's lock is held."""
    records = read_run(log_folder, run_id)
    lost = not _end_is_declared(records, stream.stream_id)
    swept = is_swept(records)
    if swept and not lost:
        return None
    events: list[Event] = []
    if lost:
        last = max(record.sequence for record in stream.records)
        events.append(RunLost(main_stream_id=stream.stream_id, last_sequence=last))
    facts = [] if swept else sweep(records, by="next_start")
    events += facts
    plan = plan_unseen("lost") if lost else None
    if plan is not None and not any(isinstance(record.event, RetryPlanned) for record in records):
        events.append(plan)
    if not swept:
        events += inventory_after(records)
    header = StreamHeader(
        stream_id=ids.random_id(),
        role="observer",
        run_id=run_id,
        trace_id=stream.records[0].stream.trace_id,
        source=SOURCE,
        boot_id=clocks.boot_id(),
    )
    own = _append(log_folder, header, events, clock)
    moved = tuple(fact.quarantine for fact in facts if isinstance(fact, ArtifactQuarantined))
    return RecoveredRun(run_id=run_id, lost=lost, quarantined=moved, records=(*records, *own))


def _append(log_folder: Path, header: StreamHeader, events: list[Event], clock: Clock) -> list[Recorded]:
    log = LocalLog(log_folder)
    try:
        return EventStream(header, log, clock=clock).close(*events)
    except LogUnavailableError:
        # Whoever tries every second until there is room leaves neither descriptors nor files behind.
        log.close()
        assert header.run_id is not None
        remove_unstarted(log_folder, header.run_id, header.stream_id)
        raise


def _end_is_declared(records: list[Recorded], main_stream_id: str) -> bool:
    ends = (record.event for record in records if isinstance(record.event, ProcessExited | RunLost))
    return any(end.main_stream_id == main_stream_id for end in ends)
