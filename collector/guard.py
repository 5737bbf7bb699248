"""Read-only SQL from outside, on a store that this process is writing.

A read-only transaction alone is no guard. Inside it ``COMMIT``, ``CHECKPOINT``, ``ATTACH ':memory:'``,
``CREATE TEMP TABLE``, ``VACUUM`` and ``LOAD`` were accepted; and with external access off, a table
function may still open the store's own file (``read_csv('store.duckdb')``), which drops the process's
lock on it when it closes the file. So: one statement, of two kinds, with known table functions.
"""

import json
import re
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import duckdb
import pyarrow as pa

from collector.errors import QueryLimitError, QueryRefusedError

Params = Sequence[object]


@dataclass(frozen=True, slots=True)
class Limits:
    """How much one query may take."""

    rows: int = 1_000_000
    seconds: float = 60.0


_KINDS = {duckdb.StatementType.SELECT, duckdb.StatementType.EXPLAIN}
_ADVICE = "Give one SELECT or EXPLAIN statement; the store is written by the collector alone."

# Table functions that read nothing but their arguments and the catalog.
_FUNCTIONS = frozenset(
    {
        "generate_series",
        "json_each",
        "json_tree",
        "pragma_database_size",
        "pragma_storage_info",
        "pragma_table_info",
        "range",
        "repeat",
        "unnest",
        "duckdb_columns",
        "duckdb_constraints",
        "duckdb_databases",
        "duckdb_functions",
        "duckdb_indexes",
        "duckdb_memory",
        "duckdb_schemas",
        "duckdb_settings",
        "duckdb_tables",
        "duckdb_types",
        "duckdb_views",
    }
)
_EXPLAIN = re.compile(r"\s*EXPLAIN\b(\s*ANALYZE\b|\s*\((?:\s*\w+\s*\w*\s*,?)*\))?", re.IGNORECASE)
_BATCH_ROWS = 65_536


def run(cursor: duckdb.DuckDBPyConnection, sql: str, params: Params, limits: Limits) -> pa.Table:
    """Return the answer to one read-only statement. Closes the cursor; nothing of the query stays.

    Raises:
        QueryRefusedError: it is not one such statement, or the database cannot run it.
        QueryLimitError: it has too many rows, or takes too long.
    """
    over_time = threading.Event()

    def interrupt() -> None:
        over_time.set()
        cursor.interrupt()

    timer = threading.Timer(limits.seconds, interrupt)
    timer.daemon = True
    timer.start()
    try:
        check(cursor, sql)
        cursor.execute("BEGIN TRANSACTION READ ONLY")
        return _fetched(cursor.sql(sql, params=list(params)).to_arrow_reader(_BATCH_ROWS), limits)
    except duckdb.Error as error:
        if over_time.is_set():
            msg = f"the query took longer than {limits.seconds:g} s. Ask for less at once, e.g. one run or a LIMIT."
            raise QueryLimitError(msg) from None
        raise QueryRefusedError(str(error)) from None
    finally:
        timer.cancel()
        cursor.close()  # with its transaction, which is rolled back


def check(cursor: duckdb.DuckDBPyConnection, sql: str) -> None:
    """Return if this is one statement that only reads tables; it is parsed, but not bound or run.

    Raises:
        QueryRefusedError: it is anything else.
        duckdb.ParserException: it is no SQL.
    """
    statements = cursor.extract_statements(sql)
    if len(statements) != 1:
        msg = f"this is {len(statements)} statements. {_ADVICE}"
        raise QueryRefusedError(msg)
    kind = statements[0].type
    if kind not in _KINDS:
        msg = f"{kind.name} is refused. {_ADVICE}"
        raise QueryRefusedError(msg)
    text = statements[0].query
    if kind == duckdb.StatementType.EXPLAIN:
        text = _explained(text)
    for node in _nodes(_syntax_tree(cursor, text)):
        _check_table(node)


def _explained(text: str) -> str:
    match = _EXPLAIN.match(text)
    if match is None:
        msg = "put EXPLAIN at the very beginning, with nothing before it."
        raise QueryRefusedError(msg)
    return text[match.end() :]


def _syntax_tree(cursor: duckdb.DuckDBPyConnection, text: str) -> Any:
    found = cursor.execute("SELECT json_serialize_sql(?)", [text]).fetchone()
    tree = json.loads(found[0]) if found else {"error": True}
    if tree["error"]:
        msg = f"{tree.get('error_message', 'this statement cannot be checked')}. {_ADVICE}"
        raise QueryRefusedError(msg)
    return tree


def _nodes(tree: Any) -> Iterator[dict[str, Any]]:
    """Yield every object of a syntax tree."""
    waiting = [tree]
    while waiting:
        node = waiting.pop()
        if isinstance(node, dict):
            yield node
            waiting.extend(node.values())
        elif isinstance(node, list):
            waiting.extend(node)


def _check_table(node: dict[str, Any]) -> None:
    match node.get("type"):
        case "TABLE_FUNCTION":
            name = str(node["function"]["function_name"]).lower()
            if name not in _FUNCTIONS:
                msg = f"the table function {name} is refused. Allowed are: {', '.join(sorted(_FUNCTIONS))}."
                raise QueryRefusedError(msg)
        case "BASE_TABLE":
            name = str(node["table_name"])
            if "." in name or "/" in name:
                msg = f"{name!r} names a file. Queries read the store's own tables and views."
                raise QueryRefusedError(msg)
        case _:
            return


def _fetched(reader: pa.RecordBatchReader, limits: Limits) -> pa.Table:
    batches, rows = [], 0
    for batch in reader:
        batches.append(batch)
        rows += batch.num_rows
        if rows > limits.rows:
            msg = f"the answer has more than {limits.rows:,} rows. Aggregate, or ask for a part with LIMIT and OFFSET."
            raise QueryLimitError(msg)
    return pa.Table.from_batches(batches, schema=reader.schema)
