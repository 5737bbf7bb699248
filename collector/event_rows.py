"""Events as rows of ``base.events``, and what the fold reads back out of such rows."""

from collections.abc import Iterable, Iterator
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pydantic_core import from_json

from build_events import codec
from build_events.envelope import Recorded, StreamHeader
from build_events.events import Event, HeartbeatRecorded, PhaseFinished, PhaseProgressed, PhaseStarted
from build_events.fold import FOLDED_TYPES
from build_events.phase_fold import PhaseFact

# A test holds this against schema.sql.
ROW_SCHEMA = pa.schema(
    [
        ("stream_id", pa.string()),
        ("stream_role", pa.string()),
        ("sequence", pa.uint32()),
        ("type", pa.string()),
        ("run_id", pa.string()),
        ("route", pa.string()),
        ("source", pa.string()),
        ("time", pa.timestamp("ns")),
        ("monotonic_ns", pa.int64()),
        ("boot_id", pa.string()),
        ("trace_id", pa.string()),
        ("span_id", pa.string()),
        ("phase_id", pa.int64()),
        ("parent_id", pa.int64()),
        ("name", pa.string()),
        ("steps_total", pa.int64()),
        ("steps_seen", pa.int64()),
        ("thread_id", pa.int64()),
        ("build_id", pa.string()),
        ("cancel_state", pa.string()),
        ("callbacks", pa.int64()),
        ("longest_gap_ns", pa.int64()),
        ("duration_ns", pa.int64()),
        ("after_error", pa.bool_()),
        ("since_callback_ns", pa.int64()),
        ("payload", pa.string()),
    ]
)
# Column -> attribute of StreamHeader.
HEADER_COLUMNS = {
    "stream_id": "stream_id",
    "stream_role": "role",
    "run_id": "run_id",
    "route": "route",
    "trace_id": "trace_id",
    "source": "source",
    "boot_id": "boot_id",
}
_FACT_COLUMNS = tuple("time" if name == "wall_ns" else name for name in PhaseFact._fields)

PHASE_TYPES = frozenset({PhaseStarted.type, PhaseProgressed.type, PhaseFinished.type})
HOT_TYPES = PHASE_TYPES | {HeartbeatRecorded.type}
KEPT_TYPES = FOLDED_TYPES - PHASE_TYPES


def to_table(events: Iterable[tuple[Recorded, str | None]]) -> pa.Table:
    """Return rows of events, each with its payload: JSON, or ``None`` for a type whose columns hold all of it."""
    return pa.Table.from_pylist([_row(record, payload) for record, payload in events], schema=ROW_SCHEMA)


def headers(rows: pa.Table) -> list[StreamHeader]:
    """Return the stream header of each row."""
    values = zip(*(rows.column(name).to_pylist() for name in HEADER_COLUMNS), strict=True)
    return [StreamHeader(**dict(zip(HEADER_COLUMNS.values(), row, strict=True))) for row in values]


def phase_facts(rows: pa.Table) -> Iterator[tuple[StreamHeader, list[PhaseFact]]]:
    """Yield the facts of the rows of phase events; a stream may come several times."""
    phases = rows.filter(_is_one_of(rows, PHASE_TYPES))
    columns = [phases.column(name) for name in _FACT_COLUMNS]
    columns = [column.cast(pa.int64()) if pa.types.is_timestamp(column.type) else column for column in columns]
    facts = list(map(PhaseFact._make, zip(*(column.to_pylist() for column in columns), strict=True)))
    for header, start, stop in streams(phases):
        yield header, facts[start:stop]


def kept_records(rows: pa.Table) -> Iterator[Recorded]:
    """Yield the events whose types the fold keeps whole; ``rows`` have payloads."""
    kept = rows.filter(_is_one_of(rows, KEPT_TYPES))
    names = ("sequence", "time", "monotonic_ns", "span_id", "type", "payload")
    columns = [kept.column(name) for name in names]
    columns[1] = columns[1].cast(pa.int64())
    values = zip(headers(kept), *(column.to_pylist() for column in columns), strict=True)
    for header, sequence, wall_ns, monotonic_ns, span_id, kind, payload in values:
        yield Recorded(
            stream=header,
            sequence=sequence,
            wall_ns=wall_ns,
            monotonic_ns=monotonic_ns,
            span_id=span_id,
            event=codec.decode_event(kind, from_json(payload)),
        )


def streams(rows: pa.Table, breaks: Iterable[int] = ()) -> list[tuple[StreamHeader, int, int]]:
    """Return (header, first row, row after the last) of each stretch of rows of one stream.

    ``breaks`` are further rows that begin a stretch.
    """
    if rows.num_rows == 0:
        return []
    firsts = {0, *breaks}
    for name in HEADER_COLUMNS:
        column = rows.column(name).combine_chunks()
        # The same index is the same value, and pyarrow encodes no dictionaries.
        encoded = pc.run_end_encode(column.indices if isinstance(column, pa.DictionaryArray) else column)
        firsts.update(encoded.run_ends.to_pylist()[:-1])
    ordered = sorted(firsts)
    return list(zip(headers(rows.take(pa.array(ordered))), ordered, [*ordered[1:], rows.num_rows], strict=True))


def _is_one_of(rows: pa.Table, types: frozenset[str]) -> pa.Array:
    return pc.is_in(rows.column("type"), value_set=pa.array(sorted(types)))


def _row(record: Recorded, payload: str | None) -> dict[str, Any]:
    stream, event = record.stream, record.event
    row: dict[str, Any] = {
        "stream_id": stream.stream_id,
        "stream_role": stream.role,
        "sequence": record.sequence,
        "type": event.type,
        "run_id": stream.run_id,
        "route": stream.route,
        "source": stream.source,
        "time": record.wall_ns,
        "monotonic_ns": record.monotonic_ns,
        "boot_id": stream.boot_id,
        "trace_id": stream.trace_id,
        "span_id": record.span_id,
        "payload": payload,
    }
    if event.type in HOT_TYPES and isinstance(event, Event):
        fields = event.model_dump(exclude={"unit"})
        if isinstance(event, HeartbeatRecorded):
            fields["phase_id"] = fields.pop("open_phase_id")
        row.update(fields)
    return row
