"""How a run ended, by what stands in its streams."""

import pytest

from build_events.envelope import Recorded, StreamHeader, StreamRole
from build_events.events import (
    CancelRequested,
    CleanupFinished,
    Event,
    HeartbeatRecorded,
    ProcessExited,
    RunFinished,
    RunLost,
    StreamClosed,
)
from build_events.fold import fold_run
from build_events.state import RunState

RUN = "run"


def _at(
    event: Event, sequence: int, ns: int, *, stream: str = "a-main", wall_ns: int | None = None, boot: str = "b"
) -> Recorded:
    role: StreamRole = "main" if stream.endswith("main") else "observer"
    header = StreamHeader(stream_id=stream, role=role, run_id=RUN, source="test", boot_id=boot)
    return Recorded(
        stream=header, sequence=sequence, wall_ns=ns if wall_ns is None else wall_ns, monotonic_ns=ns, event=event
    )


def _only(*records: Recorded) -> RunState:
    state = fold_run(records)
    assert state is not None
    return state


COMPLETED = RunFinished(outcome="completed", duration_ns=1)
REQUEST = CancelRequested(request_id="r", source="ctrl_c")


def _exit(**values: object) -> ProcessExited:
    return ProcessExited.model_validate({"main_stream_id": "a-main", "pid": 1, **values})


@pytest.mark.parametrize(
    ("exited", "outcome"),
    [
        (_exit(signal="SIGKILL", signals_sent=["SIGTERM", "SIGKILL"]), "killed"),
        (_exit(exit_code=143, signals_sent=["SIGTERM"]), "killed"),
        (_exit(signal="SIGSEGV", signals_sent=["SIGTERM"]), "crashed"),
        (_exit(signal="SIGKILL", signals_sent=["SIGTERM"], oom_killed=True), "oom_killed"),
        (_exit(signal="SIGKILL"), "crashed"),
        (_exit(exit_code=0), "crashed"),
    ],
)
def test_killed_means_that_our_signal_ended_it(exited: ProcessExited, outcome: str) -> None:
    """A process that something else ended after our SIGTERM was not killed by us."""
    assert _only(_at(exited, 0, 5, stream="observer")).run.outcome == outcome


def test_a_sigterm_that_stopped_build_and_supervisor_alike_is_a_kill() -> None:
    """A service manager signals every process of a service: the child leaves with 143 before its supervisor acts."""
    asked = _at(CancelRequested(request_id="r", source="service"), 0, 4, stream="observer")
    left = _at(_exit(exit_code=143), 1, 5, stream="observer")
    assert _only(asked, left).run.outcome == "killed"
    assert _only(left).run.outcome == "crashed"


def test_the_runs_own_word_counts_before_the_supervisors_and_that_before_lost() -> None:
    """Presence decides, not arrival."""
    lost = _at(RunLost(main_stream_id="a-main"), 0, 9, stream="observer-2")
    exited = _at(_exit(exit_code=0), 0, 5, stream="observer")
    assert _only(lost).run.outcome == "lost"
    assert _only(lost, exited).run.outcome == "crashed"
    assert _only(lost, exited, _at(COMPLETED, 0, 4)).run.outcome == "completed"


def test_a_request_after_the_end_changes_nothing() -> None:
    """A request before the exit makes a completed run ``completed_despite_cancel``; one after it does not."""
    run = (_at(COMPLETED, 0, 4), _at(_exit(exit_code=0), 1, 6, stream="observer"))
    assert _only(*run, _at(REQUEST, 0, 5, stream="observer-2")).run.outcome == "completed_despite_cancel"
    assert _only(*run, _at(REQUEST, 0, 7, stream="observer-2")).run.outcome == "completed"


def test_an_embedded_run_ends_with_its_stream() -> None:
    """Without a supervisor the closed stream is the end that a request must come before."""
    run = (_at(COMPLETED, 0, 4), _at(StreamClosed(events=2, dropped=0), 1, 6))
    assert _only(*run, _at(REQUEST, 0, 5, stream="observer")).run.outcome == "completed_despite_cancel"
    assert _only(*run, _at(REQUEST, 0, 7, stream="observer")).run.outcome == "completed"


def test_two_main_streams_are_an_anomaly_and_no_fault() -> None:
    """The run ends as the stream that holds its end says, also beside a main stream without any fact."""
    idle = _at(HeartbeatRecorded(cancel_state="none"), 0, 1, stream="0-main")
    state = _only(idle, _at(COMPLETED, 0, 4, stream="1-main"), _at(REQUEST, 0, 3, stream="observer"))
    assert state.run.outcome == "completed_despite_cancel"
    assert "several_main_streams" in {row.code for row in state.anomalies}


def test_a_step_of_the_wall_clock_does_not_choose_the_earliest_request() -> None:
    """Within one boot the monotonic clock orders what different streams hold."""
    early = _at(CancelRequested(request_id="early", source="api"), 0, 10, stream="observer", wall_ns=9_000)
    late = _at(CancelRequested(request_id="late", source="ide"), 0, 20, stream="observer-2", wall_ns=1_000)
    row = _only(early, late).cancellation
    assert row is not None
    assert row.request_id == "early"


def test_a_leg_between_two_boots_is_not_measured() -> None:
    """Monotonic clocks of two boots do not compare: no leg, and an anomaly that says so."""
    state = _only(
        _at(REQUEST, 0, 10),
        _at(CleanupFinished(status="quarantined", by="next_start"), 0, 5, stream="observer", boot="another"),
    )
    assert state.cancellation is not None
    assert state.cancellation.cleaned_ns is None
    assert [row.code for row in state.anomalies if row.code == "clock_domain"] == ["clock_domain"]
