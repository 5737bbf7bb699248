"""Streams whose writer is gone: found by the lock files that exist, never by looking at segments.

Only a process that uses the same home may judge by locks. Order matters: open the lock, take it
without waiting, compare its file with the path's, and only then, holding it, read the stream to its
end. Reading first and testing the lock after called 144 of 400 healthy streams lost.
"""

import contextlib
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from build_events import codec
from build_events.envelope import Recorded, StreamRole
from build_events.errors import LogUnavailableError, MalformedEventError
from build_events.events import StreamClosed
from build_events.local_log import locks
from build_events.local_log.layout import KINDS, LOCK_SUFFIX, StreamPlace, parse_segment, quote, run_stream
from build_events.local_log.segment_reader import whole_lines_of
from build_events.local_log.storage import names, readable


@dataclass(frozen=True, slots=True)
class AbandonedStream:
    """A stream without a living writer that was never closed. Its lock is held for the reader of this."""

    place: StreamPlace
    records: list[Recorded]  # every valid one, in the order of the segments; duplicates included

    @property
    def stream_id(self) -> str:
        """The stream's id."""
        return self.place.stream_id

    @property
    def run_id(self) -> str | None:
        """The run that the stream is about, ``None`` for a route stream."""
        return self.place.run_id

    @property
    def route(self) -> str | None:
        """The route that the stream is about, ``None`` for a stream of a run."""
        return self.place.route

    @property
    def role(self) -> StreamRole | None:
        """The stream's role, ``None`` where it holds no valid event."""
        return self.records[0].stream.role if self.records else None

    @property
    def closed(self) -> bool:
        """Whether the stream's closing event is there."""
        return any(isinstance(record.event, StreamClosed) for record in self.records)

    def remove_lock(self) -> None:
        """Say that the stream's end is declared: call it once the declaration is durable.

        Raises:
            LogUnavailableError: the file cannot be removed; the next start finds the stream again.
        """
        try:
            Path(self.place.lock).unlink()
        except OSError as error:
            raise LogUnavailableError(
                f"{self.place.lock}: {error.strerror}. Remove it by hand, or make its folder writable."
            ) from error


def unlocked_streams(folder: Path) -> Iterator[AbandonedStream]:
    """Yield each stream of a log folder whose writer is gone and that was never closed.

    The lock is held while the loop's body runs, so of several processes at once only one gets a
    stream; it is yielded again to the next caller until ``remove_lock``. A closed stream's leftover
    lock is removed on the way.

    Raises:
        LogCorruptError: the folder or a stream in it cannot be read.
        LogUnavailableError: a leftover lock cannot be removed.
    """
    root = os.fspath(folder)
    with readable(folder):
        for kind in KINDS:
            for key in names(f"{root}/{kind}"):
                for name in names(f"{root}/{kind}/{key}"):
                    if name.endswith(LOCK_SUFFIX):
                        yield from _if_abandoned(StreamPlace(root, kind, key, name[: -len(LOCK_SUFFIX)]))


def is_locked(folder: Path, run_id: str, stream_id: str) -> bool:
    """Say whether the stream's writer lives, or somebody is declaring its end at this moment."""
    return locks.is_held(run_stream(folder, run_id, stream_id).lock)


def run_streams(folder: Path, run_id: str) -> list[str]:
    """Return the ids of a run's streams that have a segment, in order.

    Raises:
        LogCorruptError: the log cannot be read.
    """
    with readable(folder):
        return [place.stream_id for place in _places(folder, run_id)]


def read_run(folder: Path, run_id: str) -> list[Recorded]:
    """Return every valid record of a run, stream by stream, as far as it is written now.

    Raises:
        LogCorruptError: the log cannot be read.
    """
    with readable(folder):
        return [record for place in _places(folder, run_id) for record in _records(place)]


def _places(folder: Path, run_id: str) -> list[StreamPlace]:
    key = quote(run_id)
    found = map(parse_segment, names(f"{os.fspath(folder)}/runs/{key}"))
    streams = sorted({segment[0] for segment in found if segment is not None})
    return [StreamPlace(os.fspath(folder), "runs", key, name) for name in streams]


def _if_abandoned(place: StreamPlace) -> Iterator[AbandonedStream]:
    lock = locks.take_abandoned(place.lock)
    if lock is None:
        return
    try:
        stream = AbandonedStream(place, _records(place))
        if stream.closed:
            stream.remove_lock()
        else:
            yield stream
    finally:
        os.close(lock)


def _records(place: StreamPlace) -> list[Recorded]:
    """Return the valid records of all segments; what holds no event is for the collector to record."""
    records: list[Recorded] = []
    for number in _segment_numbers(place):
        lines = whole_lines_of(place, number)
        for payload in lines.payloads if lines else []:
            with contextlib.suppress(MalformedEventError):
                records.append(codec.decode(payload))
    return records


def _segment_numbers(place: StreamPlace) -> list[int]:
    found = map(parse_segment, names(place.folder))
    return sorted(segment[1] for segment in found if segment is not None and segment[0] == place.name)
