"""The laws of the projection: any history gives one tree, each id once, the same whoever makes it and when."""

import dataclasses
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from build_events import ids
from build_events.clock import NS_PER_S
from build_events.envelope import Recorded
from build_events.events import HeartbeatRecorded, PhaseFinished, PhaseStarted, RunContextRecorded, RunStarted
from build_events.fold import fold_run
from build_events.telemetry import names
from build_events.telemetry.run_spans import Intervals, RunSpans
from build_events.telemetry.span import Span
from tests.build_events.scenes import ENDS, End, Scene, flatten
from tests.build_events.strategies import histories

TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"
TREE = flatten((((), ()), ()))
RESULTS: dict[End, tuple[str, str, str | None]] = {
    "completed": ("success", "unset", None),
    "completed_despite_cancel": ("success", "unset", None),
    "cancelled": ("cancellation", "unset", None),
    "killed": ("timeout", "error", None),
    "crashed": ("error", "error", "crashed"),
    "oom_killed": ("error", "error", "oom_killed"),
    "lost": ("error", "error", "worker_lost"),
}


def traced(records: Sequence[Recorded]) -> list[Recorded]:
    """Return the history with a trace id in every stream."""
    return [
        dataclasses.replace(record, stream=dataclasses.replace(record.stream, trace_id=TRACE)) for record in records
    ]


def project(records: Sequence[Recorded], intervals: Intervals | None = None) -> tuple[list[Span], tuple[Span, ...]]:
    """Return the live and the final spans of a history."""
    spans = RunSpans(intervals or Intervals())
    return spans.take(records), spans.final()


@given(history=histories(), data=st.data())
def test_an_ended_run_is_one_tree_with_each_id_once(history: list[Recorded], data: st.DataObject) -> None:
    """Whatever the run was: every parent comes before its child, holds its times, and the root is the run."""
    records = traced(history)
    seconds = data.draw(st.integers(1, 5))
    live, final = project(records, Intervals(marker_after_ns=seconds * NS_PER_S, slice_every_ns=seconds * NS_PER_S))
    everything = [*live, *final]
    assert len({span.span_id for span in everything}) == len(everything)
    assert all(span.end_ns > span.start_ns for span in everything)
    run = fold_run(records)
    if run is None or run.run.outcome is None or run.run.main_stream_id is None:
        assert final == ()
        return
    known = {span.span_id: span for span in final[:1]}
    for span in final[1:]:
        parent = known[span.parent_span_id or ""]
        assert parent.start_ns <= span.start_ns < span.end_ns <= parent.end_ns
        known[span.span_id] = span
    assert names.PIPELINE_RESULT in final[0].attributes
    assert {span.span_id for span in live if span.attributes[names.SPAN_KIND] == "anchor"} <= {
        span.parent_span_id for span in live
    } | {span.span_id for span in live}


@given(history=histories(), data=st.data())
def test_the_order_of_arrival_changes_no_final_span(history: list[Recorded], data: st.DataObject) -> None:
    """The supervisor, the next start and the collector make the same spans of the same facts."""
    records = traced(history)
    once = RunSpans(Intervals(marker_after_ns=2**62))
    twice = RunSpans(Intervals(marker_after_ns=2**62))
    once.take(records)
    shuffled = data.draw(st.permutations(records))
    for record in [*shuffled, *shuffled]:
        twice.take([record])
    assert once.final() == twice.final()


@pytest.mark.parametrize("end", [end for end in ENDS if end in RESULTS])
def test_the_root_says_how_the_run_ended(end: End) -> None:
    """Result, status and error type as the conventions want them: who is obeyed is no error."""
    records = traced(Scene().play(end, TREE, 4))
    _, (root, *_rest) = project(records)
    assert (root.name, root.kind, root.parent_span_id) == ("BUILD resnet50/fp16/sm89", "server", None)
    told = (root.attributes[names.PIPELINE_RESULT], root.status, root.attributes.get(names.ERROR_TYPE))
    assert told == RESULTS[end]


PHASE_RESULTS: dict[End, set[tuple[str, str, str | None]]] = {
    "completed": {("success", "unset", None)},
    "cancelled": {("success", "unset", None), ("cancellation", "unset", None)},
    "failed": {("success", "unset", None), ("failure", "error", "_OTHER")},
    "killed": {("success", "unset", None), ("timeout", "error", None)},
    "crashed": {("success", "unset", None), ("error", "error", "crashed")},
    "oom_killed": {("success", "unset", None), ("error", "error", "oom_killed")},
    "lost": {("success", "unset", None), ("error", "error", "worker_lost")},
}


@pytest.mark.parametrize("end", PHASE_RESULTS)
def test_a_phase_that_was_open_ends_as_its_run_did(end: End) -> None:
    """What had finished before stays a success."""
    _, final = project(traced(Scene().play(end, TREE, 5)))
    told = {
        (span.attributes[names.TASK_RUN_RESULT], span.status, span.attributes.get(names.ERROR_TYPE))
        for span in final
        if names.TASK_RUN_RESULT in span.attributes
    }
    assert told == PHASE_RESULTS[end]


def test_an_open_run_has_an_anchor_and_no_end() -> None:
    """The anchor's parent is the root, whose id is known before it exists."""
    records = traced(Scene().play("open", TREE, 4))
    (anchor, *_), final = project(records)
    run_id = records[0].stream.subject
    assert final == ()
    assert (anchor.parent_span_id, anchor.attributes[names.SPAN_KIND]) == (ids.span_id(run_id, 0), "anchor")
    assert anchor.attributes[names.PIPELINE_RUN_ID] == run_id


def silent_run(seconds: int) -> list[Recorded]:
    """Return a run with one phase that says nothing but heartbeats, one a second."""
    scene = traced(Scene().play("completed", flatten(((),)), 9))
    start = next(item for item in scene if isinstance(item.event, PhaseStarted))
    finish = next(item for item in scene if isinstance(item.event, PhaseFinished))
    head = [item for item in scene if item.stream == start.stream and item.sequence <= start.sequence]
    tail = [item for item in scene if item.stream != start.stream or item.sequence >= finish.sequence]
    beats = [
        dataclasses.replace(
            start,
            sequence=start.sequence + second,
            wall_ns=start.wall_ns + second * NS_PER_S,
            monotonic_ns=start.monotonic_ns + second * NS_PER_S,
            event=HeartbeatRecorded(open_phase_id=1, since_callback_ns=second * NS_PER_S, cancel_state="none"),
        )
        for second in range(1, seconds + 1)
    ]
    later = [
        dataclasses.replace(
            item,
            sequence=item.sequence + (seconds if item.stream == start.stream else 0),
            wall_ns=item.wall_ns + seconds * NS_PER_S,
            monotonic_ns=item.monotonic_ns + seconds * NS_PER_S,
        )
        for item in tail
    ]
    return [*head, *beats, *later]


def test_a_long_phase_leaves_a_marker_and_a_staircase_of_slices() -> None:
    """A phase of twenty seconds with slices of eight: two while it is open, the rest at its finish."""
    records = silent_run(20)
    live, final = project(records, Intervals(slice_every_ns=8 * NS_PER_S))
    kinds = [span.attributes[names.SPAN_KIND] for span in live]
    assert kinds == ["anchor", "marker", "slice", "slice", "slice"]
    anchor, marker, *slices = live
    assert {span.parent_span_id for span in live[1:]} == {anchor.span_id}
    assert [span.start_ns for span in slices] == [marker.start_ns, slices[0].end_ns, slices[1].end_ns]
    assert slices[0].attributes[names.LAST_CALLBACK_AGE] == 8
    phase = next(span for span in final if span.span_id == marker.attributes[names.PHASE_SPAN_ID])
    assert [link.span_id for link in phase.links] == [marker.span_id]
    assert slices[-1].end_ns == phase.start_ns + sum(span.end_ns - span.start_ns for span in slices)


def test_a_short_phase_leaves_nothing_before_its_end() -> None:
    """Thousands of short phases must not become thousands of markers."""
    live, _ = project(silent_run(3))
    assert [span.attributes[names.SPAN_KIND] for span in live] == ["anchor"]


def test_a_queued_retry_inside_a_job_is_a_subtree_that_links_back() -> None:
    """The caller's span is the parent, the wait in the queue a stage, and the retried run a link."""
    records = traced(Scene().play("completed", TREE, 9))
    first = records[0]
    assert isinstance(first.event, RunStarted)
    started = first.event.model_copy(update={"retry_of": "run-0"})
    context = RunContextRecorded(
        queued_at_ns=first.wall_ns - 30 * NS_PER_S, parent_span_id="00f067aa0ba902b7", retried_trace_id="a" * 32
    )
    main = [item for item in records if item.stream == first.stream]
    others = [item for item in records if item.stream != first.stream]
    moved = [dataclasses.replace(item, sequence=item.sequence + 1) for item in main[1:]]
    told = dataclasses.replace(first, sequence=1, event=context)
    _, final = project([dataclasses.replace(first, event=started), told, *moved, *others])
    root, executing, queued = final[:3]
    assert root.parent_span_id == "00f067aa0ba902b7"
    assert [(link.trace_id, link.span_id) for link in root.links] == [("a" * 32, ids.span_id("run-0", 0))]
    assert (queued.name, queued.end_ns - queued.start_ns) == ("run.queued", 30 * NS_PER_S)
    assert queued.end_ns == executing.start_ns


@pytest.mark.parametrize("end", ["cancelled", "killed", "completed_despite_cancel"])
def test_a_cancellation_is_a_span_with_its_steps(end: End) -> None:
    """From the request to the cleaned state, or to the last step that was reached; steps in order of time."""
    records = traced(Scene().play(end, TREE, 4))
    run = fold_run(records)
    _, final = project(records)
    assert run is not None
    assert (run.cancellation is not None) == any(span.name == "run.cancelled" for span in final)
    for span in final:
        if span.name == "run.cancelled":
            times = [event.at_ns for event in span.events]
            assert span.events[0].name == "cancel.requested"
            assert times == sorted(times)
