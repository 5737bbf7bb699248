"""The statements that evidence is read with: one row a fact, as the name of its part and a JSON object."""

import dataclasses
from collections.abc import Sequence

from build_events.events import DecisionRecorded
from build_events.state import ArtifactRow, CancellationRow, PhaseRow, RunRow, StreamRow

Condition = tuple[str, Sequence[str]]  # SQL and its parameters

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
_DEAD_LETTERS = "json_object('run_id', run_id, 'route', route, 'count', count)"

_SCANS = 6  # so many scans with an equality cost less than one with IN

# Runs are linked both ways: a retry names the run that it retries.
_CHAIN = """
WITH RECURSIVE
links AS (
    SELECT run_id AS one, retry_of AS other FROM base.runs WHERE retry_of IS NOT NULL
    UNION ALL
    SELECT retry_of, run_id FROM base.runs WHERE retry_of IS NOT NULL
),
chain AS (
    SELECT run_id FROM base.runs WHERE {given}
    UNION
    SELECT links.other FROM links JOIN chain ON links.one = chain.run_id
)
SELECT run_id, route FROM base.runs WHERE run_id IN (SELECT run_id FROM chain)
"""


def chain_statement(run_ids: Sequence[str]) -> tuple[str, list[object]]:
    """Return what asks for runs with their retry chains: ``run_id`` and ``route`` of each."""
    return _CHAIN.format(given=_is_in("run_id", run_ids)), list(run_ids)


def route_statement(route: str) -> tuple[str, list[object]]:
    """Return what asks for the row of every run of a route, as ``body``."""
    return f"SELECT {_object(RunRow)}::VARCHAR AS body FROM base.runs WHERE route = ?", [route]  # noqa: S608 # names of fields


def records_statement(stream_ids: Sequence[str]) -> tuple[str, list[object]]:
    """Return what asks for every event of some streams, as ``body``."""
    condition = _is_in("stream_id", stream_ids)
    return f"SELECT {_EVENT}::VARCHAR AS body FROM events WHERE {condition}", list(stream_ids)  # noqa: S608 # constants


def evidence_statement(
    run_ids: Sequence[str], routes: Sequence[str], types: frozenset[str], *, phases: bool
) -> tuple[str, list[object]]:
    """Return what asks for everything about runs and routes, as ``part`` and ``body``."""
    of_runs: Condition = (_is_in("run_id", run_ids), run_ids)
    parts: list[tuple[str, str, str, Condition]] = [
        ("run", _object(RunRow), "base.runs", of_runs),
        ("cancellation", _object(CancellationRow), "base.cancellations", of_runs),
        ("artifact", _object(ArtifactRow), "base.artifacts", of_runs),
    ]
    for condition in (*_each("run_id", run_ids), *_each("route", routes)):
        parts += [
            ("stream", _object(StreamRow), "base.streams", condition),
            ("dead_letter", _DEAD_LETTERS, "base.dead_letter_counts", condition),
            ("event", _EVENT, "events", _of_types(sorted(types), condition)),
            ("decision", _DECISION, "events", _of_types([DecisionRecorded.type], condition)),
        ]
    if phases:
        parts.append(("phase", _object(PhaseRow), "base.phases", of_runs))
    statement = "\nUNION ALL\n".join(
        f"SELECT '{part}' AS part, {body}::VARCHAR AS body FROM {table} WHERE {condition}"  # noqa: S608 # constants above
        for part, body, table, (condition, _) in parts
    )
    return statement, [value for *_, (_, values) in parts for value in values]


def _each(column: str, values: Sequence[str]) -> list[Condition]:
    """Return conditions that together mean one of the values.

    DuckDB pushes an equality into the scan of a table and skips what cannot hold it, but reads every
    column of every row for IN and OR: 4 to 25 ms against 240 ms over 10 million events (2.0.1).
    """
    if len(values) > _SCANS:
        return [(_is_in(column, values), values)]
    return [(f"{column} = ?", [value]) for value in values]


def _of_types(types: Sequence[str], subjects: Condition) -> Condition:
    return f"{_is_in('type', types)} AND {subjects[0]}", [*types, *subjects[1]]


def _is_in(column: str, values: Sequence[str]) -> str:
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
