"""A fence is final: whatever the run's processes say, before or after it arrives, the run stays lost."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from build_events.clock import NS_PER_S
from build_events.envelope import Recorded, StreamHeader
from build_events.events import RunFenced
from build_events.fold import fold_run
from build_events.state import RunState
from tests.build_events.scenes import ENDS, End, Scene, flatten
from tests.build_events.strategies import histories

LATE: dict[End, str | None] = {end: None if end in {"lost", "open"} else end for end in ENDS}


def fence(history: list[Recorded]) -> Recorded:
    """Return what a collector on another host records of the run."""
    run_id = history[0].stream.run_id
    header = StreamHeader(stream_id="fence", role="observer", run_id=run_id, source="collector", boot_id="boot-2")
    event = RunFenced(
        main_stream_id=f"{run_id}-build", last_sequence=3, lease_ns=60 * NS_PER_S, silent_ns=61 * NS_PER_S
    )
    return Recorded(stream=header, sequence=0, wall_ns=1, monotonic_ns=1, event=event)


def folded(records: list[Recorded]) -> RunState:
    """Return the one run of these records."""
    state = fold_run(records)
    assert state is not None
    return state


@pytest.mark.parametrize("end", ENDS)
def test_a_fenced_run_is_lost_and_shows_what_came_late(end: End) -> None:
    """However the run ends after all, the outcome stays lost, and nothing of it can be judged."""
    history = Scene().play(end, flatten((((), ()),)), 4)
    run = folded([*history, fence(history)]).run
    assert (run.outcome, run.late_outcome, run.complete) == ("lost", LATE[end], False)
    assert (run.artifact_sha256, run.finished_at_ns, run.duration_ns, run.error_type) == (None, None, None, None)


@given(history=histories(), data=st.data())
def test_it_does_not_matter_when_the_fence_arrives(history: list[Recorded], data: st.DataObject) -> None:
    """Any order of the same facts folds to the same rows."""
    fenced = [*history, fence(history)]
    assert folded(data.draw(st.permutations(fenced))) == folded(fenced)


def test_a_run_that_nobody_fenced_has_no_late_outcome() -> None:
    """The column belongs to fenced runs alone."""
    assert folded(Scene().play("completed", flatten(((),)), 2)).run.late_outcome is None
