"""Reading the store, whoever holds it: by taking the lock, by asking the holder, or from its snapshot."""

import time
from collections.abc import Callable, Sequence
from pathlib import Path
from types import TracebackType
from typing import Protocol, Self

import pyarrow as pa

from build_events.log import EventReader, Positions
from collector import snapshots
from collector.client import HolderGoneError, RemoteAnswers
from collector.errors import QueryRefusedError, StoreBusyError
from collector.guard import Limits, Params, run
from collector.ingest import Ingester
from collector.lock import StoreLock, read_holder
from collector.socket_path import socket_path
from collector.store import Store, new_cursor, passed, read_positions

STORE_FILE = "store.duckdb"
_RETRY_FOR_S = 5.0
_RETRY_EVERY_S = 0.05
_HOLDERS = 3  # that one query may outlive: it may be what ends them


class _Answers(Protocol):
    """One way to answer queries."""

    behind: bool
    snapshot_age_s: float | None

    def query(self, sql: str, params: Params) -> pa.Table: ...

    def close(self) -> None: ...


class _Local:
    """This process holds the store, and has taken in the log."""

    behind = False
    snapshot_age_s: float | None = None

    def __init__(self, lock: StoreLock, store: Store, limits: Limits) -> None:
        self._lock = lock
        self._store = store
        self._limits = limits

    def query(self, sql: str, params: Params) -> pa.Table:
        return run(self._store.cursor(), sql, params, self._limits)

    def close(self) -> None:
        try:
            self._store.close()
        finally:
            self._lock.release()


class _Snapshot:
    """A copy that the holder published some time ago."""

    def __init__(self, home: Path, log_identity: str, ends: Positions, age_s: float, limits: Limits) -> None:
        self._db = snapshots.open_snapshot(home, log_identity=log_identity)
        self._limits = limits
        self.snapshot_age_s: float | None = age_s
        self.behind = not passed(read_positions(self._db), ends)

    def query(self, sql: str, params: Params) -> pa.Table:
        return run(new_cursor(self._db), sql, params, self._limits)

    def close(self) -> None:
        self._db.close()


class Reader:
    """Answers read-only SQL over the store's tables and views. A context manager; see ``open_reader``."""

    def __init__(self, answers: _Answers, open_answers: Callable[[], _Answers]) -> None:
        """Wrap what answers now, and how to find what answers next; use ``open_reader`` instead."""
        self._answers = answers
        self._open_answers = open_answers
        self._behind = answers.behind

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._answers.close()

    @property
    def behind(self) -> bool:
        """Whether an answer so far may lack events that stood in the log when the reader was opened."""
        return self._behind

    @property
    def snapshot_age_s(self) -> float | None:
        """How old the snapshot is that answers; ``None`` where the store itself does."""
        return self._answers.snapshot_age_s

    def query(self, sql: str, params: Params = ()) -> pa.Table:
        """Return the answer to one SELECT or EXPLAIN.

        Raises:
            QueryRefusedError: it is anything else, or the database cannot run it.
            QueryLimitError: it has too many rows, or takes too long.
            StoreBusyError: the holder went away, and its successor does not answer.
            HolderGoneError: one holder after the other went away over this query.
        """
        _check_params(params)
        for left in reversed(range(_HOLDERS)):
            try:
                table = self._answers.query(sql, params)
                break
            except HolderGoneError:
                if not left:
                    raise
                self._answers.close()
                self._answers = self._open_answers()
        self._behind = self._behind or self._answers.behind
        return table


def open_reader(
    home: Path,
    log: EventReader,
    views: Sequence[str],
    *,
    runtime_dir: Path,
    before_ingest: Callable[[], None] = lambda: None,
    limits: Limits | None = None,
) -> Reader:
    """Return a reader that has seen the log as it is now, or says that it may not have.

    Nobody holds the store: take it, call ``before_ingest``, take in the log. Somebody holds it: ask it
    over the socket that it names, or that lies in ``runtime_dir``, the user's runtime folder or the
    temporary one. It does not answer for five seconds: read its newest snapshot.

    Raises:
        StoreBusyError: the store is held, and there is neither an answer nor a snapshot.
        StoreError: the store, or the snapshot, cannot be used; the message says why and what to do.
    """
    ends = log.ends()
    chosen = limits or Limits()

    def open_answers() -> _Answers:
        deadline = time.monotonic() + _RETRY_FOR_S
        while True:
            lock = StoreLock.try_acquire(home)
            if lock is not None:
                return _take_in(lock, log, views, before_ingest, chosen)
            holder = read_holder(home)
            socket = holder.socket or socket_path(home, runtime_dir)
            if socket.exists():
                try:
                    return RemoteAnswers(socket, ends, chosen.seconds)
                except HolderGoneError:
                    pass  # it may be starting or ending: the next round sees what became of it
            if time.monotonic() > deadline:
                break
            time.sleep(_RETRY_EVERY_S)
        age_s = snapshots.age_s(home)
        if age_s is None:
            raise StoreBusyError(home, holder.pid, " and answers no queries; there is no snapshot of it yet")
        return _Snapshot(home, log.identity(), ends, age_s, chosen)

    return Reader(open_answers(), open_answers)


def _check_params(params: Params) -> None:
    """Refuse what does not travel, so that a query works the same whoever answers it."""
    for value in params:
        for item in value if isinstance(value, list) else [value]:
            if not (item is None or isinstance(item, str | int | float)):
                msg = f"parameter {item!r}: give texts, numbers, booleans or nulls; SQL casts them, e.g. ?::TIMESTAMP."
                raise QueryRefusedError(msg)


def _take_in(
    lock: StoreLock, log: EventReader, views: Sequence[str], before_ingest: Callable[[], None], limits: Limits
) -> _Answers:
    try:
        store = Store.open(lock.home / STORE_FILE, log_identity=log.identity(), views=views)
        try:
            before_ingest()
            with Ingester(log, store) as ingester:
                ingester.ingest()
            return _Local(lock, store, limits)
        except BaseException:
            store.close()
            raise
    except BaseException:
        lock.release()
        raise
