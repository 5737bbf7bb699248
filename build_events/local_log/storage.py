"""Folders: what is in one, and what makes a change of one durable."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from build_events.errors import LogCorruptError


def sync_folder(folder: str | Path) -> None:
    """Return once the folder's entries are durable. A file's own fsync does not promise that."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def names(path: str | Path) -> list[str]:
    """Return the names in a folder, in order; a folder that does not exist holds none."""
    try:
        with os.scandir(path) as entries:
            return sorted(entry.name for entry in entries)
    except (FileNotFoundError, NotADirectoryError):
        return []


@contextmanager
def readable(folder: Path) -> Iterator[None]:
    """Turn what the system says of a log that cannot be read into ``LogCorruptError``."""
    try:
        yield
    except OSError as error:
        raise LogCorruptError(
            f"{error.filename or folder}: {error.strerror}. Make the log readable for this user, or restore it."
        ) from error
