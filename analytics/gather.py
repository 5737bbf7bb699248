"""Evidence from the store: one statement, so that all of it is of one moment.

Reads the fold's rows and the facts of the asked types; never all phase events.
"""

import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from analytics.decided import Decided
from analytics.evidence import Evidence, RouteEvidence, RunEvidence, ordered, summarize
from analytics.gather_rows import artifact_row, cancellation_row, phase_row, recorded, run_row, stream_row
from analytics.gather_sql import chain_statement, evidence_statement, records_statement, route_statement
from build_events.envelope import Recorded
from build_events.state import RunRow

Query = Callable[[str, Sequence[object]], list[dict[str, Any]]]
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Gathered:
    """What the store knows of some runs and routes."""

    evidence: Evidence
    decisions: tuple[Decided, ...]  # by event id


def gather(
    query: Query,
    run_ids: Sequence[str],
    routes: Sequence[str],
    types: frozenset[str],
    *,
    phases: bool = True,
    behind: Callable[[], bool] = lambda: False,
) -> Gathered:
    """Return the evidence about runs and routes, and every decision about them.

    ``types`` are the event types that the judging test reads; without ``phases`` it asks nothing about the
    phase trees, and finds them empty. ``behind`` is asked after the answer: whether the store that gave it
    had not taken in the whole log.

    Raises:
        EvidenceError: the store holds what this release cannot read.
    """
    parts: dict[str, list[dict[str, Any]]] = {}
    for row in query(*evidence_statement(run_ids, routes, types, phases=phases)):
        parts.setdefault(row["part"], []).append(json.loads(row["body"]))
    rows = _Rows(parts)
    evidence = Evidence(
        runs=tuple(sorted((rows.run(run) for run in rows.runs), key=lambda item: item.order)),
        routes=tuple(rows.route(route) for route in sorted(routes)),
        behind=behind(),
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
        self._decided = Counter(item.stream_id for item in self.decisions)
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
        decisions = self._decided[stream["stream_id"]]
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


def chain(query: Query, run_ids: Sequence[str]) -> dict[str, str | None]:
    """Return the runs that these are linked with by retries, themselves included, and the route of each.

    A run that the store does not hold is left out.
    """
    return {row["run_id"]: row["route"] for row in query(*chain_statement(run_ids))}


def run_rows(query: Query, route: str) -> list[RunRow]:
    """Return the row of every run of a route."""
    return [run_row(json.loads(row["body"])) for row in query(*route_statement(route))]


def records(query: Query, stream_ids: Sequence[str]) -> list[Recorded]:
    """Return every event of some streams, phases included.

    Raises:
        EvidenceError: the store holds what this release cannot read.
    """
    return [recorded(json.loads(row["body"])) for row in query(*records_statement(stream_ids))]
