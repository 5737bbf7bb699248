"""One store per partition of a log, each in a folder of the home that is made like a home itself.

``partitions/LOG.NNNN/`` holds ``store.duckdb``, ``store.lock`` and ``snapshot.duckdb``: whoever holds the
lock writes the store, in whatever process, and the lock alone keeps a second writer out.
"""

import urllib.parse
from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

from build_events.log import EventReader

FOLDER = "partitions"


class PartitionedLog(EventReader, Protocol):
    """A log that can be read partition by partition."""

    def partitions(self) -> Sequence[int]:
        """Return the numbers of the partitions."""
        ...

    def partition(self, number: int) -> EventReader:
        """Return one partition as a log of its own, with an identity of its own."""
        ...


def slug(log_identity: str) -> str:
    """Return a log's identity as one file name."""
    return urllib.parse.quote(log_identity.removeprefix("kafka:").replace("/", "."), safe="")


def partition_folder(home: Path, log_identity: str, number: int) -> Path:
    """Return where the store of a partition lies."""
    return home / FOLDER / f"{slug(log_identity)}.{number:04d}"


def has_partitions(home: Path, log_identity: str) -> bool:
    """Say whether this log was ever collected by partition into this home."""
    return any((home / FOLDER).glob(f"{slug(log_identity)}.*"))
