"""Lint of the spans of runs, as a backend or a file holds them. Pure.

Each rule mirrors what a backend does with a span that breaks it: Jaeger warns, moves or repeats it, Tempo
miscounts it. ``docs/telemetry.md`` names all codes.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Literal, Self, get_args

from pydantic import JsonValue

from build_events import ids
from build_events.telemetry import names
from build_events.telemetry.making import ANCHOR, ROOT
from build_events.telemetry.span import Span

_NAMED = (ROOT, ANCHOR, *get_args(names.RunStage), "cancel")  # what the ids of these spans are derived from
# Jaeger 2's query API (`/api/traces`), and its newer text (`/api/v3/traces`).
_NO_PARENT = re.compile(
    r"(invalid parent span IDs=\w+|parent span ID=\w+ is not in the trace); skipping clock skew adjustment"
)


class LintCode(Enum):
    """A lint code. Its value is what programs may rely on; texts are for people and may change."""

    meaning: str

    def __new__(cls, code: str, meaning: str) -> Self:
        """Make a member whose value is its code alone."""
        member = object.__new__(cls)
        member._value_ = code
        member.meaning = meaning
        return member

    NOTHING_FOUND = ("nothing_found", "there is no span of the run or trace: never a pass")
    REPEATED_ID = ("repeated_id", "a trace and span id is there more than once")
    NO_DURATION = ("no_duration", "a span ends where it starts, or before")
    SHORT_MARKER = ("short_marker", "a marker or slice is not longer than its anchor")
    HOST_MISSING = ("host_missing", "a span's resource has no `host.id`")
    HOSTS_DIFFER = ("hosts_differ", "spans of one run have different values of `host.id`")
    PARENT_MISSING = ("parent_missing", "a span's parent is not among the run's spans")
    RESULT_MISSING = ("result_missing", "the root has no `cicd.pipeline.result` of the conventions")
    SEVERAL_ROOTS = ("several_roots", "a run has more than one root")
    ROOT_MISSING = ("root_missing", "the run has ended and has no root")
    OUTSIDE_PARENT = ("outside_parent", "a final span begins before its parent or ends after it")
    STRAY = ("stray", "a span is of this program, and of no run that is there")
    EXPORT_COUNT = ("export_count", "there are fewer or more spans than the run declares as exported")
    BACKEND_WARNING = ("backend_warning", "the backend warns of a span")


@dataclass(frozen=True, slots=True, kw_only=True)
class LintFinding:
    """One broken rule."""

    code: LintCode
    text: str  # for people: what, where, with the numbers
    run_id: str | None = None
    span_id: str | None = None

    def to_json(self) -> dict[str, JsonValue]:
        """Return the finding as reports carry it."""
        return {"code": self.code.value, "run_id": self.run_id, "span_id": self.span_id, "text": self.text}


@dataclass(frozen=True, slots=True, kw_only=True)
class Declared:
    """What the exporters of a run have declared. A run that ended without a declaration has declared none."""

    exported: int
    dropped: int = 0  # not acknowledged: may have arrived all the same
    of: Literal["all", "final"] = "all"  # "final": the exporter of the open run died and declared nothing


@dataclass(frozen=True, slots=True, kw_only=True)
class _Run:
    """The spans of one run, each id once."""

    run_id: str
    spans: Mapping[str, Span]
    in_trace: frozenset[str]  # ids of all spans, foreign ones too
    ended: bool

    @property
    def root_id(self) -> str:
        return ids.span_id(self.run_id, ids.ROOT_ORDINAL)

    @property
    def is_open(self) -> bool:
        return not self.ended and self.root_id not in self.spans

    def found(self, code: LintCode, text: str, span: Span | None = None) -> LintFinding:
        where = "" if span is None else f"{span.name} ({span.span_id}): "
        return LintFinding(
            code=code, text=where + text, run_id=self.run_id, span_id=None if span is None else span.span_id
        )


def lint(
    spans: Sequence[Span],
    *,
    run_id: str | None = None,
    ended: bool = False,
    declared: Declared | None = None,
    warnings: Mapping[str, Sequence[str]] | None = None,
) -> tuple[LintFinding, ...]:
    """Return what is wrong with the spans of one trace; nothing for a clean one.

    Of the whole trace only what runs exported is looked at, each run as the subtree under its own root: what
    stands above it, such as the span of a CI job, may be absent. While a run is open its root may be absent too.

    Args:
        spans: what is there, each as often as it is there.
        run_id: look at this run alone.
        ended: runs without a root are findings, not open ones.
        declared: what the run ``run_id`` declares; not compared without it.
        warnings: a backend's warnings by span id, those of the whole trace under the empty text.
    """
    ours = [span for span in spans if names.SPAN_KIND in span.attributes]
    run_ids = _run_ids(ours) if run_id is None else [run_id]
    in_trace = frozenset(span.span_id for span in spans)
    findings: list[LintFinding] = []
    left = ours
    for name in run_ids:
        members = [span for span in left if _belongs(span, name)]
        left = [span for span in left if not _belongs(span, name)]
        run = _Run(run_id=name, spans={span.span_id: span for span in members}, in_trace=in_trace, ended=ended)
        if members:
            findings += [*_repeated(run, members), *_of_run(run), *_warned(run, warnings or {})]
            findings += [] if declared is None else _counted(run, declared)
        if run_id is not None:
            left = [span for span in left if span.parent_span_id in run.spans]
    if len(left) == len(ours):
        text = f"no span of run {run_id}" if run_id is not None else "no span of a run"
        return (LintFinding(code=LintCode.NOTHING_FOUND, text=text, run_id=run_id),)
    findings += [_stray(span) for span in left]
    findings += [LintFinding(code=LintCode.BACKEND_WARNING, text=text) for text in (warnings or {}).get("", ())]
    return tuple(findings)


def _run_ids(spans: Iterable[Span]) -> list[str]:
    """Return the runs that spans name, in the order in which they are named."""
    told = (_told_run(span) for span in spans)
    return list(dict.fromkeys(run_id for run_id in told if run_id is not None))


def _told_run(span: Span) -> str | None:
    if names.PIPELINE_RUN_ID in span.attributes:
        return str(span.attributes[names.PIPELINE_RUN_ID])
    if names.TASK_RUN_ID in span.attributes:
        return str(span.attributes[names.TASK_RUN_ID]).rpartition("/")[0]
    return None


def _belongs(span: Span, run_id: str) -> bool:
    """Say whether a span is of a run: it names it, or an id that is derived from it."""
    told = _told_run(span)
    if told is not None:
        return told == run_id
    if names.PHASE_SPAN_ID in span.attributes:
        phase = str(span.attributes.get(names.PHASE_INSTANCE_ID))
        return span.attributes[names.PHASE_SPAN_ID] == ids.named_span_id(run_id, phase)
    return span.span_id in {ids.named_span_id(run_id, own) for own in _NAMED}


def _stray(span: Span) -> LintFinding:
    text = f"{span.name} ({span.span_id}): belongs to no run that is there"
    return LintFinding(code=LintCode.STRAY, text=text, span_id=span.span_id)


def _repeated(run: _Run, members: Sequence[Span]) -> Iterator[LintFinding]:
    for span_id, times in Counter(span.span_id for span in members).items():
        if times > 1:
            yield run.found(LintCode.REPEATED_ID, f"there {times} times", run.spans[span_id])


def _of_run(run: _Run) -> Iterator[LintFinding]:
    hosts = {str(host) for span in run.spans.values() if (host := span.resource.get(names.HOST_ID))}
    if len(hosts) > 1:
        yield run.found(LintCode.HOSTS_DIFFER, f"host.id is {', '.join(sorted(hosts))}")
    if run.ended and run.root_id not in run.spans:
        yield run.found(LintCode.ROOT_MISSING, f"no span {run.root_id}, which the run's root would be")
    for span in run.spans.values():
        yield from _placed(run, span)
        if span.end_ns <= span.start_ns:
            yield run.found(LintCode.NO_DURATION, f"lasts {span.end_ns - span.start_ns} ns", span)
        if not span.resource.get(names.HOST_ID):
            yield run.found(LintCode.HOST_MISSING, "no host.id", span)


def _placed(run: _Run, span: Span) -> Iterator[LintFinding]:
    """Look at a span's place in the tree."""
    kind = span.attributes[names.SPAN_KIND]
    parent = run.spans.get(span.parent_span_id or "")
    if span.span_id == run.root_id:
        result = span.attributes.get(names.PIPELINE_RESULT)
        if result not in get_args(names.Result):
            yield run.found(LintCode.RESULT_MISSING, f"cicd.pipeline.result is {result}", span)
    elif span.parent_span_id is None or (kind == "final" and names.PIPELINE_RUN_ID in span.attributes):
        yield run.found(LintCode.SEVERAL_ROOTS, f"stands as a root beside {run.root_id}", span)
    elif parent is None:
        if not (run.is_open and kind == "anchor" and span.parent_span_id == run.root_id):
            yield run.found(LintCode.PARENT_MISSING, f"its parent {span.parent_span_id} is not there", span)
    elif kind in {"marker", "slice"}:
        spare = (span.end_ns - span.start_ns) - (parent.end_ns - parent.start_ns)
        if spare <= 0:
            yield run.found(LintCode.SHORT_MARKER, f"{-spare} ns shorter than {parent.name}", span)
    elif kind == "final":
        before, after = parent.start_ns - span.start_ns, span.end_ns - parent.end_ns
        if before > 0 or after > 0:
            text = f"{max(before, 0)} ns before and {max(after, 0)} ns after {parent.name}"
            yield run.found(LintCode.OUTSIDE_PARENT, text, span)


def _counted(run: _Run, declared: Declared) -> Iterator[LintFinding]:
    if run.is_open:
        return
    kinds = Counter(span.attributes[names.SPAN_KIND] for span in run.spans.values())
    here = len(run.spans) if declared.of == "all" else kinds["final"]
    if not declared.exported <= here <= declared.exported + declared.dropped:
        text = f"the run declares {declared.exported} exported and {declared.dropped} dropped, {here} are here"
        yield run.found(LintCode.EXPORT_COUNT, text)


def _warned(run: _Run, warnings: Mapping[str, Sequence[str]]) -> Iterator[LintFinding]:
    """Pass on a backend's warnings, but for those that an open run, or an absent CI job, must bring about."""
    for span in run.spans.values():
        waits = run.is_open and span.attributes[names.SPAN_KIND] == "anchor"
        above = span.span_id == run.root_id and span.parent_span_id is not None
        above = above and span.parent_span_id not in run.in_trace
        for text in warnings.get(span.span_id, ()):
            if not ((waits or above) and _NO_PARENT.fullmatch(text)):
                yield run.found(LintCode.BACKEND_WARNING, text, span)
