"""A store filled from records by the fold alone, with every view: what the collector would hold."""

import dataclasses
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import duckdb
from pydantic_core import to_json

from analytics.views import view_sql
from build_events import ranges
from build_events.envelope import Recorded
from build_events.events import Event, HeartbeatRecorded, Phase, UnknownEvent
from build_events.fold import advance, fold
from build_events.run_rows import stream_row
from build_events.state import RunState, StreamRow, StreamState

SCHEMA = Path(__file__).resolve().parents[2] / "collector" / "schema.sql"

Query = Callable[[str, Sequence[object]], list[dict[str, Any]]]


def empty_store() -> duckdb.DuckDBPyConnection:
    """Return a database with the collector's tables and our views."""
    store = duckdb.connect()
    store.execute(SCHEMA.read_text(encoding="utf-8"))
    for statement in view_sql():
        store.execute(statement)
    return store


def filled_store(
    records: Iterable[Recorded], dead_letters: Mapping[str, int] | None = None
) -> duckdb.DuckDBPyConnection:
    """Return a store that holds these records; ``dead_letters`` counts bad records per run id."""
    history, letters = list(records), dict(dead_letters or {})
    store = empty_store()
    unique = {record.event_id: record for record in history}
    for record in unique.values():
        _insert(store, "events", _event(record))
    for run_id in sorted({record.stream.run_id for record in history if record.stream.run_id}):
        mine = [record for record in history if record.stream.run_id == run_id]
        _insert_run(store, fold(mine, dead_letters=letters.get(run_id, 0))[run_id])
    for row in _route_streams(history):
        _insert(store, "streams", _stream(row))
    for run_id, count in letters.items():
        _insert(store, "dead_letter_counts", {"run_id": run_id, "route": None, "stream_id": None, "count": count})
    return store


def querying(store: duckdb.DuckDBPyConnection) -> Query:
    """Return what analytics asks with: SQL and parameters to rows."""

    def query(sql: str, parameters: Sequence[object]) -> list[dict[str, Any]]:
        cursor = store.execute(sql, parameters)
        names = [column[0] for column in cursor.description or ()]
        return [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]

    return query


def _insert_run(store: duckdb.DuckDBPyConnection, state: RunState) -> None:
    _insert(store, "runs", dataclasses.asdict(state.run))
    for phase in state.phases:
        table = "settled_phases" if phase.duration_ns is not None else "open_phases"
        _insert(store, table, dataclasses.asdict(phase))
    if state.cancellation:
        _insert(store, "cancellations", dataclasses.asdict(state.cancellation))
    for artifact in state.artifacts:
        _insert(store, "artifacts", dataclasses.asdict(artifact))
    for anomaly in state.anomalies:
        _insert(store, "anomalies", dataclasses.asdict(anomaly))
    for stream in state.streams:
        _insert(store, "streams", _stream(stream))


def _insert(store: duckdb.DuckDBPyConnection, table: str, row: Mapping[str, Any]) -> None:
    values = {
        (name.removesuffix("_ns") if name.endswith("_at_ns") else name): (
            ("make_timestamp_ns(?)" if name.endswith("_at_ns") or name == "time" else "?"),
            value,
        )
        for name, value in row.items()
    }
    columns = ", ".join(f'"{name}"' for name in values)
    places = ", ".join(place for place, _ in values.values())
    store.execute(f"INSERT INTO store.{table} ({columns}) VALUES ({places})", [value for _, value in values.values()])


def _route_streams(records: Sequence[Recorded]) -> list[StreamRow]:
    by_stream: dict[str, list[Recorded]] = {}
    for record in records:
        if record.stream.role == "route":
            by_stream.setdefault(record.stream.stream_id, []).append(record)
    return [stream_row(advance(StreamState(header=items[0].stream), items)) for items in by_stream.values()]


def _stream(row: StreamRow) -> dict[str, Any]:
    values = dataclasses.asdict(row)
    values["missing"] = ranges.text(row.missing)
    values["first_missing"] = row.missing[0][0] if row.missing else None
    values["complete"] = row.complete
    return values


def _event(record: Recorded) -> dict[str, Any]:
    stream, event = record.stream, record.event
    values: dict[str, Any] = {
        "stream_id": stream.stream_id, "stream_role": stream.role, "sequence": record.sequence, "type": event.type,
        "run_id": stream.run_id, "route": stream.route, "source": stream.source, "time": record.wall_ns,
        "monotonic_ns": record.monotonic_ns, "boot_id": stream.boot_id, "trace_id": stream.trace_id,
        "span_id": record.span_id,
    }  # fmt: skip
    if isinstance(event, Phase):
        return {**values, **event.model_dump(exclude={"unit"})}
    if isinstance(event, HeartbeatRecorded):
        typed = event.model_dump()
        return {**values, "phase_id": typed.pop("open_phase_id"), **typed}
    return {**values, "payload": _payload(event)}


def _payload(event: Event | UnknownEvent) -> str:
    if isinstance(event, UnknownEvent):
        return to_json(event.data).decode()
    return event.model_dump_json()
