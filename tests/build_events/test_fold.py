"""The laws of the fold: what arrives, how often and in which order changes nothing."""

import dataclasses

from hypothesis import given
from hypothesis import strategies as st

from build_events import ranges, state_codec
from build_events.envelope import Recorded
from build_events.events import StreamClosed, UnknownEvent
from build_events.fold import FOLDED_TYPES, advance, fold, fold_run, is_late, settle
from build_events.run_rows import phase_row, run_state
from build_events.state import PhaseRow, RunState, StreamState
from tests.build_events.strategies import histories, records, several_histories

ENDED_BY_ITSELF = {"completed", "cancelled", "failed", "completed_despite_cancel"}


def _by_stream(history: list[Recorded]) -> dict[str, list[Recorded]]:
    streams: dict[str, list[Recorded]] = {}
    for record in history:
        streams.setdefault(record.stream.stream_id, []).append(record)
    return streams


def _state(items: list[Recorded]) -> StreamState:
    return advance(StreamState(header=items[0].stream), items)


def _only(history: list[Recorded]) -> RunState:
    state = fold_run(history)
    assert state is not None
    return state


@given(history=several_histories(), data=st.data())
def test_redelivery_and_reordering_do_not_change_a_run(history: list[Recorded], data: st.DataObject) -> None:
    """Any permutation of a history with any duplicates folds to the same rows."""
    redelivered = data.draw(st.lists(st.sampled_from(history)))
    arrived = data.draw(st.permutations(history + redelivered))
    assert fold(arrived) == fold(history)


@given(history=histories(), data=st.data())
def test_advancing_in_any_batches_equals_folding_at_once(history: list[Recorded], data: st.DataObject) -> None:
    """A stream's state does not depend on where its events were cut into batches."""
    for items in _by_stream(history).values():
        state = StreamState(header=items[0].stream)
        arrived = data.draw(st.permutations(items))
        while arrived:
            size = data.draw(st.integers(1, len(arrived)))
            state, arrived = advance(state, arrived[:size]), arrived[size:]
        assert state == _state(items)


@given(history=histories(), data=st.data())
def test_a_prefix_never_knows_an_outcome_that_the_whole_history_denies(
    history: list[Recorded], data: st.DataObject
) -> None:
    """Once a run of its own has an outcome, more of the same history keeps it; but for late cancels."""
    cut = data.draw(st.integers(1, len(history)))
    before, after = _only(history[:cut]).run.outcome, _only(history).run.outcome
    allowed = {None, after}
    if after == "completed_despite_cancel":
        allowed.add("completed")  # the request stands in another stream and may arrive later
    assert before in allowed or before == "lost"


@given(history=histories())
def test_the_fold_reads_only_the_types_that_it_names(history: list[Recorded]) -> None:
    """Events of other types may be given as bare sequences."""
    for items in _by_stream(history).values():
        read = [record for record in items if record.event.type in FOLDED_TYPES]
        rest = ranges.of(record.sequence for record in items if record.event.type not in FOLDED_TYPES)
        assert advance(StreamState(header=items[0].stream), read, also_seen=rest) == _state(items)


@given(history=histories(), data=st.data())
def test_taking_settled_phases_out_changes_no_row(history: list[Recorded], data: st.DataObject) -> None:
    """Rows of settled phases written early equal those written at the end."""
    whole = _only(history)
    cut = data.draw(st.integers(0, len(history)))
    early: dict[int, PhaseRow] = {}
    states = []
    for items in _by_stream(history).values():
        in_time = [record for record in items if record in history[:cut]]
        settled, state = settle(advance(StreamState(header=items[0].stream), in_time))
        early |= {phase.phase_id: phase_row(whole.run.run_id, phase, whole.run.outcome) for phase in settled}
        states.append(advance(state, items))
    rest = run_state(whole.run.run_id, states, dead_letters=0)
    assert sorted([*early.values(), *rest.phases], key=lambda row: row.phase_id) == list(whole.phases)
    assert dataclasses.replace(rest, phases=()) == dataclasses.replace(whole, phases=())


@given(history=histories())
def test_a_stored_state_comes_back_as_it_was(history: list[Recorded]) -> None:
    """The collector may store a state and advance it in another process."""
    for items in _by_stream(history).values():
        state = _state(items)
        assert state_codec.load(state_codec.dump(state)) == state


@given(anything=st.lists(records(), max_size=20))
def test_the_fold_refuses_no_history(anything: list[Recorded]) -> None:
    """Events in streams and places where they make no sense become rows, never an exception."""
    for run_id, state in fold(anything).items():
        assert state.run.run_id == run_id


@given(history=histories(), data=st.data())
def test_an_event_removed_from_the_middle_is_named_and_the_run_is_not_complete(
    history: list[Recorded], data: st.DataObject
) -> None:
    """A gap in the main stream is found by its sequence, and closed by the late event."""
    main = [record for record in history if record.stream.role == "main"]
    gone = data.draw(st.sampled_from(main[:-1] or main))
    kept = [record for record in history if record is not gone]
    if not any(record.stream.role == "main" for record in kept):
        return
    state = _only(kept)
    row = next(row for row in state.streams if row.role == "main")
    if gone is not main[-1]:
        assert ranges.contains(row.missing, gone.sequence)
        assert not state.run.complete
        assert is_late(_state([record for record in main if record is not gone]), gone.sequence)
    assert _only([*kept, gone]) == _only(history)


@given(history=histories())
def test_a_run_is_complete_exactly_when_its_end_is_declared_and_all_is_there(history: list[Recorded]) -> None:
    """Every ended run of the contract is complete, a lost one never; a dead letter undoes it."""
    state = _only(history)
    main = next(row for row in state.streams if row.role == "main")
    declared = main.declared_events is not None and not main.dropped
    assert state.run.complete == (declared and state.run.outcome not in {None, "lost"})
    spoilt = fold_run(history, dead_letters=1)
    assert spoilt is not None
    assert not spoilt.run.complete


@given(history=histories())
def test_an_unknown_type_counts_for_completeness_and_nothing_else(history: list[Recorded]) -> None:
    """A newer writer's event keeps its place in the stream."""
    replaced = [
        dataclasses.replace(record, event=UnknownEvent(type="trt.of.tomorrow.v9", data=None))
        if record.event.type not in FOLDED_TYPES
        else record
        for record in history
    ]
    assert fold(replaced) == fold(history)


def test_ranges_say_what_is_missing() -> None:
    """Gaps are half-open ranges below the end; the text is for people."""
    seen = ranges.of([0, 1, 2, 5, 6, 9])
    assert seen == ((0, 3), (5, 7), (9, 10))
    assert ranges.gaps(seen, 12) == ((3, 5), (7, 9), (10, 12))
    assert ranges.text(ranges.gaps(seen, 12)) == "3-4, 7-8, 10-11"
    assert ranges.size(seen) == 6


@given(left=st.sets(st.integers(0, 40)), right=st.sets(st.integers(0, 40)), end=st.integers(0, 50))
def test_ranges_behave_as_the_sets_they_stand_for(left: set[int], right: set[int], end: int) -> None:
    """Union, size, membership and gaps equal those of plain sets."""
    both = ranges.union(ranges.of(left), ranges.of(right))
    assert both == ranges.of(left | right)
    assert ranges.size(both) == len(left | right)
    assert all(ranges.contains(both, number) == (number in left | right) for number in range(50))
    missing = {number for low, high in ranges.gaps(both, end) for number in range(low, high)}
    assert missing == set(range(end)) - (left | right)


def test_a_stream_closed_is_the_only_end_that_a_stream_declares_itself() -> None:
    """The declared count includes the closing event."""
    assert StreamClosed.type in FOLDED_TYPES
