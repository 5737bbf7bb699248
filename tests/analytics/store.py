"""A store in memory that the real collector fills from records, with every view."""

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import duckdb

from analytics.views import view_sql
from build_events import codec
from build_events.envelope import Recorded
from build_events.log import InMemoryEventLog
from collector import guard
from collector.ingest import Ingester
from collector.store import Store
from enginetrail.rows import to_rows

SCHEMA = Path(__file__).resolve().parents[2] / "collector" / "schema.sql"

Query = Callable[[str, Sequence[object]], list[dict[str, Any]]]


def empty_store() -> duckdb.DuckDBPyConnection:
    """Return a database with the collector's tables and our views, made from their SQL alone."""
    store = duckdb.connect()
    store.execute(SCHEMA.read_text(encoding="utf-8"))
    for statement in view_sql():
        store.execute(statement)
    return store


def collected(records: Iterable[Recorded], damaged: Iterable[bytes] = ()) -> Query:
    """Return what the commands ask with, over a store that took in these records and some damaged ones."""
    log = InMemoryEventLog("memory", [*(codec.encode(record) for record in records), *damaged])
    store = Store.open(Path(":memory:"), log_identity=log.identity(), views=view_sql())
    with Ingester(log, store) as ingester:
        ingester.ingest()

    def query(sql: str, parameters: Sequence[object]) -> list[dict[str, Any]]:
        return to_rows(guard.run(store.cursor(), sql, parameters, guard.Limits()))

    return query
