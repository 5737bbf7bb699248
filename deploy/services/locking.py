"""One user of a folder at a time, among processes."""

import fcntl
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

Say = Callable[[str], None]  # tells a person what takes long; text without a line end


@contextmanager
def exclusive(path: Path, say: Say) -> Iterator[None]:
    """Hold a lock file for a ``with`` block, waiting for whoever holds it; the holder may remove it.

    The kernel frees a dead holder's lock.
    """
    descriptor = _locked(path, say)
    try:
        yield
    finally:
        os.close(descriptor)


def _locked(path: Path, say: Say) -> int:
    while True:
        path.parent.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say(f"waiting for another command, which holds {path}")
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        if _is_at(descriptor, path):
            return descriptor
        os.close(descriptor)  # the holder removed the file: the lock of that name is another file's by now


def _is_at(descriptor: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(descriptor), path.stat())
    except FileNotFoundError:
        return False
