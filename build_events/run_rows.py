"""A run's rows from the states of its streams: merged by presence, never by arrival order."""

from collections.abc import Iterable, Sequence
from typing import assert_never

from build_events import ranges
from build_events.anomaly_rows import phase_anomalies, run_anomalies, stream_anomalies
from build_events.artifact_rows import artifact_rows, judged_digest
from build_events.cancellation_rows import cancellation_row
from build_events.envelope import Recorded
from build_events.events import (
    CancelRequested,
    Outcome,
    ProcessExited,
    RunFenced,
    RunFinished,
    RunLost,
    RunStarted,
    StreamClosed,
)
from build_events.facts import Facts, elapsed_ns
from build_events.state import PhaseRow, PhaseState, PhaseStatus, RunRow, RunState, StreamRow, StreamState

EXIT_STOPPED = 143  # of a building process that left on SIGTERM: 128 + 15


def run_state(run_id: str, streams: Iterable[StreamState], *, dead_letters: int) -> RunState:
    """Return the rows of one run.

    ``dead_letters`` is how many bad records its streams hold in the log. A torn tail is none: its
    bytes were never acknowledged, and inside the declared end it shows as a gap.
    """
    facts = Facts(list(streams))
    outcome = run_outcome(facts)
    rows = tuple(sorted((stream_row(state, facts) for state in facts.streams), key=lambda row: row.stream_id))
    phases = tuple(
        phase_row(run_id, state.phases[number], outcome) for state in facts.mains for number in sorted(state.phases)
    )
    cancellation, clock_anomalies = cancellation_row(run_id, facts)
    anomalies = {
        *run_anomalies(run_id, facts),
        *stream_anomalies(run_id, rows, outcome),
        *phase_anomalies(phases, outcome),
        *clock_anomalies,
    }
    return RunState(
        run=_run_row(run_id, facts, outcome, rows, dead_letters),
        phases=phases,
        cancellation=cancellation,
        artifacts=artifact_rows(run_id, facts),
        streams=rows,
        anomalies=tuple(sorted(anomalies, key=lambda row: (row.code, row.stream_id or "", row.detail))),
    )


def run_outcome(facts: Facts) -> Outcome | None:
    """Return how the run ended: lost once fenced, else by its own word; ``None`` while open."""
    return "lost" if facts.first(RunFenced) else outcome_by_word(facts)


def outcome_by_word(facts: Facts) -> Outcome | None:
    """Return how the run ended by its own word, else the supervisor's, else lost; ``None`` while open."""
    finished = facts.own(RunFinished)
    if finished is not None:
        if finished.event.outcome == "completed" and _cancel_came_before_the_end(facts, finished.record):
            return "completed_despite_cancel"
        return finished.event.outcome
    exited = facts.first(ProcessExited)
    if exited is not None:
        return _outcome_of_exit(exited.event, asked=bool(facts.all(CancelRequested)))
    return "lost" if facts.first(RunLost) else None


def stream_row(state: StreamState, facts: Facts | None = None) -> StreamRow:
    """Return what is known of a stream; ``facts`` of its run tell of an end that the supervisor declared."""
    closed = next((record.event for record in state.kept if isinstance(record.event, StreamClosed)), None)
    declared = closed.events if closed else None
    if declared is None and facts is not None:
        declared = _end_seen_by_supervisor(state, facts)
    return StreamRow(
        stream_id=state.header.stream_id,
        role=state.header.role,
        run_id=state.header.run_id,
        route=state.header.route,
        events=ranges.size(state.seen),
        highest_sequence=state.next_sequence - 1 if state.seen else None,
        declared_events=declared,
        dropped=closed.dropped if closed else None,
        missing=ranges.gaps(state.seen, max(state.next_sequence, declared or 0)),
    )


def phase_row(run_id: str, phase: PhaseState, outcome: Outcome | None) -> PhaseRow:
    """Return a phase's row; an open phase takes the outcome of a run that could not end by itself."""
    return PhaseRow(
        run_id=run_id,
        phase_id=phase.phase_id,
        parent_id=phase.parent_id,
        name=phase.name,
        started_at_ns=phase.started_at_ns,
        duration_ns=phase.duration_ns,
        steps_total=phase.steps_total,
        steps_seen=phase.steps_seen,
        longest_gap_ns=phase.longest_gap_ns,
        status=phase.ended or _status_of_open_phase(outcome),
    )


def _status_of_open_phase(outcome: Outcome | None) -> PhaseStatus:
    match outcome:
        case "killed" | "crashed" | "oom_killed" | "lost":
            return outcome
        case None | "completed" | "completed_despite_cancel" | "cancelled" | "failed":
            return "open"
        case _:
            assert_never(outcome)


def _end_seen_by_supervisor(state: StreamState, facts: Facts) -> int | None:
    for _, event in facts.all(ProcessExited):
        if event.main_stream_id == state.header.stream_id and event.last_sequence is not None:
            return event.last_sequence + 1
    return None


def _outcome_of_exit(event: ProcessExited, *, asked: bool) -> Outcome:
    # A child that was told to go and leaves by its exit code went because of that; one that another
    # signal ended (a fault, the kernel's killer) did not.
    if event.signals_sent and (event.signal is None or event.signal in event.signals_sent):
        return "killed"
    if asked and event.exit_code == EXIT_STOPPED:
        return "killed"  # the same SIGTERM stopped build and supervisor, as a service manager's does
    return "oom_killed" if event.oom_killed else "crashed"


def _how_it_exited(event: ProcessExited) -> str:
    how = f"signal {event.signal}" if event.signal else f"exit code {event.exit_code}"
    sent = f"; the supervisor had sent {', '.join(event.signals_sent)}" if event.signals_sent else ""
    return f"the building process ended by {how}{sent}"


def _cancel_came_before_the_end(facts: Facts, finished: Recorded) -> bool:
    exited = facts.first(ProcessExited)
    of_main = (fact.record for fact in facts.all(StreamClosed) if fact.record.stream == finished.stream)
    end = exited.record if exited else next(of_main, finished)
    return any(not _came_after(fact.record, end) for fact in facts.all(CancelRequested))


def _came_after(record: Recorded, end: Recorded) -> bool:
    elapsed = elapsed_ns(end, record)
    return record.wall_ns > end.wall_ns if elapsed is None else elapsed > 0


def _late(facts: Facts) -> Outcome | None:
    late = outcome_by_word(facts)
    return None if late == "lost" else late


def _run_row(
    run_id: str, facts: Facts, outcome: Outcome | None, streams: Sequence[StreamRow], dead_letters: int
) -> RunRow:
    fenced = facts.first(RunFenced) is not None
    started = facts.own(RunStarted)
    finished = None if fenced else facts.own(RunFinished)
    exited = None if fenced else facts.first(ProcessExited)
    end = finished or exited
    duration = finished.event.duration_ns if finished else None
    if finished is None and started is not None and exited is not None:
        duration = elapsed_ns(started.record, exited.record)
    main = [row for row in streams if row.role == "main"]
    complete = bool(main) and all(row.complete for row in main) and dead_letters == 0 and outcome not in {None, "lost"}
    return RunRow(
        run_id=run_id,
        route=started.event.route if started else None,
        mode=started.event.mode if started else None,
        outcome=outcome,
        late_outcome=_late(facts) if fenced else None,
        retry_of=started.event.retry_of if started else None,
        retry_policy=started.event.retry_policy if started else None,
        started_at_ns=started.record.wall_ns if started else None,
        finished_at_ns=end.record.wall_ns if end else None,
        duration_ns=duration,
        complete=complete,
        artifact_sha256=None if fenced else judged_digest(facts),
        error_type=finished.event.error_type if finished else outcome if exited else None,
        error_message=finished.event.error_message if finished else _how_it_exited(exited.event) if exited else None,
        main_stream_id=main[0].stream_id if main else None,
    )
