"""The store: one DuckDB file that holds one log, opened by one process at a time.

Nothing else in this process may open the file, not even to read its bytes: closing such a descriptor
drops the process's lock on it (fcntl locks belong to a process), and a second writer gets in.
"""

import hashlib
import re
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib import resources
from pathlib import Path
from types import TracebackType
from typing import Self

import duckdb
import pyarrow as pa

from collector.errors import (
    StoreBusyError,
    StoreCorruptError,
    StoreError,
    StoreIdentityError,
    StoreVersionError,
    StoreWriteError,
)
from collector.fold_tables import COLUMNS

SCHEMA_VERSION = 2

_SETTINGS = {
    "python_enable_replacements": "false",  # no query reads this process's variables
    "autoinstall_known_extensions": "false",
    "autoload_known_extensions": "false",
    # A larger WAL before DuckDB checkpoints by itself: a quarter more rows per second (measured).
    "wal_autocheckpoint": "256MB",
}
# One name for every store: DuckDB would name the database after its file, and a snapshot has another one.

_DATABASE = "enginetrail"


class Store:
    """An open store. The thread that opened it writes; others read through ``cursor``."""

    def __init__(self, path: Path, db: duckdb.DuckDBPyConnection) -> None:
        """Wrap a connection; use ``open`` instead."""
        self.path = path
        self._db = db
        # Cursors for other threads are made of a connection that no transaction keeps busy.
        self._spare = db.cursor()
        self._spare_lock = threading.Lock()
        self.schemas = {name: db.sql(f"FROM base.{name} LIMIT 0").to_arrow_table().schema for name in COLUMNS}

    @classmethod
    def open(cls, path: Path, *, log_identity: str, views: Sequence[str]) -> Self:
        """Open the store at ``path``, made if it is not there, with these views over its tables.

        Raises:
            StoreCorruptError: the file is no store that DuckDB can open.
            StoreVersionError: another release wrote it.
            StoreIdentityError: it holds another log.
            StoreWriteError: there is no room for it, or no right to write it.
        """
        if not path.exists() and path != _IN_MEMORY:
            _make(path, log_identity, views)
        db = connect(path)
        try:
            with _write_errors(path):
                _prepare(db, path, log_identity, views)
            lock_settings(db)
            return cls(path, db)
        except BaseException:
            db.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the file; DuckDB moves its write-ahead log into it."""
        self._spare.close()
        self._db.close()

    def cursor(self) -> duckdb.DuckDBPyConnection:
        """Return a connection of its own to the same store, for one thread at a time."""
        with self._spare_lock:
            return new_cursor(self._spare)

    @contextmanager
    def transaction(self) -> Iterator[duckdb.DuckDBPyConnection]:
        """Commit what is done inside, all of it or nothing.

        Raises:
            StoreWriteError: it could not be written. The store must be closed.
        """
        with _write_errors(self.path):
            self._db.begin()
            try:
                yield self._db
                self._db.commit()
            except BaseException:
                _rollback(self._db)
                raise

    def checkpoint(self) -> None:
        """Move everything committed into the file itself.

        Raises:
            StoreWriteError: there is no room.
        """
        with _write_errors(self.path):
            self._db.execute("CHECKPOINT")

    def positions(self) -> dict[str, int]:
        """Return where each source of the log is to be read on."""
        return read_positions(self._db)


def insert(db: duckdb.DuckDBPyConnection, table: str, rows: pa.Table) -> None:
    """Insert rows, whose columns are in the order of the table's, into ``base.{table}``."""
    if rows.num_rows:
        db.from_arrow(rows).insert_into(f"base.{table}")


def read_identity(db: duckdb.DuckDBPyConnection, path: Path, *, log_identity: str) -> str | None:
    """Return the digest of the views that a store has; ``None`` for an empty database.

    Raises:
        StoreVersionError: another release wrote it.
        StoreIdentityError: it holds another log.
    """
    if (
        db.execute("SELECT 1 FROM duckdb_tables() WHERE schema_name = 'base' AND table_name = 'meta'").fetchone()
        is None
    ):
        return None
    version, identity, views = db.execute(
        "SELECT schema_version, log_identity, views_sha256 FROM base.meta"
    ).fetchone() or (0, "", "")
    if version != SCHEMA_VERSION:
        raise StoreVersionError(path, version, SCHEMA_VERSION)
    if identity != log_identity:
        raise StoreIdentityError(path, identity, log_identity)
    return str(views)


def read_positions(db: duckdb.DuckDBPyConnection) -> dict[str, int]:
    """Return the positions of a store: source -> next offset."""
    return dict(db.execute("SELECT source, next_offset FROM base.positions").fetchall())


def passed(positions: Mapping[str, int], ends: Mapping[str, int]) -> bool:
    """Say whether a reader at ``positions`` has seen everything before ``ends``."""
    return all(positions.get(source, 0) >= end for source, end in ends.items())


def connect(path: Path, *, read_only: bool = False) -> duckdb.DuckDBPyConnection:
    """Return a connection to the database file at ``path``, whose settings are still to be locked.

    Raises:
        StoreCorruptError: DuckDB cannot open the file.
        StoreWriteError: there is no room for it, or no right to write it.
        StoreBusyError: another program has it open.
    """
    db = duckdb.connect(":memory:", config=dict(_SETTINGS))
    try:
        quoted = str(path).replace("'", "''")
        db.execute(f"ATTACH '{quoted}' AS {_DATABASE} {'(READ_ONLY)' if read_only else ''}")
        db.execute(f"USE {_DATABASE}")
    except duckdb.Error as error:
        db.close()
        raise _open_error(path, error) from error
    return db


def connect_memory() -> duckdb.DuckDBPyConnection:
    """Return a connection to an empty database in memory with a store's name, whose settings are still to be locked."""
    db = duckdb.connect(":memory:", config=dict(_SETTINGS))
    db.execute(f"ATTACH ':memory:' AS {_DATABASE}")
    db.execute(f"USE {_DATABASE}")
    return db


def lock_settings(db: duckdb.DuckDBPyConnection) -> None:
    """Let the instance read and write nothing but its own file, whatever a query asks, for the rest of its life."""
    db.execute("SET enable_external_access = false")
    db.execute("SET lock_configuration = true")


def new_cursor(db: duckdb.DuckDBPyConnection) -> duckdb.DuckDBPyConnection:
    """Return a connection of its own to the same instance, for one thread at a time."""
    cursor = db.cursor()
    cursor.execute(f"USE {_DATABASE}")  # a cursor does not inherit it
    return cursor


_IN_MEMORY = Path(":memory:")


def _open_error(path: Path, error: duckdb.Error) -> StoreError:
    text = str(error)
    if "Conflicting lock" in text:
        holder = re.search(r"PID (\d+)", text)
        return StoreBusyError(path.parent, int(holder[1]) if holder else None, f": it has {path.name} open in DuckDB")
    if isinstance(error, duckdb.IOException) and any(sign in text for sign in _CANNOT_WRITE):
        return StoreWriteError(path, text)
    return StoreCorruptError(path, text)


_CANNOT_WRITE = (
    "No space left",
    "Permission denied",
    "Read-only file system",
    "File too large",
    "No such file or directory",
)


@contextmanager
def _write_errors(path: Path) -> Iterator[None]:
    try:
        yield
    except (duckdb.IOException, duckdb.FatalException, duckdb.TransactionException) as error:
        raise StoreWriteError(path, str(error)) from error


def _rollback(db: duckdb.DuckDBPyConnection) -> None:
    try:
        db.rollback()
    except duckdb.Error:
        # A commit that failed has ended its transaction already; the first error is the one to report.
        return


def _make(path: Path, log_identity: str, views: Sequence[str]) -> None:
    """Make a store that has its name only when it is whole: half a file, of a full disk, could never be opened."""
    draft = path.with_name(f".{path.name}.new")
    for leftover in (draft, draft.with_name(f"{draft.name}.wal")):
        leftover.unlink(missing_ok=True)
    with _write_errors(path):
        db = connect(draft)
        try:
            _prepare(db, path, log_identity, views)
            db.execute("CHECKPOINT")
        finally:
            db.close()
    draft.rename(path)


def _prepare(db: duckdb.DuckDBPyConnection, path: Path, log_identity: str, views: Sequence[str]) -> None:
    digest = hashlib.sha256("\0".join(views).encode()).hexdigest()
    db.begin()
    known = read_identity(db, path, log_identity=log_identity)
    if known is None:
        db.execute(resources.files("collector").joinpath("schema.sql").read_text(encoding="utf-8"))
        db.execute("INSERT INTO base.meta VALUES (?, ?, '')", [log_identity, SCHEMA_VERSION])
    if known != digest:
        for (name,) in db.execute(
            "SELECT view_name FROM duckdb_views() WHERE database_name = ? AND schema_name = 'main' AND NOT internal",
            [_DATABASE],
        ).fetchall():
            db.execute(f'DROP VIEW "{name}"')
        for view in views:
            db.execute(view)
        db.execute("UPDATE base.meta SET views_sha256 = ?", [digest])
    db.commit()
