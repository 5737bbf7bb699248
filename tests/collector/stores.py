"""Stores filled from records, and what stands in them as plain values that compare."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import duckdb

from build_events import codec, state_codec
from build_events.envelope import Recorded
from build_events.log import InMemoryEventLog
from build_events.state import RunState
from collector.fold_tables import to_table
from collector.ingest import Ingester, Sizes
from collector.parsing import Parser
from collector.store import Store

LOG_ID = "memory"
_SIZES = Sizes()
# Everything that replay must reproduce. Positions, ingest times and the places of dead letters are apart.
TABLES = ("events", "runs", "phases", "cancellations", "artifacts", "streams", "anomalies", "dead_letter_counts")
Rows = Counter[tuple[Any, ...]]


def payloads(records: Iterable[Recorded]) -> list[bytes]:
    """Return the records as they stand in a log."""
    return [codec.encode(record) for record in records]


@contextmanager
def store_of(
    *arrivals: Sequence[bytes], sizes: Sizes = _SIZES, sql_from_payloads: int = 1
) -> Iterator[duckdb.DuckDBPyConnection]:
    """Yield a connection to a store in memory that took in the log after each of ``arrivals``."""
    stored: list[bytes] = []
    log = InMemoryEventLog(LOG_ID, stored)
    with Store.open(Path(":memory:"), log_identity=LOG_ID, views=[]) as store:
        parser = Parser(sql_from_payloads=sql_from_payloads)
        with Ingester(log, store, sizes=sizes, parser=parser) as ingester:
            for arrived in arrivals:
                stored.extend(arrived)
                ingester.ingest()
        yield store.cursor()


def content(db: duckdb.DuckDBPyConnection) -> dict[str, Rows]:
    """Return every table that replay must reproduce, as multisets of rows, and the fold's states."""
    tables = {name: rows_of(db, f"FROM base.{name}") for name in TABLES}
    states: Rows = Counter()
    for stream_id, highest_phase_id, payload in db.execute(
        "SELECT stream_id, highest_phase_id, state FROM base.fold_states"
    ).fetchall():
        state = state_codec.load(payload)
        assert state is not None
        phases = tuple(sorted(state.phases.items()))
        states[stream_id, highest_phase_id, state.header, state.seen, phases, repr(state.kept)] += 1
    return {**tables, "fold_states": states}


def rows_of(db: duckdb.DuckDBPyConnection, sql: str) -> Rows:
    """Return the rows of a query, times as nanoseconds."""
    table = db.sql(sql).to_arrow_table()
    columns = [(column.cast("int64") if "timestamp" in str(column.type) else column).to_pylist() for column in table]
    return Counter(zip(*columns, strict=True))


def folded(states: Iterable[RunState], db: duckdb.DuckDBPyConnection) -> dict[str, Rows]:
    """Return the fold's own rows in the shape of the store's tables."""
    runs = list(states)
    rows: dict[str, list[object]] = {
        "runs": [state.run for state in runs],
        "open_phases": [phase for state in runs for phase in state.phases],
        "cancellations": [state.cancellation for state in runs if state.cancellation],
        "artifacts": [artifact for state in runs for artifact in state.artifacts],
        "streams": [stream for state in runs for stream in state.streams],
        "anomalies": [anomaly for state in runs for anomaly in state.anomalies],
    }
    found: dict[str, Rows] = {}
    for name, items in rows.items():
        expected = to_table(name, items, db.sql(f"FROM base.{name} LIMIT 0").to_arrow_table().schema)
        db.register("expected", expected)
        found["phases" if name == "open_phases" else name] = rows_of(db, "FROM expected")
        db.unregister("expected")
    return found
