"""What SQL from outside may do to a store that is being written: read, within limits."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from collector.errors import QueryLimitError, QueryRefusedError
from collector.guard import Limits, run
from collector.store import Store

LIMITS = Limits(rows=1_000, seconds=30)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    """A store in a file, with one view."""
    view = "CREATE VIEW numbers AS SELECT range AS n FROM range(10)"
    with Store.open(tmp_path / "store.duckdb", log_identity="log-1", views=[view]) as opened:
        yield opened


def is_locked(path: Path) -> bool:
    """Say whether another process is kept from opening the database file."""
    line = f"import duckdb; duckdb.connect({str(path)!r})"
    done = subprocess.run([sys.executable, "-c", line], capture_output=True, text=True, check=False)
    return "Conflicting lock" in done.stderr


@pytest.mark.parametrize(
    ("sql", "rows"),
    [
        ("SELECT count(*) AS n FROM numbers", [{"n": 10}]),
        ("FROM numbers WHERE n > 8;", [{"n": 9}]),
        ("WITH few AS (FROM numbers LIMIT 2) SELECT sum(n)::INTEGER AS total FROM few", [{"total": 1}]),
        ("SELECT n FROM numbers, unnest([1]) AS one(i) WHERE n = i", [{"n": 1}]),
        ("VALUES (1)", [{"col0": 1}]),
        ("SELECT name FROM (SHOW TABLES)", [{"name": "numbers"}]),
    ],
)
def test_reading_is_allowed(store: Store, sql: str, rows: list[dict[str, object]]) -> None:
    """Whatever begins like a query and reads the store's tables and views gets its answer."""
    assert run(store.cursor(), sql, (), LIMITS).to_pylist() == rows


@pytest.mark.parametrize(
    "sql", ["EXPLAIN FROM numbers", "explain analyze FROM numbers", "EXPLAIN (FORMAT json) SELECT 1"]
)
def test_explaining_is_allowed(store: Store, sql: str) -> None:
    """A plan can be looked at."""
    assert run(store.cursor(), sql, (), LIMITS).num_rows == 1


def test_parameters_stand_for_values(store: Store) -> None:
    """A value never becomes SQL."""
    answer = run(store.cursor(), "SELECT n FROM numbers WHERE n = ? AND 'it''s' = ?", [3, "it's"], LIMITS)
    assert answer.to_pylist() == [{"n": 3}]


REFUSED = [
    "INSERT INTO base.positions VALUES ('x', 1)",
    "UPDATE base.meta SET schema_version = 2",
    "DELETE FROM base.events",
    "WITH gone AS (DELETE FROM base.events RETURNING *) FROM gone",
    "DROP TABLE base.events",
    "CREATE TABLE mine (a INTEGER)",
    "CREATE TEMP TABLE mine (a INTEGER)",
    "SELECT 1; SELECT 2",
    "SELECT 1; DROP TABLE base.events",
    "",
    "-- nothing",
    "BEGIN",
    "COMMIT",
    "ROLLBACK",
    "CHECKPOINT",
    "FROM checkpoint()",
    "FROM force_checkpoint()",
    "FROM query('FROM checkpoint()')",
    "ATTACH ':memory:' AS other",
    "DETACH enginetrail",
    "USE memory",
    "COPY base.events TO '/tmp/events.csv'",
    "EXPORT DATABASE '/tmp/exported'",
    "SET threads = 1",
    "SET lock_configuration = false",
    "RESET threads",
    "PRAGMA database_list",
    "VACUUM",
    "LOAD json",
    "INSTALL httpfs",
    "CALL enable_logging()",
    "PREPARE p AS SELECT 1",
    "FROM read_csv('/etc/passwd')",
    "FROM '/etc/passwd'",
    "FROM read_text('/etc/passwd')",
    "FROM glob('/etc/*')",
    "WITH hidden AS (FROM read_blob('/etc/passwd')) SELECT 1",
    "EXPLAIN FROM read_csv('/etc/passwd')",
    "EXPLAIN ANALYZE INSERT INTO base.positions VALUES ('x', 1)",
    "SELECT nonsense",
    "SELEC 1",
]


@pytest.mark.parametrize("sql", REFUSED)
def test_everything_but_reading_is_refused_and_changes_nothing(store: Store, sql: str) -> None:
    """One error class for all of it; the next query works."""
    with pytest.raises(QueryRefusedError):
        run(store.cursor(), sql, (), LIMITS)
    assert run(store.cursor(), "SELECT count(*) AS n FROM base.positions", (), LIMITS).to_pylist() == [{"n": 0}]
    assert run(store.cursor(), "SELECT count(*) AS n FROM base.meta", (), LIMITS).to_pylist() == [{"n": 1}]


def test_no_query_can_open_the_stores_own_file_and_so_drop_its_lock(store: Store) -> None:
    """With external access off DuckDB still lets ``read_csv`` open its own file, and closing it drops the lock."""
    for source in (f"read_csv('{store.path}')", f"parquet_metadata('{store.path}')", f"'{store.path}'"):
        for sql in (f"FROM {source}", f"EXPLAIN FROM {source}"):
            with pytest.raises(QueryRefusedError):
                run(store.cursor(), sql, (), LIMITS)
    assert is_locked(store.path)


def test_an_answer_that_is_too_long_is_an_error_and_never_cut_short(store: Store) -> None:
    """A part of the rows could be taken for all of them."""
    assert run(store.cursor(), "FROM range(1000)", (), LIMITS).num_rows == 1_000
    with pytest.raises(QueryLimitError, match="more than 1,000 rows"):
        run(store.cursor(), "FROM range(1001)", (), LIMITS)


def test_a_query_that_takes_too_long_is_interrupted(store: Store) -> None:
    """The limit ends it, and the next query works."""
    with pytest.raises(QueryLimitError, match=r"longer than 0\.2 s"):
        run(store.cursor(), "SELECT count(*) FROM range(1000000000000)", (), Limits(seconds=0.2))
    assert run(store.cursor(), "SELECT 1 AS one", (), LIMITS).to_pylist() == [{"one": 1}]
