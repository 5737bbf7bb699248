"""Runs as Jaeger's query API shows them, while they go on and after."""

import re
import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from build_events import ids
from build_events.envelope import Recorded
from build_events.events import ExportFinished, RunStarted
from build_events.telemetry import names
from tests.builder_agent.builds import of_type
from tests.services.answers import eventually
from tests.telemetry.backends import in_jaeger, jaeger_spans

ALLOWED = re.compile(
    r"(invalid parent span IDs=\w+|parent span ID=\w+ is not in the trace); skipping clock skew adjustment"
)
POLL_S = 0.03


@dataclass(frozen=True)
class Shown:
    """One span as the API has it. Microseconds."""

    name: str
    span_id: str
    parent: str | None
    start_us: int
    end_us: int
    tags: dict[str, Any]
    warnings: tuple[str, ...]
    links: tuple[tuple[str, str], ...]  # trace and span ids
    steps: tuple[tuple[str, int], ...]  # its events: name and time

    @property
    def kind(self) -> str:
        """What it is there for."""
        return str(self.tags[names.SPAN_KIND])


def shown(jaeger: str, trace: str) -> list[Shown]:
    """Return the spans of a trace as Jaeger shows them; none while it does not know it."""
    return [_shown(span) for span in jaeger_spans(jaeger, trace)]


def repeated(jaeger: str, trace: str) -> set[str]:
    """Return the ids of the spans that are stored more than once."""
    return {name for name, times in in_jaeger(jaeger, [trace], set()).items() if times > 1}


def _shown(span: dict[str, Any]) -> Shown:
    references = [(one["refType"], one["traceID"], one["spanID"]) for one in span["references"]]
    parents = [span_id for kind, _, span_id in references if kind == "CHILD_OF"]
    return Shown(
        name=span["operationName"],
        span_id=span["spanID"],
        parent=parents[0] if parents else None,
        start_us=span["startTime"],
        end_us=span["startTime"] + span["duration"],
        tags={tag["key"]: int(tag["value"]) if tag["type"] == "int64" else tag["value"] for tag in span["tags"]},
        warnings=tuple(span["warnings"] or ()),
        links=tuple((trace, span_id) for kind, trace, span_id in references if kind == "FOLLOWS_FROM"),
        steps=tuple(
            (next(item["value"] for item in log["fields"] if item["key"] == "event"), log["timestamp"])
            for log in span["logs"]
        ),
    )


@dataclass
class Sightings:
    """What a poller saw of an open run."""

    first_ns: dict[str, int] = field(default_factory=dict)  # wall clock, by span id
    kinds: dict[str, str] = field(default_factory=dict)
    repeated: set[str] = field(default_factory=set)
    warnings: dict[str, set[str]] = field(default_factory=lambda: defaultdict(set))  # by kind of span
    polls: int = 0


def watch(jaeger: str, trace: str, seen: Sightings, goes_on: Callable[[], bool]) -> None:
    """Ask for a trace again and again while ``goes_on``, until the spans that end its run are there."""
    while goes_on():
        spans = shown(jaeger, trace)
        now_ns = time.time_ns()
        if any(span.kind == "final" for span in spans):
            break
        for span in spans:
            seen.first_ns.setdefault(span.span_id, now_ns)
            seen.kinds[span.span_id] = span.kind
            seen.warnings[span.kind].update(span.warnings)
        seen.repeated |= repeated(jaeger, trace)
        seen.polls += 1
        time.sleep(POLL_S)


def trace_of(records: Sequence[Recorded]) -> str:
    """Return the trace id of a run."""
    trace = records[0].stream.trace_id
    assert trace is not None
    return trace


def root_of(records: Sequence[Recorded]) -> str:
    """Return the id that the root span of a run has."""
    (run,) = {record.stream.subject for record in records}
    return ids.span_id(run, ids.ROOT_ORDINAL)


def subtree(spans: Sequence[Shown], root: str) -> list[Shown]:
    """Return a span and all that stands under it, parents first."""
    children: dict[str | None, list[Shown]] = defaultdict(list)
    for span in spans:
        children[span.parent].append(span)
    found = [span for span in spans if span.span_id == root]
    for span in found:  # grows meanwhile
        found += children[span.span_id]
    return found


def assert_one_tree(jaeger: str, records: Sequence[Recorded], count: int) -> list[Shown]:
    """Wait until ``count`` spans of an ended run are there; check what holds for every one, and return them.

    One tree under the root, which spans the run; nothing twice; no warning. What the user interface takes for its
    critical path is there: it drops a child that begins after its parent's end, so a final span lies in its parent.
    """
    root = root_of(records)
    spans = eventually(lambda: subtree(shown(jaeger, trace_of(records)), root), lambda found: len(found) >= count)
    assert len(spans) == count
    assert repeated(jaeger, trace_of(records)) == set()
    assert [warning for span in spans for warning in span.warnings] == []
    by_id = {span.span_id: span for span in spans}
    assert spans[0].span_id == root
    assert spans[0].tags[names.PIPELINE_RESULT]
    (started,) = (record for record in records if isinstance(record.event, RunStarted))
    assert spans[0].start_us <= started.wall_ns // 1000
    assert {span.span_id for span in spans[1:] if span.parent not in by_id} == set()
    for span in spans[1:]:
        parent = by_id[span.parent or ""]
        assert span.end_us <= spans[0].end_us + 1
        if span.kind == "final":
            assert parent.kind == "final"
            assert parent.start_us <= span.start_us <= span.end_us <= parent.end_us + 1
        else:
            assert span.end_us - span.start_us > parent.end_us - parent.start_us or span.kind == "anchor"
    return spans


def declared(records: Sequence[Recorded]) -> int:
    """Return how many spans the exporters of a run have declared, none of them dropped."""
    exports = [export for export in of_type(list(records), ExportFinished) if export.signal == "traces"]
    assert exports
    assert [export.dropped for export in exports] == [0] * len(exports)
    return sum(export.exported for export in exports)
