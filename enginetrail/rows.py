"""Query results for people and for programs."""

import csv
import datetime as dt
import decimal
import io
import json
import math
from collections.abc import Mapping, Sequence
from typing import Any, Literal

import pyarrow as pa
import pyarrow.compute as pc
from rich.console import Console
from rich.table import Table

Format = Literal["table", "json", "csv"]
ISO = "%Y-%m-%dT%H:%M:%SZ"  # Arrow's %S carries the column's full resolution


def to_rows(table: pa.Table) -> list[dict[str, Any]]:
    """Return one dict a row with values that JSON can hold; times are ISO 8601 in UTC."""
    columns = []
    for column in table.columns:
        if pa.types.is_timestamp(column.type):
            columns.append(pc.strftime(column, format=ISO))
        else:
            columns.append(column)
    plain = pa.table(columns, names=_distinct(table.column_names))
    return [{name: _value(value) for name, value in row.items()} for row in plain.to_pylist()]


def render(rows: Sequence[Mapping[str, Any]], columns: Sequence[str], how: Format) -> str:
    """Return rows as an aligned table, as a JSON array of objects, or as CSV with a header."""
    if how == "json":
        return json.dumps([dict(row) for row in rows], ensure_ascii=False, indent=2)
    if how == "csv":
        return _csv(rows, columns)
    return plain_table(rows, columns)


def plain_table(rows: Sequence[Mapping[str, Any]], columns: Sequence[str]) -> str:
    """Return an aligned table without control codes, never folded."""
    table = Table(box=None, pad_edge=False, header_style="")
    for column in columns:
        numbers = all(isinstance(row[column], int | float | None) for row in rows)
        table.add_column(column, no_wrap=True, justify="right" if rows and numbers else "left")
    for row in rows:
        table.add_row(*(text(row[column]) for column in columns))
    buffer = io.StringIO()
    Console(file=buffer, width=10_000, color_system=None, markup=False, highlight=False).print(table)
    return "\n".join(line.rstrip() for line in buffer.getvalue().rstrip().splitlines())


def text(value: Any) -> str:
    """Return one value for a table: ``-`` for what is not there."""
    if value is None:
        return "-"
    if isinstance(value, float):
        return f"{value:.3f}".rstrip("0").rstrip(".")
    if isinstance(value, dict | list):
        return json.dumps(value, ensure_ascii=False)
    return str(value)


def _csv(rows: Sequence[Mapping[str, Any]], columns: Sequence[str]) -> str:
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow(columns)
    for row in rows:
        values = (row[column] for column in columns)
        writer.writerow([json.dumps(value) if isinstance(value, dict | list) else value for value in values])
    return buffer.getvalue().rstrip("\n")


def _distinct(names: Sequence[str]) -> list[str]:
    # Two columns of one name would fall together in a JSON object.
    seen: dict[str, int] = {}
    distinct = []
    for name in names:
        seen[name] = seen.get(name, 0) + 1
        distinct.append(name if seen[name] == 1 else f"{name}_{seen[name]}")
    return distinct


def _value(value: Any) -> Any:
    match value:
        case dict():
            return {str(key): _value(item) for key, item in value.items()}
        case list() | tuple():
            return [_value(item) for item in value]
        case float() if not math.isfinite(value):
            return None
        case None | str() | bool() | int() | float():
            return value
        case _:
            return _foreign(value)


def _foreign(value: Any) -> Any:
    """Return what JSON can hold for a value of a type that it does not know."""
    match value:
        case decimal.Decimal():
            return int(value) if value == value.to_integral_value() else float(value)
        case bytes():
            return value.hex()
        case dt.timedelta():
            return value.total_seconds()
        case _:
            return str(value)
