"""The ladders, as laws over every history."""

from hypothesis import given
from hypothesis import strategies as st

from build_events.clock import NS_PER_S
from builder_agent.supervised.ladder import Graces, History, ladder

GRACES = Graces()
moments = st.integers(min_value=0, max_value=100 * NS_PER_S)
durations = st.integers(min_value=1, max_value=600 * NS_PER_S)
presses = st.lists(st.tuples(st.sampled_from(["ctrl_c", "service", "api", "ide"]), moments), max_size=30)


def history_of(events: list[tuple[str, int]], deadline_ns: int | None = None, started_ns: int = 0) -> History:
    """Return the history of presses and signals in the order of their times."""
    history = History(command_started_ns=started_ns, deadline_ns=deadline_ns)
    for source, at_ns in sorted(events, key=lambda event: event[1]):
        history = history.after_request(source, at_ns, GRACES)  # type: ignore[arg-type] # drawn from the sources
    return history


@given(presses, st.none() | durations)
def test_no_step_comes_before_the_one_below_it(events: list[tuple[str, int]], deadline_ns: int | None) -> None:
    """The flag is never after SIGTERM, and SIGTERM never after SIGKILL."""
    steps = ladder(history_of(events, deadline_ns), GRACES)
    if steps.terminate_ns is not None:
        assert steps.kill_ns is not None
        assert steps.requests[0].at_ns <= steps.terminate_ns <= steps.kill_ns


@given(presses, durations)
def test_the_deadline_is_the_latest_moment_of_the_kill(events: list[tuple[str, int]], deadline_ns: int) -> None:
    """Nothing that anybody asks for moves SIGKILL past the deadline."""
    steps = ladder(history_of(events, deadline_ns), GRACES)
    assert steps.kill_ns is not None
    assert steps.kill_ns <= deadline_ns


@given(durations, moments)
def test_a_deadline_alone_follows_the_contract(deadline_ns: int, started_ns: int) -> None:
    """The flag rises at max(D/2, D - 6 s), SIGTERM is at D - 1 s but not before it, SIGKILL at D."""
    steps = ladder(history_of([], deadline_ns, started_ns), GRACES)
    (request,) = steps.requests
    assert (request.source, request.deadline) == ("ci", True)
    assert request.at_ns == started_ns + max(deadline_ns // 2, deadline_ns - 6 * NS_PER_S)
    assert steps.terminate_ns == max(request.at_ns, started_ns + deadline_ns - NS_PER_S)
    assert steps.kill_ns == started_ns + deadline_ns


@given(moments)
def test_a_service_stop_escalates_by_itself(at_ns: int) -> None:
    """SIGTERM to the supervisor: the flag at once, SIGTERM after 5 s, SIGKILL 1 s later."""
    steps = ladder(history_of([("service", at_ns)]), GRACES)
    assert [request.at_ns for request in steps.requests] == [at_ns]
    assert (steps.terminate_ns, steps.kill_ns) == (at_ns + 5 * NS_PER_S, at_ns + 6 * NS_PER_S)


@given(st.lists(st.integers(min_value=0, max_value=NS_PER_S), min_size=1, max_size=50))
def test_presses_within_a_second_wait_without_limit(at: list[int]) -> None:
    """However often Ctrl-C is pressed within a second of the first, only the flag rises."""
    steps = ladder(history_of([("ctrl_c", moment) for moment in at]), GRACES)
    assert [request.at_ns for request in steps.requests] == [min(at)]
    assert (steps.terminate_ns, steps.kill_ns) == (None, None)


@given(moments, st.lists(st.integers(min_value=NS_PER_S + 1, max_value=9 * NS_PER_S), min_size=1, max_size=9))
def test_a_press_after_more_than_a_second_ends_the_build(first_ns: int, later: list[int]) -> None:
    """The first Ctrl-C more than a second after the first sends SIGTERM at once and SIGKILL a second later."""
    events = [("ctrl_c", first_ns), *(("ctrl_c", first_ns + delay) for delay in later)]
    steps = ladder(history_of(events), GRACES)
    assert steps.terminate_ns == first_ns + min(later)
    assert steps.kill_ns == first_ns + min(later) + NS_PER_S


@given(presses, presses, st.none() | durations)
def test_more_requests_never_delay_a_step(
    events: list[tuple[str, int]], more: list[tuple[str, int]], deadline_ns: int | None
) -> None:
    """Asking again, in whatever way, can only bring the end nearer."""
    last = max((at for _, at in events), default=0)
    before = ladder(history_of(events, deadline_ns), GRACES)
    after = ladder(history_of([*events, *((source, last + at) for source, at in more)], deadline_ns), GRACES)
    if before.terminate_ns is not None and before.kill_ns is not None:
        assert after.terminate_ns is not None
        assert after.kill_ns is not None
        assert after.terminate_ns <= before.terminate_ns
        assert after.kill_ns <= before.kill_ns


@given(presses, moments)
def test_a_request_is_due_from_its_moment_on(events: list[tuple[str, int]], now_ns: int) -> None:
    """Each source is asked for once, at its first moment, and not before."""
    steps = ladder(history_of(events), GRACES)
    firsts = {source: min(at for name, at in events if name == source) for source, _ in events}
    due = {request.source: request.at_ns for request in steps.due(now_ns)}
    assert due == {source: at for source, at in firsts.items() if at <= now_ns}
