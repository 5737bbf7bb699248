"""The lint of traces: what the projection makes is clean, and every way to break it is found by its rule."""

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from analytics.trace_lint import Declared, LintCode, LintFinding, lint
from build_events import ids
from build_events.clock import NS_PER_S
from build_events.envelope import Recorded
from build_events.telemetry import names
from build_events.telemetry.run_spans import Intervals, RunSpans
from build_events.telemetry.span import Span
from tests.build_events.scenes import ENDS
from tests.build_events.strategies import histories, several_histories
from tests.build_events.test_spans import TRACE, traced

CI_SPAN = "00f067aa0ba902b7"
OLD = "invalid parent span IDs={}; skipping clock skew adjustment"
NEW = "parent span ID={} is not in the trace; skipping clock skew adjustment"
ENDED = tuple(end for end in ENDS if end != "open")
Mutation = Callable[[st.DataObject, list[Span]], Span]  # changes the list; returns what a finding must name


def spans_of(records: Sequence[Recorded]) -> list[Span]:
    """Return all spans of a run, with a marker for every phase, and slices where it lasts."""
    spans = RunSpans(Intervals(marker_after_ns=0, slice_every_ns=NS_PER_S))
    return [*spans.take(traced(records)), *spans.final()]


def codes(findings: Sequence[LintFinding]) -> set[LintCode]:
    """Return which rules were broken."""
    return {finding.code for finding in findings}


def kind(span: Span) -> Any:
    """Return what a span is there for."""
    return span.attributes[names.SPAN_KIND]


def is_root(span: Span) -> bool:
    """Say whether a span of an ended run is its root."""
    return span.parent_span_id is None


def drawn(data: st.DataObject, spans: list[Span], fits: Callable[[Span], bool] = lambda _: True) -> int:
    """Return the place of a span that fits."""
    places = [place for place, span in enumerate(spans) if fits(span)]
    assume(places)
    return data.draw(st.sampled_from(places))


def changed(data: st.DataObject, spans: list[Span], fits: Callable[[Span], bool], **fields: Any) -> Span:
    """Change fields of a span that fits; a callable field is given the span."""
    place = drawn(data, spans, fits)
    values = {name: value(spans[place]) if callable(value) else value for name, value in fields.items()}
    spans[place] = dataclasses.replace(spans[place], **values)
    return spans[place]


def repeated(data: st.DataObject, spans: list[Span]) -> Span:
    """Export a span once more, perhaps with another end."""
    again = spans[drawn(data, spans)]
    spans.append(dataclasses.replace(again, end_ns=again.end_ns + data.draw(st.integers(0, 9))))
    return again


def outside(data: st.DataObject, spans: list[Span]) -> Span:
    """Move a start before the parent's, or an end after it."""
    by_id = {span.span_id: span for span in spans}
    place = drawn(data, spans, lambda span: kind(span) == "final" and not is_root(span))
    span = spans[place]
    parent = by_id[span.parent_span_id or ""]
    by = data.draw(st.integers(1, 10**12))
    sooner = dataclasses.replace(span, start_ns=parent.start_ns - by)
    spans[place] = data.draw(st.sampled_from([sooner, dataclasses.replace(span, end_ns=parent.end_ns + by)]))
    return spans[place]


def orphaned(data: st.DataObject, spans: list[Span]) -> Span:
    """Lose a span that others stand under."""
    child = spans[drawn(data, spans, lambda span: not is_root(span) and kind(span) != "anchor")]
    spans[:] = [span for span in spans if span.span_id != child.parent_span_id]
    return child


def strayed(data: st.DataObject, spans: list[Span]) -> Span:
    """Give a span of no phase another id."""
    told = {names.PIPELINE_RUN_ID, names.TASK_RUN_ID, names.PHASE_SPAN_ID}
    return changed(data, spans, lambda span: not told & span.attributes.keys(), span_id="f" * 16)


def without(span: Span, name: str) -> dict[str, Any]:
    """Return a span's attributes without one."""
    return {key: value for key, value in span.attributes.items() if key != name}


MUTATIONS: dict[LintCode, Mutation] = {
    LintCode.REPEATED_ID: repeated,
    LintCode.NO_DURATION: lambda data, spans: changed(
        data, spans, lambda _: True, end_ns=lambda span: span.start_ns - data.draw(st.integers(0, 10**9))
    ),
    LintCode.SHORT_MARKER: lambda data, spans: changed(
        data,
        spans,
        lambda span: kind(span) in {"marker", "slice"},
        end_ns=lambda span: span.start_ns + data.draw(st.integers(1, 1000)),
    ),
    LintCode.HOST_MISSING: lambda data, spans: changed(
        data, spans, lambda _: True, resource=data.draw(st.sampled_from([{}, {names.HOST_ID: ""}]))
    ),
    LintCode.PARENT_MISSING: orphaned,
    LintCode.RESULT_MISSING: lambda data, spans: changed(
        data,
        spans,
        is_root,
        attributes=lambda span: (
            without(span, names.PIPELINE_RESULT) | data.draw(st.sampled_from([{}, {names.PIPELINE_RESULT: "done"}]))
        ),
    ),
    LintCode.SEVERAL_ROOTS: lambda data, spans: changed(
        data, spans, lambda span: not is_root(span), parent_span_id=None
    ),
    LintCode.OUTSIDE_PARENT: outside,
    LintCode.STRAY: strayed,
}


@given(history=histories())
def test_what_the_projection_makes_is_clean(history: list[Recorded]) -> None:
    """However the run ends, while it is open and after, with a count that is declared, and under a CI job's span."""
    spans = spans_of(history)
    declared = Declared(exported=len(spans))
    assert lint(spans, run_id=history[0].stream.subject, declared=declared) == ()
    in_job = [dataclasses.replace(span, parent_span_id=CI_SPAN) if is_root(span) else span for span in spans]
    assert lint(in_job) == ()
    for count in range(1, len(spans)):  # an exporter sends them in this order: whatever is there so far is clean
        so_far = spans[:count]
        waits = {so_far[0].span_id: [text.format(so_far[0].parent_span_id) for text in (OLD, NEW)]}
        is_open = not any(is_root(span) for span in so_far)
        assert lint(so_far, warnings=waits if is_open else {}) == ()


@pytest.mark.parametrize("code", MUTATIONS)
@settings(max_examples=40)
@given(history=histories(ends=ENDED), data=st.data())
def test_a_single_fault_is_found_by_its_rule(code: LintCode, history: list[Recorded], data: st.DataObject) -> None:
    """Wherever it is, and the finding names the span."""
    spans = spans_of(history)
    broken = MUTATIONS[code](data, spans)
    found = [finding for finding in lint(spans) if finding.code is code]
    assert broken.span_id in {finding.span_id for finding in found}
    assert all(broken.span_id in finding.text for finding in found if finding.span_id == broken.span_id)


@given(history=histories(ends=ENDED), data=st.data())
def test_a_count_that_is_not_the_declared_one_is_found(history: list[Recorded], data: st.DataObject) -> None:
    """One span less or more than was acknowledged; what was dropped may have arrived all the same."""
    spans = spans_of(history)
    run_id, count = history[0].stream.subject, len(spans)
    lost = drawn(data, spans, lambda span: not is_root(span))
    less = [*spans[:lost], *spans[lost + 1 :]]
    assert LintCode.EXPORT_COUNT in codes(lint(less, run_id=run_id, declared=Declared(exported=count)))
    assert LintCode.EXPORT_COUNT in codes(lint(spans, run_id=run_id, declared=Declared(exported=count - 1)))
    assert lint(spans, run_id=run_id, declared=Declared(exported=count - 2, dropped=2)) == ()
    final = sum(kind(span) == "final" for span in spans)
    assert lint(spans, run_id=run_id, declared=Declared(exported=final, of="final")) == ()
    assert codes(lint(spans, run_id=run_id, declared=Declared(exported=final + 1, of="final"))) == {
        LintCode.EXPORT_COUNT
    }


@given(history=histories(), data=st.data())
def test_hosts_that_differ_are_found(history: list[Recorded], data: st.DataObject) -> None:
    """The run's processes are all on one host."""
    spans = spans_of(history)
    assume(len(spans) > 1)
    changed(data, spans, lambda _: True, resource={names.HOST_ID: "another"})
    assert codes(lint(spans)) == {LintCode.HOSTS_DIFFER}


@given(history=histories(ends=("open",)))
def test_an_open_run_is_a_finding_only_where_its_end_is_asked_for(history: list[Recorded]) -> None:
    """Its anchor's parent is not there yet, or never will be."""
    spans = spans_of(history)
    assert lint(spans) == ()
    assert codes(lint(spans, ended=True)) == {LintCode.ROOT_MISSING, LintCode.PARENT_MISSING}


@given(history=histories(ends=ENDED), data=st.data(), text=st.sampled_from([OLD, NEW]))
def test_a_backend_may_warn_of_the_anchor_of_an_open_run_alone(
    history: list[Recorded], data: st.DataObject, text: str
) -> None:
    """Of nothing else, and of nothing once the run has ended."""
    spans = spans_of(history)
    open_so_far = [span for span in spans if kind(span) != "final"]
    anchor = open_so_far[0]
    waits = text.format(anchor.parent_span_id)
    assert lint(open_so_far, warnings={anchor.span_id: [waits]}) == ()
    assert codes(lint(spans, warnings={anchor.span_id: [waits]})) == {LintCode.BACKEND_WARNING}
    other = "duplicate span IDs; skipping clock skew adjustment"
    assert codes(lint(open_so_far, warnings={anchor.span_id: [waits, other]})) == {LintCode.BACKEND_WARNING}
    elsewhere = spans[drawn(data, spans, lambda span: span is not anchor)]
    assert codes(lint(spans, warnings={elsewhere.span_id: [waits]})) == {LintCode.BACKEND_WARNING}
    assert codes(lint(spans, warnings={"": ["trace"]})) == {LintCode.BACKEND_WARNING}


@given(history=histories(ends=ENDED), text=st.sampled_from([OLD, NEW]))
def test_a_job_whose_span_is_absent_may_be_warned_of(history: list[Recorded], text: str) -> None:
    """Its span comes when the job ends, if at all; once it is there, the warning is a finding."""
    spans = spans_of(history)
    (place,) = (place for place, span in enumerate(spans) if is_root(span))
    spans[place] = dataclasses.replace(spans[place], parent_span_id=CI_SPAN)
    warnings = {spans[place].span_id: [text.format(CI_SPAN)]}
    assert lint(spans, warnings=warnings) == ()
    job = dataclasses.replace(spans[place], span_id=CI_SPAN, parent_span_id=None, attributes={}, resource={})
    assert codes(lint([*spans, job], warnings=warnings)) == {LintCode.BACKEND_WARNING}


@given(histories=several_histories(), data=st.data())
def test_runs_of_one_trace_are_told_apart(histories: list[Recorded], data: st.DataObject) -> None:
    """A fault in one run is that run's, and the lint of another one does not see it."""
    run_ids = list(dict.fromkeys(record.stream.subject for record in histories))
    by_run = {name: spans_of([record for record in histories if record.stream.subject == name]) for name in run_ids}
    broken = data.draw(st.sampled_from(run_ids))
    repeated(data, by_run[broken])
    everything = [span for spans in by_run.values() for span in spans]
    assert {finding.run_id for finding in lint(everything)} == {broken}
    assert [name for name in run_ids if lint(everything, run_id=name)] == [broken]


def test_every_rule_is_tried() -> None:
    """A new code comes with the fault that it is for."""
    whole_runs = {LintCode.NOTHING_FOUND, LintCode.HOSTS_DIFFER, LintCode.ROOT_MISSING, LintCode.EXPORT_COUNT}
    assert set(LintCode) == {*MUTATIONS, *whole_runs, LintCode.BACKEND_WARNING}


def test_nothing_is_never_a_pass() -> None:
    """No span, none of a run, none of this run."""
    foreign = Span(
        name="job", trace_id=TRACE, span_id=CI_SPAN, parent_span_id=None, start_ns=1, end_ns=2, attributes={}
    )
    assert codes(lint([])) == {LintCode.NOTHING_FOUND}
    assert codes(lint([foreign])) == {LintCode.NOTHING_FOUND}
    assert codes(lint([foreign], run_id=ids.random_id(), ended=True)) == {LintCode.NOTHING_FOUND}
