"""Rows of the fold as Arrow tables of the store's columns."""

import dataclasses
from collections.abc import Callable, Iterable, Sequence
from operator import attrgetter
from typing import Any

import pyarrow as pa

from build_events import ranges
from build_events.state import AnomalyRow, ArtifactRow, CancellationRow, PhaseRow, RunRow, StreamRow

_Columns = dict[str, Callable[[Any], Any]]


def _columns(cls: type) -> _Columns:
    """Return column name -> how to read it from a row; wall times lose their ``_ns``: the column is typed."""
    names = [field.name for field in dataclasses.fields(cls)]
    return {name.removesuffix("_ns") if name.endswith("_at_ns") else name: attrgetter(name) for name in names}


def _first_missing(row: StreamRow) -> int | None:
    return row.missing[0][0] if row.missing else None


COLUMNS: dict[str, _Columns] = {
    "runs": _columns(RunRow),
    "settled_phases": _columns(PhaseRow),
    "open_phases": _columns(PhaseRow),
    "cancellations": _columns(CancellationRow),
    "artifacts": _columns(ArtifactRow),
    "anomalies": _columns(AnomalyRow),
    "streams": {
        **_columns(StreamRow),
        "missing": lambda row: ranges.text(row.missing),
        "first_missing": _first_missing,
        "complete": attrgetter("complete"),
    },
}


def to_table(name: str, rows: Sequence[object], schema: pa.Schema) -> pa.Table:
    """Return rows of the table ``name``, whose Arrow schema is ``schema``."""
    columns = COLUMNS[name]
    return pa.table([_array(map(columns[field.name], rows), field.type) for field in schema], schema=schema)


def _array(values: Iterable[Any], kind: pa.DataType) -> pa.Array:
    return pa.array(list(values), kind)
