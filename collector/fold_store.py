"""The fold's tables in the store: states read, runs folded again, rows of touched runs written."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import duckdb
import pyarrow as pa

from build_events import state_codec
from build_events.envelope import Recorded, StreamHeader
from build_events.events import PhaseFinished, PhaseProgressed, PhaseStarted
from build_events.phase_fold import PhaseFact, fact_of
from build_events.state import RunState, StreamRow
from collector import projection
from collector.arrivals import arrivals
from collector.event_rows import kept_records, phase_facts
from collector.fold_tables import to_table
from collector.parsing import Parsed
from collector.projection import Advanced, StreamFold, StreamNews
from collector.store import insert

# Tables whose rows of a touched run are written anew.
_REWRITTEN = ("runs", "open_phases", "cancellations", "artifacts", "anomalies")


@dataclass(slots=True)
class Known:
    """What the store knows of streams."""

    folds: dict[StreamHeader, StreamFold] = field(default_factory=dict)
    unreadable: list[tuple[str, str | None]] = field(default_factory=list)  # (stream id, run id), of another release


def load(db: duckdb.DuckDBPyConnection, headers: Iterable[StreamHeader], run_ids: Iterable[str]) -> Known:
    """Return the folds of these streams, and of all streams of these runs."""
    known = Known()
    found = db.execute(
        "SELECT stream_id, run_id, highest_phase_id, state FROM base.fold_states "
        "WHERE run_id IN (SELECT unnest(?)) OR stream_id IN (SELECT unnest(?))",
        [list(run_ids), [header.stream_id for header in headers]],
    ).fetchall()
    for stream_id, run_id, highest_phase_id, payload in found:
        state = state_codec.load(payload)
        if state is None:
            known.unreadable.append((stream_id, run_id))
        else:
            known.folds[state.header] = StreamFold(state, highest_phase_id)
    return known


def fold_again(
    db: duckdb.DuckDBPyConnection, *, run_ids: Iterable[str] = (), stream_ids: Iterable[str] = ()
) -> Advanced:
    """Fold all events that the store has of these runs and streams, and forget the settled phases of these runs.

    Reads what the open transaction has written, too.
    """
    runs, streams = list(run_ids), list(stream_ids)
    db.execute("DELETE FROM base.settled_phases WHERE run_id IN (SELECT unnest(?))", [runs])
    rows = db.sql(
        "SELECT * REPLACE (payload::VARCHAR AS payload) FROM base.events WHERE run_id IN (SELECT unnest(?)) "
        "OR stream_id IN (SELECT unnest(?)) ORDER BY stream_id, run_id, route, stream_role, sequence",
        params=[runs, streams],
    ).to_arrow_table()
    found = arrivals(Parsed(rows, (), ()))
    return projection.advance({}, gather({header: stream.sequences for header, stream in found.items()}, rows))


def gather(
    sequences: Mapping[StreamHeader, tuple[tuple[int, int], ...]],
    rows: pa.Table,
    records: Iterable[Recorded] = (),
) -> list[StreamNews]:
    """Return the news of streams: what the fold reads of ``rows``, and of ``records`` beside them."""
    facts: dict[StreamHeader, list[PhaseFact]] = {}
    kept: dict[StreamHeader, list[Recorded]] = {}
    for header, some in phase_facts(rows):
        facts.setdefault(header, []).extend(some)
    stored = kept_records(rows) if "payload" in rows.column_names else ()
    for record in (*stored, *records):
        event = record.event
        if isinstance(event, (PhaseStarted, PhaseProgressed, PhaseFinished)):
            facts.setdefault(record.stream, []).append(fact_of(record, event))
        else:
            kept.setdefault(record.stream, []).append(record)
    return [
        StreamNews(header, ranges, facts.get(header, ()), kept.get(header, ())) for header, ranges in sequences.items()
    ]


def write(
    db: duckdb.DuckDBPyConnection,
    schemas: Mapping[str, pa.Schema],
    *,
    states: Sequence[RunState],
    routes: Sequence[StreamRow],
    advanced: Advanced,
    folds: Iterable[StreamFold],
) -> None:
    """Write the rows of ``states`` and ``routes`` in place of their older ones, settled phases, and ``folds``."""
    rows: dict[str, Sequence[object]] = {
        "runs": [state.run for state in states],
        "open_phases": [phase for state in states for phase in state.phases],
        "cancellations": [state.cancellation for state in states if state.cancellation is not None],
        "artifacts": [artifact for state in states for artifact in state.artifacts],
        "anomalies": [anomaly for state in states for anomaly in state.anomalies],
    }
    streams = [stream for state in states for stream in state.streams]
    touched = [state.run.run_id for state in states]
    for name in _REWRITTEN:
        db.execute(f"DELETE FROM base.{name} WHERE run_id IN (SELECT unnest(?))", [touched])  # noqa: S608 - our names
    db.execute(
        "DELETE FROM base.streams WHERE run_id IN (SELECT unnest(?)) "
        "OR (run_id IS NULL AND stream_id IN (SELECT unnest(?)))",
        [touched, [row.stream_id for row in routes]],
    )
    for name, items in {**rows, "streams": [*streams, *routes], "settled_phases": advanced.settled}.items():
        insert(db, name, to_table(name, items, schemas[name]))
    write_folds(db, folds)


def write_folds(db: duckdb.DuckDBPyConnection, folds: Iterable[StreamFold]) -> None:
    """Write the states of streams in place of their older ones, with the sequences seen."""
    items = list(folds)
    stream_ids = [item.state.header.stream_id for item in items]
    db.execute("DELETE FROM base.fold_states WHERE stream_id IN (SELECT unnest(?))", [stream_ids])
    columns = {
        "stream_id": pa.array(stream_ids, pa.string()),
        "run_id": pa.array([item.state.header.run_id for item in items], pa.string()),
        "highest_phase_id": pa.array([item.highest_phase_id for item in items], pa.int64()),
        "state": pa.array([state_codec.dump(item.state) for item in items], pa.binary()),
    }
    insert(db, "fold_states", pa.table(columns))
