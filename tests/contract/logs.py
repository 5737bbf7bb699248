"""The event logs that the contract suite runs over. A new adapter joins by one entry in ``LOGS``."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from build_events.local_log import LocalLog
from build_events.log import EventReader, EventWriter, InMemoryEventLog


class LogUnderTest(Protocol):
    """One empty log at first; every call opens it anew, as another process would."""

    def writer(self) -> EventWriter:
        """Return a writer to the log."""
        ...

    def reader(self) -> EventReader:
        """Return a reader of the log."""
        ...


@dataclass(frozen=True)
class Memory:
    """The in-memory log; it lives in one process, so opening gives the same object."""

    log: InMemoryEventLog

    def writer(self) -> EventWriter:
        """Return the log."""
        return self.log

    def reader(self) -> EventReader:
        """Return the log."""
        return self.log


@dataclass(frozen=True)
class Local:
    """The local log in a folder, with segments short enough that streams roll over."""

    folder: Path
    segment_bytes: int

    def writer(self) -> EventWriter:
        """Return a log that makes the folder where it is missing."""
        return LocalLog.create(self.folder, segment_bytes=self.segment_bytes)

    def reader(self) -> EventReader:
        """Return a log that was never written through."""
        return LocalLog(self.folder)


LOGS: dict[str, Callable[[Path], LogUnderTest]] = {
    "memory": lambda _: Memory(InMemoryEventLog()),
    "local": lambda folder: Local(folder / "log", segment_bytes=64 << 20),
    "local, short segments": lambda folder: Local(folder / "log", segment_bytes=2_000),
}
