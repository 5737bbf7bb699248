"""The fold of a batch: the states of touched streams advanced, and the rows of touched runs.

Pure: what the store knows comes in, what it must write goes out. Only ``build_events.fold`` knows what
events mean.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from build_events import fold
from build_events.envelope import Recorded, StreamHeader
from build_events.phase_fold import PhaseFact
from build_events.run_rows import phase_row, run_state, stream_row
from build_events.state import PhaseRow, Ranges, RunState, StreamRow, StreamState


@dataclass(frozen=True, slots=True)
class StreamFold:
    """A stream's state without its settled phases, whose rows are written once."""

    state: StreamState
    highest_phase_id: int = 0  # of all phases ever seen: a later one that is not open has a row already


@dataclass(frozen=True, slots=True)
class StreamNews:
    """What is new of one stream, as far as the fold reads it."""

    header: StreamHeader
    sequences: Ranges
    facts: Sequence[PhaseFact] = ()
    kept: Sequence[Recorded] = ()


@dataclass(slots=True)
class Advanced:
    """Streams after their news."""

    folds: dict[StreamHeader, StreamFold] = field(default_factory=dict)
    settled: list[PhaseRow] = field(default_factory=list)


def needs_all_events(known: StreamFold, news: StreamNews) -> bool:
    """Say whether the news reach back to what was settled, so that the run must be folded from all its events."""
    if known.state.header.run_id is None:
        return False  # a route stream has no phases, and all else that the fold keeps is at hand
    return any(fold.is_late(known.state, low) for low, _ in news.sequences) or any(
        fact.phase_id <= known.highest_phase_id and fact.phase_id not in known.state.phases for fact in news.facts
    )


def advance(known: Mapping[StreamHeader, StreamFold], news: Iterable[StreamNews]) -> Advanced:
    """Return the streams that have news, after them."""
    after = Advanced()
    for item in news:
        before = known.get(item.header) or StreamFold(StreamState(header=item.header))
        state = fold.advance(before.state, item.kept, phase_facts=item.facts, also_seen=item.sequences)
        settled, state = fold.settle(state)
        highest = max([before.highest_phase_id, *(fact.phase_id for fact in item.facts)])
        after.folds[item.header] = StreamFold(state, highest)
        if state.header.role == "main" and state.header.run_id is not None:
            # Settled: its status no longer depends on the run's outcome.
            after.settled += [phase_row(state.header.run_id, phase, None) for phase in settled]
    return after


def run_states(folds: Iterable[StreamFold], dead_letters: Mapping[str, int]) -> list[RunState]:
    """Return the rows of the runs that these streams are all the streams of, but for settled phases."""
    by_run: dict[str, list[StreamState]] = {}
    for item in folds:
        run_id = item.state.header.run_id
        if run_id is not None:
            by_run.setdefault(run_id, []).append(item.state)
    return [run_state(run_id, states, dead_letters=dead_letters.get(run_id, 0)) for run_id, states in by_run.items()]


def route_streams(folds: Iterable[StreamFold]) -> list[StreamRow]:
    """Return the rows of route streams."""
    return [stream_row(item.state) for item in folds if item.state.header.run_id is None]
