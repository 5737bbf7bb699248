"""Evidence from the store: one statement, so that all of it is of one moment.

Reads the fold's rows and the facts of the asked types; never all phase events.
"""

import dataclasses
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from analytics.decided import Decided
from analytics.evidence import Evidence, RouteEvidence, RunEvidence, ordered, summarize
from analytics.gather_rows import artifact_row, cancellation_row, phase_row, recorded, run_row, stream_row
from build_events.envelope import Recorded
from build_events.events import DecisionRecorded
from build_events.state import ArtifactRow, CancellationRow, PhaseRow, RunRow, StreamRow

Query = Callable[[str, Sequence[object]], list[dict[str, Any]]]
T = TypeVar("T")

_EVENT = (
    "json_object('stream_id', stream_id, 'role', stream_role, 'run_id', run_id, 'route', route, 'source', source, "
    "'boot_id', boot_id, 'sequence', sequence, 'wall_ns', epoch_ns(time), 'monotonic_ns', monotonic_ns, "
    "'type', type, 'data', data)"
)
# Without the report: it is by far the largest part, and decisions pile up.
_DECIDED = ("kind", "verdict", "policy_sha256", "evaluator_version", "inputs_sha256", "artifact_sha256", "supersedes")
_DECISION = (
    "json_object('event_id', event_id, 'stream_id', stream_id, 'subject', coalesce(run_id, route), "
    + ", ".join(f"'{name}', data->'$.{name}'" for name in _DECIDED)
    + ")"
)


@dataclass(frozen=True, slots=True)
class Gathered:
    """What the store knows of some runs and routes."""

    evidence: Evidence
    decisions: tuple[Decided, ...]  # by event id


def gather(
    query: Query, run_ids: Sequence[str], routes: Sequence[str], types: frozenset[str], *, behind: bool
) -> Gathered:
    """Return the evidence about runs and routes, and every decision about them.

    ``types`` are the event types that the judging test reads. ``behind`` says that the store had not
    taken in the whole log.

    Raises:
        EvidenceError: the store holds what this release cannot read.
    """
    statement, parameters = _statement(run_ids, routes, types)
    parts: dict[str, list[dict[str, Any]]] = {}
    for row in query(statement, parameters):
        parts.setdefault(row["part"], []).append(json.loads(row["body"]))
    rows = _Rows(parts)
    evidence = Evidence(
        runs=tuple(sorted((rows.run(run) for run in rows.runs), key=lambda item: item.order)),
        routes=tuple(rows.route(route) for route in sorted(routes)),
        behind=behind,
    )
    return Gathered(evidence, tuple(sorted(rows.decisions, key=lambda item: item.event_id)))


class _Rows:
    """The answer's rows by subject."""

    def __init__(self, parts: Mapping[str, list[dict[str, Any]]]) -> None:
        self.decisions = [Decided.model_validate(row) for row in parts.get("decision", [])]
        self.runs = [run_row(row) for row in parts.get("run", [])]
        self._phases = _by_subject(parts.get("phase", []), phase_row)
        self._cancellations = _by_subject(parts.get("cancellation", []), cancellation_row)
        self._artifacts = _by_subject(parts.get("artifact", []), artifact_row)
        self._events = _by_subject(parts.get("event", []), recorded)
        letters = _by_subject(parts.get("dead_letter", []), lambda row: int(row["count"]))
        self._letters = {subject: sum(counts) for subject, counts in letters.items()}
        streams = [row for row in parts.get("stream", []) if not self._holds_decisions_only(row)]
        self._streams = _by_subject(streams, stream_row)

    def run(self, run: RunRow) -> RunEvidence:
        subject = (run.run_id, None)
        cancellations = self._cancellations.get(subject, [])
        return RunEvidence(
            run=run,
            phases=summarize(self._phases.get(subject, [])),
            cancellation=cancellations[0] if cancellations else None,
            artifacts=tuple(sorted(self._artifacts.get(subject, []), key=lambda row: row.path)),
            streams=tuple(sorted(self._streams.get(subject, []), key=lambda row: row.stream_id)),
            events=ordered(self._events.get(subject, [])),
            dead_letters=self._letters.get(subject, 0),
        )

    def route(self, route: str) -> RouteEvidence:
        subject = (None, route)
        return RouteEvidence(
            route=route,
            streams=tuple(sorted(self._streams.get(subject, []), key=lambda row: row.stream_id)),
            events=ordered(self._events.get(subject, [])),
            dead_letters=self._letters.get(subject, 0),
        )

    def _holds_decisions_only(self, stream: Mapping[str, Any]) -> bool:
        decisions = sum(item.stream_id == stream["stream_id"] for item in self.decisions)
        closed = stream["declared_events"] is not None
        whole = decisions + closed == stream["events"] and not stream["missing"]
        return bool(decisions) and whole and stream["role"] != "main"


def _by_subject(
    rows: Sequence[dict[str, Any]], make: Callable[[dict[str, Any]], T]
) -> dict[tuple[str | None, str | None], list[T]]:
    found: dict[tuple[str | None, str | None], list[T]] = {}
    for row in rows:
        found.setdefault((row.get("run_id"), row.get("route")), []).append(make(row))
    return found


def _statement(run_ids: Sequence[str], routes: Sequence[str], types: frozenset[str]) -> tuple[str, list[object]]:
    names = sorted(types)
    both = f"({is_in('run_id', run_ids)} OR {is_in('route', routes)})"
    subjects = [*run_ids, *routes]
    parts: list[tuple[str, str, str, str, Sequence[str]]] = [
        ("run", _object(RunRow), "store.runs", is_in("run_id", run_ids), run_ids),
        ("phase", _object(PhaseRow), "store.phases", is_in("run_id", run_ids), run_ids),
        ("cancellation", _object(CancellationRow), "store.cancellations", is_in("run_id", run_ids), run_ids),
        ("artifact", _object(ArtifactRow), "store.artifacts", is_in("run_id", run_ids), run_ids),
        ("stream", _object(StreamRow), "store.streams", both, subjects),
        (
            "dead_letter",
            "json_object('run_id', run_id, 'route', route, 'count', count)",
            "store.dead_letter_counts",
            both,
            subjects,
        ),
        ("event", _EVENT, "events", f"{is_in('type', names)} AND {both}", [*names, *subjects]),
        ("decision", _DECISION, "events", f"type = ? AND {both}", [DecisionRecorded.type, *subjects]),
    ]
    statement = "\nUNION ALL\n".join(
        f"SELECT '{part}' AS part, {body}::VARCHAR AS body FROM {table} WHERE {condition}"  # noqa: S608 # constants above
        for part, body, table, condition, _ in parts
    )
    return statement, [value for *_, values in parts for value in values]


def is_in(column: str, values: Sequence[str]) -> str:
    """Return a condition with one parameter a value; of no value, one that never holds."""
    return f"{column} IN ({', '.join('?' * len(values))})" if values else "false"


def _object(cls: type[RunRow | PhaseRow | CancellationRow | ArtifactRow | StreamRow]) -> str:
    """Return the SQL of a JSON object with a row's fields; times become nanoseconds since 1970."""
    pairs = []
    for field in dataclasses.fields(cls):
        time = field.name.endswith("_at_ns")
        column = f'epoch_ns("{field.name.removesuffix("_ns")}")' if time else f'"{field.name}"'
        pairs.append(f"'{field.name}', {column}")
    return f"json_object({', '.join(pairs)})"


def run_rows(query: Query, route: str) -> list[RunRow]:
    """Return the row of every run of a route."""
    statement = f"SELECT {_object(RunRow)}::VARCHAR AS body FROM store.runs WHERE route = ?"  # noqa: S608 # constants
    return [run_row(json.loads(row["body"])) for row in query(statement, [route])]


def records(query: Query, stream_ids: Sequence[str]) -> list[Recorded]:
    """Return every event of some streams, phases included.

    Raises:
        EvidenceError: the store holds what this release cannot read.
    """
    statement = f"SELECT {_EVENT}::VARCHAR AS body FROM events WHERE {is_in('stream_id', stream_ids)}"  # noqa: S608 # constants
    return [recorded(json.loads(row["body"])) for row in query(statement, list(stream_ids))]
