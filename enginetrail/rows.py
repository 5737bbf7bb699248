"""Query results for people and for programs."""

import csv
import datetime as dt
import decimal
import io
import json
import math
from collections.abc import Mapping, Sequence
from itertools import zip_longest
from typing import Any, Literal

import pyarrow as pa
import pyarrow.compute as pc
from rich.cells import cell_len

Format = Literal["table", "json", "csv"]
ISO = "%Y-%m-%dT%H:%M:%SZ"  # Arrow's %S carries the column's full resolution
# A value must not move the cursor or colour what follows: no control characters but the line break (ASCII and C1).
_CONTROLS = dict.fromkeys((*range(0x20), *range(0x7F, 0xA0))) | {ord("\t"): " ", ord("\n"): "\n"}


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
    """Return an aligned table: numbers to the right, two spaces between columns, nothing cut, never folded.

    A line break in a value goes on in the same column of the next line; control characters are left out.
    """
    heads = [_lines(column) for column in columns]
    bodies = ([_lines(text(row[column])) for column in columns] for row in rows)
    lines = [line for cells in (heads, *bodies) for line in zip_longest(*cells, fillvalue="")]
    padded = [
        _padded(cells, right=bool(rows) and all(isinstance(row[column], int | float | None) for row in rows))
        for column, cells in zip(columns, zip(*lines, strict=True), strict=True)
    ]
    return "\n".join("  ".join(line).rstrip() for line in zip(*padded, strict=True))


def text(value: Any) -> str:
    """Return one value for a table: ``-`` for what is not there."""
    if value is None:
        return "-"
    if isinstance(value, float):
        return f"{value:.3f}".rstrip("0").rstrip(".")
    if isinstance(value, dict | list):
        return json.dumps(value, ensure_ascii=False)
    return str(value)


def _lines(value: str) -> list[str]:
    return value.translate(_CONTROLS).split("\n")


def _padded(cells: Sequence[str], *, right: bool) -> list[str]:
    """Return a column's cells as wide as its widest, in columns of a terminal."""
    widths = [len(cell) if cell.isascii() else cell_len(cell) for cell in cells]
    widest = max(widths)
    blanks = [" " * (widest - width) for width in widths]
    return [blank + cell if right else cell + blank for cell, blank in zip(cells, blanks, strict=True)]


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
