"""Who may open the store: one process at a time, by flock on ``store.lock`` beside it.

DuckDB's own lock is not enough: it is dropped when any descriptor of the file is closed in the process.
"""

import contextlib
import fcntl
import functools
import json
import os
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

from collector.errors import StoreWriteError

LOCK_FILE = "store.lock"
HOLDER_FILE = "collector.json"

_descriptors: set[int] = set()


@dataclass(frozen=True, slots=True)
class Holder:
    """What the holder of a store says of itself."""

    pid: int | None = None  # null where it has not said so yet
    socket: Path | None = None  # where it answers queries; null where it does not


class StoreLock:
    """The lock on a home's store, held until released."""

    def __init__(self, home: Path, descriptor: int) -> None:
        """Wrap a locked descriptor; use ``try_acquire`` instead."""
        self.home = home
        self._descriptor = descriptor

    @classmethod
    def try_acquire(cls, home: Path) -> Self | None:
        """Return the lock, or ``None`` where another process holds it. Never waits.

        Raises:
            StoreWriteError: the lock file cannot be written.
        """
        path = home / LOCK_FILE
        try:
            home.mkdir(parents=True, exist_ok=True)
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise StoreWriteError(path, error.strerror or str(error)) from error
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(descriptor)
            return None
        _close_in_forked_children()
        _descriptors.add(descriptor)
        lock = cls(home, descriptor)
        # On a full disk others do not learn who the holder is, but it can still read.
        with contextlib.suppress(StoreWriteError):
            lock.announce(None)
        return lock

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.release()

    def announce(self, socket: Path | None) -> None:
        """Tell others who holds the store, and where it answers queries.

        Raises:
            StoreWriteError: the file cannot be written.
        """
        path = self.home / HOLDER_FILE
        temporary = path.with_name(f".{HOLDER_FILE}.{os.getpid()}")
        document = {"pid": os.getpid(), "socket": None if socket is None else str(socket)}
        try:
            temporary.write_text(json.dumps(document), encoding="utf-8")
            temporary.replace(path)
        except OSError as error:
            temporary.unlink(missing_ok=True)
            raise StoreWriteError(path, error.strerror or str(error)) from error

    def release(self) -> None:
        """Let others have the store. The lock file stays: removing it would let two processes lock two files."""
        (self.home / HOLDER_FILE).unlink(missing_ok=True)
        _descriptors.discard(self._descriptor)
        fcntl.flock(self._descriptor, fcntl.LOCK_UN)  # also for a child that was forked a moment ago
        os.close(self._descriptor)


def read_holder(home: Path) -> Holder:
    """Return what the holder says; nothing known where it has not written it yet."""
    try:
        document = json.loads((home / HOLDER_FILE).read_text(encoding="utf-8"))
        socket = document["socket"]
        return Holder(int(document["pid"]), None if socket is None else Path(socket))
    except (OSError, ValueError, KeyError, TypeError):
        return Holder()


@functools.cache
def _close_in_forked_children() -> None:
    os.register_at_fork(after_in_child=_close_all)


def _close_all() -> None:
    # A lock belongs to the open file, which a forked child shares: it would outlive its owner there.
    while _descriptors:
        os.close(_descriptors.pop())
