"""Queries over the stores of all partitions: their snapshots, attached in the asking process.

The attached files are the only ones that a query can reach: they are attached first, then external
access is switched off for good.
"""

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import duckdb
import pyarrow as pa

from build_events.log import Positions
from collector import snapshots
from collector.access import STORE_FILE, Reader
from collector.errors import SnapshotError, StoreCorruptError
from collector.guard import Limits, Params, run
from collector.ingest import Ingester
from collector.lock import StoreLock
from collector.partitions import PartitionedLog, partition_folder
from collector.store import Store, connect_memory, lock_settings, new_cursor, passed, read_identity, read_positions

# What nobody can be blamed for is one row, also where it stands in several partitions.
_MERGED = {"dead_letter_counts": "SELECT run_id, route, stream_id, sum(count)::BIGINT AS count FROM ({}) GROUP BY ALL"}
CATCH_UP_S = 5.0  # a following collector publishes every two seconds while something changes
_RETRY_EVERY_S = 0.1


class UnionAnswers:
    """One way to answer queries: everything that was attached, as one store."""

    snapshot_age_s: float | None = None

    def __init__(self, db: duckdb.DuckDBPyConnection, *, behind: bool, limits: Limits) -> None:
        self._db = db
        self._limits = limits
        self.behind = behind

    def query(self, sql: str, params: Params) -> pa.Table:
        """Return the answer to one read-only statement."""
        return run(new_cursor(self._db), sql, params, self._limits)

    def close(self) -> None:
        """Let the files go."""
        self._db.close()


def open_union(
    home: Path,
    log: PartitionedLog,
    views: Sequence[str],
    *,
    take_in: bool = True,
    wait_s: float = CATCH_UP_S,
    limits: Limits | None = None,
) -> Reader:
    """Return a reader of all partitions as one store.

    A partition that nobody collects is taken in first, unless told otherwise. Of one that another process
    collects the newest snapshot is read; where that lacks something that the log held at the call, a newer
    one is waited for, ``wait_s`` seconds at most. After that the reader is ``behind``.

    Raises:
        SnapshotError: a partition is collected, but has no snapshot yet.
        StoreError: a store or snapshot cannot be used; the message says why and what to do.
    """
    ends = log.ends()
    identity = log.identity()

    def open_answers() -> UnionAnswers:
        files: list[tuple[Path, str]] = []
        deadline = time.monotonic() + wait_s
        for number in log.partitions():
            folder = partition_folder(home, identity, number)
            # Somebody else may be taking it in for the first time.
            while not (take_in and _take_in(folder, log, number, views)) and snapshots.age_s(folder) is None:
                if time.monotonic() < deadline:
                    time.sleep(_RETRY_EVERY_S)
                    continue
                msg = f"{folder}: the collector of this partition has published no snapshot yet. Ask again in a moment."
                raise SnapshotError(msg)
            files.append((folder / snapshots.SNAPSHOT_FILE, log.partition(number).identity()))
        while True:
            answers = _answers(files, views, ends, limits or Limits())
            if not answers.behind or time.monotonic() >= deadline:
                return answers
            answers.close()
            time.sleep(_RETRY_EVERY_S)

    return Reader(open_answers(), open_answers)


def _answers(files: Sequence[tuple[Path, str]], views: Sequence[str], ends: Positions, limits: Limits) -> UnionAnswers:
    db = connect_memory()
    try:
        positions = _attach(db, files)
        unite(db, [f"p{number}.base" for number in range(len(files))], views)
        lock_settings(db)
    except BaseException:
        db.close()
        raise
    return UnionAnswers(db, behind=not passed(positions, ends), limits=limits)


def unite(db: duckdb.DuckDBPyConnection, sources: Sequence[str], views: Iterable[str]) -> None:
    """Make the store's tables, each the union of all ``sources``, and ``views`` over them."""
    database, schema = sources[0].split(".")
    tables = [
        name
        for (name,) in db.execute(
            "SELECT table_name FROM duckdb_tables() WHERE database_name = ? AND schema_name = ?", [database, schema]
        ).fetchall()
    ]
    create_store(db, tables, lambda table: " UNION ALL BY NAME ".join(f"FROM {name}.{table}" for name in sources))
    for view in views:
        db.execute(view)


def create_store(db: duckdb.DuckDBPyConnection, tables: Iterable[str], body: Callable[[str], str]) -> None:
    """Make schema ``store`` with a view for each table, and the store's own view of phases."""
    db.execute("CREATE SCHEMA base")
    for table in tables:
        db.execute(f"CREATE VIEW base.{table} AS {_MERGED.get(table, '{}').format(body(table))}")
    db.execute("CREATE VIEW base.phases AS FROM base.settled_phases UNION ALL FROM base.open_phases")


@contextmanager
def duckdb_errors(path: Path) -> Iterator[None]:
    """Turn what DuckDB says of files that it cannot read into ``StoreCorruptError``."""
    try:
        yield
    except duckdb.Error as error:
        raise StoreCorruptError(path, str(error)) from error


def _take_in(folder: Path, log: PartitionedLog, number: int, views: Sequence[str]) -> bool:
    """Take in a partition that nobody collects and publish it; say whether that was so."""
    lock = StoreLock.try_acquire(folder)
    if lock is None:
        return False
    source = log.partition(number)
    with (
        lock,
        Store.open(folder / STORE_FILE, log_identity=source.identity(), views=views) as store,
        Ingester(source, store) as ingester,
    ):
        if ingester.ingest().commits or snapshots.age_s(folder) is None:
            snapshots.publish(store, folder)
    return True


def _attach(db: duckdb.DuckDBPyConnection, files: Sequence[tuple[Path, str]]) -> dict[str, int]:
    """Attach the snapshots as ``p0``, ``p1``, ...; return the positions of all."""
    positions: dict[str, int] = {}
    (home,) = db.execute("SELECT current_database()").fetchone() or ("memory",)
    for number, (path, identity) in enumerate(files):
        quoted = str(path).replace("'", "''")
        with duckdb_errors(path):
            db.execute(f"ATTACH '{quoted}' AS p{number} (READ_ONLY)")
        db.execute(f"USE p{number}")
        read_identity(db, path, log_identity=identity)
        positions |= read_positions(db)
    db.execute(f"USE {home}")
    return positions
