"""The fold of phases: from the events of phase instances, or from a store's columns that hold the same."""

from collections.abc import Iterable, Mapping
from typing import Literal, NamedTuple

from build_events.envelope import Recorded
from build_events.events import CancelState, PhaseFinished, PhaseProgressed, PhaseStarted
from build_events.state import PhaseState


class PhaseFact(NamedTuple):
    """What the fold reads of a phase event. A store with these columns need not make the event again."""

    sequence: int  # first, so that facts sort by it
    type: str
    wall_ns: int
    phase_id: int
    parent_id: int | None
    name: str
    steps_total: int
    steps_seen: int
    cancel_state: CancelState
    longest_gap_ns: int | None = None  # null at the start
    duration_ns: int | None = None  # of a finish
    after_error: bool | None = None  # of a finish


def fact_of(record: Recorded, event: PhaseStarted | PhaseProgressed | PhaseFinished) -> PhaseFact:
    """Return what the fold reads of ``event``, which ``record`` carries."""
    return PhaseFact(
        sequence=record.sequence,
        type=event.type,
        wall_ns=record.wall_ns,
        phase_id=event.phase_id,
        parent_id=event.parent_id,
        name=event.name,
        steps_total=event.steps_total,
        steps_seen=event.steps_seen,
        cancel_state=event.cancel_state,
        longest_gap_ns=None if isinstance(event, PhaseStarted) else event.longest_gap_ns,
        duration_ns=event.duration_ns if isinstance(event, PhaseFinished) else None,
        after_error=event.after_error if isinstance(event, PhaseFinished) else None,
    )


def merge_phases(phases: Mapping[int, PhaseState], facts: Iterable[PhaseFact]) -> dict[int, PhaseState]:
    """Return the phases after these facts, in any order, none of them known before."""
    news: dict[int, list[PhaseFact]] = {}
    for fact in sorted(facts):
        news.setdefault(fact.phase_id, []).append(fact)
    return {**phases, **{number: _merged(phases.get(number), news[number]) for number in news}}


def _merged(known: PhaseState | None, facts: list[PhaseFact]) -> PhaseState:
    # One state per phase and call, whatever its number of facts: making states is what costs.
    first = known or facts[0]
    steps_seen = known.steps_seen if known else 0
    longest_gap_ns = known.longest_gap_ns if known else None
    started_at_ns = known.started_at_ns if known else None
    duration_ns = known.duration_ns if known else None
    ended = known.ended if known else None
    for fact in facts:
        steps_seen = max(steps_seen, fact.steps_seen)
        if fact.longest_gap_ns is not None:
            longest_gap_ns = max(longest_gap_ns or 0, fact.longest_gap_ns)
        if fact.type == PhaseStarted.type:
            started_at_ns = fact.wall_ns
        elif fact.type == PhaseFinished.type:
            duration_ns, ended = fact.duration_ns, _ended(fact)
    return PhaseState(
        phase_id=first.phase_id,
        name=first.name,
        parent_id=first.parent_id,
        steps_total=first.steps_total,
        steps_seen=steps_seen,
        longest_gap_ns=longest_gap_ns,
        started_at_ns=started_at_ns,
        duration_ns=duration_ns,
        ended=ended,
    )


def _ended(fact: PhaseFact) -> Literal["finished", "cancelled", "failed"]:
    # A cancelled build records its cancellation as an error too: the cancellation is the cause.
    if fact.cancel_state == "observed":
        return "cancelled"
    return "failed" if fact.after_error else "finished"
