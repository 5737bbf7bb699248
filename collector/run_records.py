"""The events of one run, as the store holds them, as they were recorded."""

from typing import Any

import duckdb
from pydantic_core import from_json

from build_events import codec
from build_events.envelope import Recorded, StreamHeader
from build_events.events import EVENT_TYPES, HeartbeatRecorded, RunFenced, RunLost

_EVENTS = (
    "SELECT * REPLACE (epoch_ns(time) AS time, payload::VARCHAR AS payload) FROM base.events "
    "WHERE run_id = ? ORDER BY stream_id, sequence"
)
_ENDS = "SELECT stream_id FROM base.events WHERE run_id = ? AND type IN (?, ?) ORDER BY rowid LIMIT 1"


def run_records(cursor: duckdb.DuckDBPyConnection, run_id: str) -> list[Recorded]:
    """Return all events that the store has of a run, a stream's in their order."""
    result = cursor.execute(_EVENTS, [run_id])
    names = [column[0] for column in result.description or ()]
    return [_record(dict(zip(names, row, strict=True))) for row in result.fetchall()]


def first_to_declare(cursor: duckdb.DuckDBPyConnection, run_id: str) -> str | None:
    """Return the stream that first called a run lost or fenced it, ``None`` while there is none.

    First in the log: a run's events are in one partition, and its rows are stored in that order.
    """
    found = cursor.execute(_ENDS, [run_id, RunFenced.type, RunLost.type]).fetchone()
    return None if found is None else str(found[0])


def _record(row: dict[str, Any]) -> Recorded:
    kind = row["type"]
    return Recorded(
        stream=StreamHeader(
            stream_id=row["stream_id"],
            role=row["stream_role"],
            run_id=row["run_id"],
            trace_id=row["trace_id"],
            source=row["source"],
            boot_id=row["boot_id"],
        ),
        sequence=row["sequence"],
        wall_ns=row["time"],
        monotonic_ns=row["monotonic_ns"],
        span_id=row["span_id"],
        event=codec.decode_event(kind, _columns(row, kind) if row["payload"] is None else from_json(row["payload"])),
    )


def _columns(row: dict[str, Any], kind: str) -> dict[str, Any]:
    """Return the data of an event whose columns hold all of it."""
    if kind == HeartbeatRecorded.type:
        row = {**row, "open_phase_id": row["phase_id"]}
    return {name: row[name] for name in EVENT_TYPES[kind].model_fields if name in row}
