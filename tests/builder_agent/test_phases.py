"""The pure core of the monitor: raw callbacks in, phase events out."""

from collections.abc import Iterable
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from build_events.events import CancelObserved, ErrorRecorded, Event, PhaseFinished, PhaseProgressed, PhaseStarted
from builder_agent.recording.phases import FINISH, START, STEP, PhaseFact, PhaseTracker, Raw

INTERVAL_NS = 500


class Builder:
    """Calls back as TensorRT does, with a clock that the test moves. Nanoseconds."""

    def __init__(self) -> None:
        self.tracker = PhaseTracker("build-1", INTERVAL_NS)
        self.events: list[Event] = []
        self.times: list[int] = []
        self.now = 1000
        self.thread = 1
        self.requested = self.observed = False

    def start(self, name: str, parent: str | None = None, steps: int = 1) -> None:
        """Start a phase."""
        self.call(START, name, steps, parent)

    def step(self, name: str, number: int, request: str | None = None) -> None:
        """Complete a step."""
        self.call(STEP, name, number, request)

    def finish(self, name: str) -> None:
        """Finish a phase."""
        self.call(FINISH, name, 0, None)

    def call(self, kind: str, name: str, number: int, extra: str | None) -> None:
        """Call back with a raw tuple."""
        raw: Raw = (kind, self.now, self.thread, self.requested, self.observed, name, number, extra)
        self.take(self.tracker.feed(raw))

    def take(self, facts: Iterable[PhaseFact]) -> None:
        """Keep facts."""
        for fact in facts:
            self.events.append(fact.event)
            self.times.append(fact.at_ns)

    def of(self, cls: type[Event]) -> list[Event]:
        """Return the events of a type."""
        return [event for event in self.events if isinstance(event, cls)]

    def started(self) -> list[PhaseStarted]:
        """Return the starts."""
        return [event for event in self.events if isinstance(event, PhaseStarted)]

    def progressed(self) -> list[PhaseProgressed]:
        """Return the progress."""
        return [event for event in self.events if isinstance(event, PhaseProgressed)]

    def finished(self) -> list[PhaseFinished]:
        """Return the finishes."""
        return [event for event in self.events if isinstance(event, PhaseFinished)]


def test_phases_are_numbered_from_one_and_know_their_parents() -> None:
    """Ids are ordinals; a parent is found by its name among the open phases."""
    build = Builder()
    build.start("Building engine", None, 6)
    build.start("Timing", "Building engine", 2)
    build.start("Costs", "Timing")
    assert [(phase.phase_id, phase.parent_id) for phase in build.started()] == [(1, None), (2, 1), (3, 2)]


def test_a_name_that_comes_again_is_another_phase() -> None:
    """Names are reused one after the other; instances are not mixed up."""
    build = Builder()
    build.start("Root")
    for _ in range(2):
        build.start("Costs", "Root")
        build.step("Costs", 0)
        build.finish("Costs")
    assert [phase.phase_id for phase in build.finished()] == [2, 3]
    assert [phase.steps_seen for phase in build.finished()] == [1, 1]


def test_a_parent_may_report_steps_while_its_child_is_open_and_the_child_may_finish_last() -> None:
    """TensorRT does both in every build, against its own description."""
    build = Builder()
    build.start("Root", None, 1)
    build.start("Costs", "Root", 5)
    build.start("Refit", "Costs", 1)
    for number in range(5):
        build.step("Costs", number)
    build.finish("Refit")
    build.finish("Costs")
    build.finish("Root")
    assert [(phase.name, phase.steps_seen) for phase in build.finished()] == [("Refit", 0), ("Costs", 5), ("Root", 0)]
    assert not build.of(ErrorRecorded)


def test_a_parent_may_finish_before_its_child() -> None:
    """The child stays open and finishes under its own id."""
    build = Builder()
    build.start("Root")
    build.start("Child", "Root")
    build.finish("Root")
    build.step("Child", 0)
    build.finish("Child")
    assert [phase.phase_id for phase in build.finished()] == [1, 2]


def test_steps_that_never_come_leave_the_phase_finished_with_fewer() -> None:
    """Declared and seen differ in every successful build."""
    build = Builder()
    build.start("Root", None, 6)
    build.step("Root", 4)
    build.finish("Root")
    assert (build.finished()[0].steps_seen, build.finished()[0].steps_total) == (5, 6)


def test_two_builds_that_share_a_monitor_are_told_apart_by_their_threads() -> None:
    """The stream of one monitor on two concurrent builds is garbage unless split by thread."""
    build = Builder()
    for build.thread in (1, 2):
        build.start("Root", None, 3)
    for number in range(3):
        for build.thread in (1, 2):
            build.step("Root", number)
    for build.thread in (1, 2):
        build.finish("Root")
    assert [(phase.phase_id, phase.steps_seen, phase.thread_id) for phase in build.finished()] == [(1, 3, 1), (2, 3, 2)]


def test_a_callback_for_a_phase_that_is_not_open_is_recorded_once_and_changes_nothing() -> None:
    """No release does it, and the next may."""
    build = Builder()
    build.start("Root")
    build.step("Nobody", 0)
    build.finish("Nobody")
    build.finish("Root")
    assert len(build.of(ErrorRecorded)) == 1
    assert [phase.name for phase in build.finished()] == ["Root"]


def test_the_first_and_the_last_step_of_a_phase_are_told() -> None:
    """However fast the steps come: one event for the first, one for the rest."""
    build = Builder()
    build.start("Clone", None, 100)
    for number in range(100):
        build.step("Clone", number)
    build.finish("Clone")
    assert [(event.steps_seen, event.callbacks) for event in build.progressed()] == [(1, 1), (100, 99)]


def test_progress_that_waits_too_long_is_told_without_a_further_callback() -> None:
    """A silent phase shows its last step one interval after the event before it."""
    build = Builder()
    build.start("Costs", None, 5)
    for number in range(3):
        build.step("Costs", number)
    assert not list(build.tracker.overdue(build.now + INTERVAL_NS - 1, "none"))
    build.take(build.tracker.overdue(build.now + INTERVAL_NS, "none"))
    assert [event.steps_seen for event in build.progressed()] == [1, 3]
    assert build.times[-1] == build.now, "the event tells when the last step came, not when it was told"


def test_the_longest_silence_belongs_to_the_innermost_phase_and_those_around_it() -> None:
    """A parent's gap includes its child's, and a child's busy time is no silence of the parent."""
    build = Builder()
    build.start("Root")
    build.start("Compile", "Root")
    build.now += 9000
    build.step("Compile", 0)
    build.finish("Compile")
    build.start("Quick", "Root")
    build.now += 10
    build.finish("Quick")
    build.finish("Root")
    assert {phase.name: phase.longest_gap_ns for phase in build.finished()} == {
        "Compile": 9000,
        "Quick": 10,
        "Root": 9000,
    }


def test_a_phase_that_finishes_after_an_error_without_further_work_is_unwinding() -> None:
    """An error that the build survives is not the phase's failure."""
    build = Builder()
    build.start("Root")
    build.start("Survives", "Root")
    build.tracker.note_error()
    build.step("Survives", 0)
    build.finish("Survives")
    build.tracker.note_error()
    build.finish("Root")
    assert [(phase.name, phase.after_error) for phase in build.finished()] == [("Survives", False), ("Root", True)]


def test_the_first_refusal_names_the_phase_and_later_finishes_carry_the_state() -> None:
    """cancel.observed comes once, and what unwinds after it says so."""
    build = Builder()
    build.start("Root")
    build.start("Compile", "Root")
    build.requested = build.observed = True
    build.step("Compile", 0, request="request-1")
    build.finish("Compile")
    build.finish("Root")
    assert build.of(CancelObserved) == [CancelObserved(request_id="request-1", phase_id=2)]
    assert [phase.cancel_state for phase in build.finished()] == ["observed", "observed"]


@given(steps=st.lists(st.integers(0, 2000), max_size=60))
def test_coalescing_loses_no_step_and_tells_at_most_one_event_per_interval(steps: list[int]) -> None:
    """The counts of the events add up to the callbacks; between two events lies an interval, but for the last."""
    build = Builder()
    build.start("Phase", None, len(steps))
    for number, pause in enumerate(steps):
        build.now += pause
        build.step("Phase", number)
    build.finish("Phase")
    assert sum(event.callbacks for event in build.progressed()) == len(steps)
    times = [at for at, event in zip(build.times, build.events, strict=True) if isinstance(event, PhaseProgressed)]
    assert all(after - before >= INTERVAL_NS for before, after in pairwise(times[:-1]))
    assert build.finished()[0].longest_gap_ns == max(steps, default=0)


names = st.sampled_from(["a", "b", "c"])
callbacks = st.tuples(
    st.sampled_from([START, STEP, FINISH]), st.integers(0, 10**6), st.integers(1, 2), names, st.none() | names
)


@given(calls=st.lists(callbacks, max_size=80))
def test_any_sequence_of_callbacks_is_survived(calls: list[tuple[str, int, int, str, str | None]]) -> None:
    """Whatever a future release calls, started phases keep their numbers and finish at most once."""
    build = Builder()
    for kind, number, thread, name, extra in calls:
        build.thread = thread
        build.call(kind, name, number, extra)
    started = [phase.phase_id for phase in build.started()]
    finished = [phase.phase_id for phase in build.finished()]
    assert started == list(range(1, len(started) + 1))
    assert len(set(finished)) == len(finished)
    assert set(finished) <= set(started)
