"""What stores are compared by: every fold table and every view, as sets of rows."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa

from analytics.views import VIEWS, view_sql
from collector.guard import Limits, run
from collector.store import connect, new_cursor

FOLD_TABLES = (
    "events", "runs", "settled_phases", "open_phases", "cancellations", "artifacts", "streams", "anomalies",
    "dead_letter_counts",
)  # fmt: skip
Tables = dict[str, list[str]]
Ask = Callable[[str], pa.Table]


def tables(ask: Ask) -> Tables:
    """Return each table's and view's rows, ordered."""
    names = [*(f"base.{name}" for name in FOLD_TABLES), *VIEWS]
    return {name: _rows(ask(f"FROM {name}")) for name in names}


def tables_of(path: Path) -> Tables:
    """Return the tables of a store file that nobody has open."""
    db = connect(path, read_only=True)
    try:
        return tables(lambda sql: run(new_cursor(db), sql, (), Limits()))
    finally:
        db.close()


def views() -> list[str]:
    """Return the views that stores are made with."""
    return view_sql()


def _rows(table: pa.Table) -> list[str]:
    columns: list[list[Any]] = [_values(table.column(name)) for name in sorted(table.column_names)]
    return sorted(map(repr, zip(*columns, strict=True)))


def _values(column: pa.ChunkedArray) -> list[Any]:
    # Python's own times have no nanoseconds.
    values: list[Any] = (column.cast(pa.int64()) if pa.types.is_timestamp(column.type) else column).to_pylist()
    return values
