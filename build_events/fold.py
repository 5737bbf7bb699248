"""The fold: a stream's events to its state, and a run's streams to its rows.

Pure and total: history cannot be refused, so what the contract does not allow becomes an anomaly.
Merging is commutative and idempotent, so duplicates, reordering, late events and replay change
nothing. This is the only place that knows what a run's events mean; never again in SQL.
"""

import dataclasses
from collections.abc import Iterable, Sequence

from build_events import ranges
from build_events.envelope import Recorded, StreamHeader
from build_events.events import (
    ArtifactPublished,
    ArtifactPublishing,
    ArtifactQuarantined,
    ArtifactRemoved,
    BuilderReturned,
    CancelObserved,
    CancelRequested,
    CancelSignalled,
    CleanupFinished,
    Event,
    PhaseFinished,
    PhaseProgressed,
    PhaseStarted,
    ProcessExited,
    RunContextRecorded,
    RunFenced,
    RunFinished,
    RunLost,
    RunStarted,
    StreamClosed,
)
from build_events.phase_fold import PhaseFact, fact_of, merge_phases
from build_events.run_rows import run_state
from build_events.state import PhaseState, Ranges, RunState, StreamState

KEPT: tuple[type[Event], ...] = (
    RunStarted,
    RunContextRecorded,
    RunFinished,
    StreamClosed,
    BuilderReturned,
    CancelRequested,
    CancelSignalled,
    CancelObserved,
    CleanupFinished,
    ArtifactPublishing,
    ArtifactPublished,
    ArtifactQuarantined,
    ArtifactRemoved,
    ProcessExited,
    RunLost,
    RunFenced,
)
PHASES: tuple[type[Event], ...] = (PhaseStarted, PhaseProgressed, PhaseFinished)
# All that advance() reads; of every other type only the sequence matters.
FOLDED_TYPES: frozenset[str] = frozenset(cls.type for cls in (*KEPT, *PHASES))


def advance(
    state: StreamState,
    records: Iterable[Recorded],
    *,
    phase_facts: Iterable[PhaseFact] = (),
    also_seen: Ranges = (),
) -> StreamState:
    """Return the state after these records of its stream, in any order.

    ``also_seen`` are sequences whose events the fold does not read, so need not be decoded, or whose
    events are given as ``phase_facts``, each once. A record whose sequence is in
    ``state.seen`` is a duplicate and changes nothing.
    """
    facts = list(phase_facts)
    kept = list(state.kept)
    new: set[int] = set()
    for record in records:
        if record.sequence in new or ranges.contains(state.seen, record.sequence):
            continue
        new.add(record.sequence)
        event = record.event
        if isinstance(event, (PhaseStarted, PhaseProgressed, PhaseFinished)):
            facts.append(fact_of(record, event))
        elif isinstance(event, KEPT):
            kept.append(record)
    kept.sort(key=lambda record: record.sequence)
    seen = ranges.union(state.seen, ranges.union(ranges.of(new), also_seen))
    return dataclasses.replace(state, seen=seen, phases=merge_phases(state.phases, facts), kept=tuple(kept))


def is_late(state: StreamState, sequence: int) -> bool:
    """Say whether a new event fills a gap below what was already seen.

    The settled phases of such a stream may have been taken: fold it again from all its events.
    """
    return sequence < state.next_sequence and not ranges.contains(state.seen, sequence)


def settle(state: StreamState) -> tuple[tuple[PhaseState, ...], StreamState]:
    """Take out the phases that no later event changes, so the state does not grow with the run."""
    settled = tuple(phase for phase in state.phases.values() if phase.settled)
    left = {number: phase for number, phase in state.phases.items() if not phase.settled}
    return settled, dataclasses.replace(state, phases=left)


def fold(records: Iterable[Recorded], *, dead_letters: int = 0) -> dict[str, RunState]:
    """Return every run of these records, by run id. Route streams make no run.

    ``dead_letters`` counts bytes of the log that hold no event; they count against every run given,
    so give the records of one run with them.
    """
    streams: dict[StreamHeader, list[Recorded]] = {}
    for record in records:
        streams.setdefault(record.stream, []).append(record)
    runs: dict[str, list[StreamState]] = {}
    for header, items in streams.items():
        if header.run_id is not None:
            runs.setdefault(header.run_id, []).append(advance(StreamState(header=header), items))
    return {run_id: run_state(run_id, states, dead_letters=dead_letters) for run_id, states in runs.items()}


def fold_run(records: Sequence[Recorded], *, dead_letters: int = 0) -> RunState | None:
    """Return the one run that these records are about, or ``None`` without records of a run."""
    runs = fold(records, dead_letters=dead_letters)
    return next(iter(runs.values()), None)
