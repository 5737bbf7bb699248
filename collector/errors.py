"""Errors of the store and its readers: each says what is wrong, where, and what to do next."""

from pathlib import Path

from build_events.errors import EngineTrailError


class StoreError(EngineTrailError):
    """Base of everything that can go wrong with the store."""


class StoreCorruptError(StoreError):
    """The file holds no store that this release can read."""

    def __init__(self, path: Path, why: str) -> None:
        self.path = path
        super().__init__(
            f"{path} cannot be read as a store: {why}. The event log holds everything: move the file away and run "
            f"`enginetrail collect`, or rebuild beside it with `enginetrail collect --replay NEW_FILE`."
        )


class StoreVersionError(StoreError):
    """The store was written by a release with other tables."""

    def __init__(self, path: Path, found: int, expected: int) -> None:
        self.path, self.found, self.expected = path, found, expected
        super().__init__(
            f"{path} has tables of version {found}, this release reads version {expected}. Use the release that wrote "
            f"it, or rebuild it from the event log with `enginetrail collect --replay NEW_FILE`."
        )


class StoreIdentityError(StoreError):
    """The store holds another log: its positions mean nothing here."""

    def __init__(self, path: Path, found: str, expected: str) -> None:
        self.path, self.found, self.expected = path, found, expected
        super().__init__(
            f"{path} holds events of log {found}, not of log {expected}. Give the home that belongs to this log, or "
            f"collect this log into a new store with `enginetrail collect --replay NEW_FILE`."
        )


class StoreExistsError(StoreError):
    """A replay never writes into a file that is there already."""

    def __init__(self, path: Path) -> None:
        self.path = path
        super().__init__(
            f"{path} exists already, and a replay makes a new store: name another file or remove this one."
        )


class StoreWriteError(StoreError):
    """The store could not be written; the last commit that returned still stands."""

    def __init__(self, path: Path, why: str) -> None:
        self.path = path
        super().__init__(
            f"{path} cannot be written: {why}. Nothing of the event log is lost: make room on that file system, or the "
            f"folder writable, and run the command again; it goes on from the last committed position."
        )


class StoreBusyError(StoreError):
    """Another process holds the store."""

    def __init__(self, home: Path, pid: int | None, what: str) -> None:
        self.home, self.pid = home, pid
        holder = f"process {pid}" if pid is not None else "another process"
        super().__init__(f"{home}: {holder} holds the store{what}.")


class SocketError(StoreError):
    """The query socket cannot be made where it must be."""


class SnapshotError(StoreError):
    """A snapshot of the store could not be published."""


class QueryRefusedError(StoreError):
    """The guard of read-only SQL refused a statement, or the database could not run it."""


class QueryLimitError(StoreError):
    """A query went over its row or time limit."""
