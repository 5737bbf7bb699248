"""The log as two ports, and the in-memory log that is their reference.

Adapters (memory, local, Kafka) pass one shared contract suite: ``tests/contract``.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from build_events import codec
from build_events.envelope import Recorded

Positions = Mapping[str, int]  # source -> where the next record begins


@dataclass(frozen=True, slots=True)
class Reject:
    """Bytes of the log that hold no event: they go to dead letters with their position."""

    offset: int
    payload: bytes
    reason: str  # bad_checksum, torn_tail, not_json, ...
    # Whose completeness it counts against, where the place in the log tells.
    stream_id: str | None = None
    run_id: str | None = None
    route: str | None = None


@dataclass(frozen=True, slots=True)
class Chunk:
    """Consecutive records of one source: a segment file, or a topic's partition.

    ``payloads`` are CloudEvents JSON objects, not yet checked against the contract; ``offsets`` say
    where each begins. Events that one record of the log holds together share its offset and are never
    cut apart. ``next_offset`` is the position after all of it, rejects included.
    """

    source: str
    payloads: Sequence[bytes]
    offsets: Sequence[int]
    next_offset: int
    rejects: Sequence[Reject] = ()
    # Whose records they are, where the place in the log tells: a record may be too bad to say so itself.
    stream_id: str | None = None
    run_id: str | None = None
    route: str | None = None


class EventWriter(Protocol):
    """Stores events."""

    def append(self, records: Sequence[Recorded]) -> None:
        """Return once all are stored durably, in order. Safe to repeat.

        Raises:
            LogUnavailableError: not all were stored; what was is undefined until read.
            EventTooLargeError: one of them fits into no record; what was stored is undefined, too.
        """
        ...


class EventReader(Protocol):
    """Reads events in the order of each source; nothing is promised between sources."""

    def identity(self) -> str:
        """Return the log's identity: a store refuses positions of another log."""
        ...

    def read(self, after: Positions, *, max_bytes: int) -> Iterator[Chunk]:
        """Yield what stands in the log after these positions, about ``max_bytes`` a chunk at most.

        A source missing from ``after`` is read from its beginning. Ends when the log is read to the
        end it had when ``read`` came to it; never waits.
        """
        ...

    def ends(self) -> dict[str, int]:
        """Return the end of each source: a reader at these positions has seen all of it."""
        ...


@dataclass
class InMemoryEventLog:
    """The reference adapter: one source, whose offset is an index."""

    log_id: str = "memory"
    _payloads: list[bytes] = field(default_factory=list)

    SOURCE = "memory"

    def append(self, records: Sequence[Recorded]) -> None:
        """Store the records."""
        self._payloads.extend(codec.encode_for_log(record) for record in records)

    def identity(self) -> str:
        """Return the identity given at construction."""
        return self.log_id

    def read(self, after: Positions, *, max_bytes: int) -> Iterator[Chunk]:
        """Yield chunks of at most ``max_bytes``, and of at least one record."""
        start, end = after.get(self.SOURCE, 0), len(self._payloads)
        while start < end:
            stop, size = start, 0
            while stop < end and (stop == start or size + len(self._payloads[stop]) <= max_bytes):
                size += len(self._payloads[stop])
                stop += 1
            yield Chunk(self.SOURCE, self._payloads[start:stop], range(start, stop), stop)
            start = stop

    def ends(self) -> dict[str, int]:
        """Return the number of records."""
        return {self.SOURCE: len(self._payloads)}
