"""Deletes what is handed on: a run's or a route's streams together, once nobody needs any of them.

Together, because a start reads them to judge a run: while one stream has a lock file, its end may
still have to be declared, and what declares it may stand in another one (``process.exited``).
"""

import contextlib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from build_events.local_log.cursor import DrainLock, Position
from build_events.local_log.layout import LOCK_SUFFIX, StreamPlace
from build_events.local_log.listing import Segment
from build_events.local_log.storage import names
from builder_agent.supervisor_lock import is_supervised

Streams = Mapping[StreamPlace, Sequence[tuple[int, Segment]]]


def remove_drained(folder: Path, streams: Streams, position_of: Callable[[StreamPlace], Position]) -> list[StreamPlace]:
    """Delete the streams of every run and route that are acknowledged whole, to ``position_of``; return them.

    Raises:
        OSError: a file cannot be read or removed.
    """
    subjects: dict[str, list[StreamPlace]] = {}
    for place in streams:
        subjects.setdefault(place.folder, []).append(place)
    removed: list[StreamPlace] = []
    for places in subjects.values():
        run_id = places[0].run_id
        if run_id is not None and is_supervised(folder, run_id):
            continue
        if all(_is_drained(streams[place], position_of(place)) for place in places) and not _has_locks(places[0]):
            removed += _remove(places, streams, position_of)
    return removed


def _remove(
    places: Sequence[StreamPlace], streams: Streams, position_of: Callable[[StreamPlace], Position]
) -> list[StreamPlace]:
    locks: list[DrainLock] = []
    try:
        for place in places:
            lock = DrainLock.take(place)
            if lock is None:
                return []
            locks.append(lock)
        # Again, now that nobody else drains: another process may have removed and begun them anew.
        if _has_locks(places[0]) or not all(_is_drained(streams[place], position_of(place)) for place in places):
            return []
        for place in places:
            for _, segment in streams[place]:
                Path(segment.path).unlink()
        for lock in locks:
            lock.forget()
    finally:
        for lock in locks:
            lock.release()
    with contextlib.suppress(OSError):  # a stream has begun there
        Path(places[0].folder).rmdir()
    return list(places)


def _has_locks(place: StreamPlace) -> bool:
    return any(name.endswith(LOCK_SUFFIX) for name in names(place.folder))


def _is_drained(segments: Sequence[tuple[int, Segment]], position: Position) -> bool:
    try:
        sizes = [(number, Path(segment.path).stat().st_size) for number, segment in segments]
    except FileNotFoundError:
        return False
    # A segment that a failed append left empty has nothing to acknowledge.
    return all(Position(number, size) <= position or size == 0 for number, size in sizes)
