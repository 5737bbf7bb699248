"""Reads one segment: whole valid lines, bad lines, and the unfinished end."""

import os
from collections.abc import Iterator
from pathlib import Path

from build_events.local_log import locks
from build_events.local_log.layout import StreamPlace
from build_events.local_log.lines import TAIL_BYTES, Lines, reject, split
from build_events.local_log.listing import Segment
from build_events.log import Chunk

BACKWARD_BYTES = 1 << 16  # to find the last line end


def chunks(segment: Segment, start: int, *, max_bytes: int) -> Iterator[Chunk]:
    """Yield what stands in a segment after byte ``start``.

    A start behind the end yields nothing: after a power cut a file may be shorter than what was read
    of it, and such a stream has no writer any more.
    """
    try:
        descriptor = os.open(segment.path, os.O_RDONLY)
    except FileNotFoundError:
        return
    try:
        position, end = start, os.fstat(descriptor).st_size
        while position < end:
            data = _whole_lines(descriptor, position, end, max_bytes)
            if not data:
                yield from _unfinished(segment, descriptor, position)
                return
            yield _chunk(segment, split(data, position, segment.place), position + len(data))
            position += len(data)
    finally:
        os.close(descriptor)


def end_of(segment: Segment) -> int:
    """Return the position that a reader reaches: the end, or the last line end of a growing segment."""
    if segment.size is not None:
        return segment.size
    try:
        descriptor = os.open(segment.path, os.O_RDONLY)
    except FileNotFoundError:
        return 0
    try:
        size = os.fstat(descriptor).st_size
        if not segment.locked or not segment.last:
            return size
        whole = _last_line_end(descriptor, size)
        if whole == size or locks.is_held(segment.place.lock):
            return whole
        return os.fstat(descriptor).st_size
    finally:
        os.close(descriptor)


def whole_lines_of(place: StreamPlace, number: int) -> Lines | None:
    """Return the whole lines of a segment, ``None`` where there is no such segment."""
    try:
        data = Path(place.segment(number)).read_bytes()
    except FileNotFoundError:
        return None
    return split(data[: data.rfind(b"\n") + 1], 0, place)


def _whole_lines(descriptor: int, position: int, end: int, max_bytes: int) -> bytes:
    """Return lines of together at most ``max_bytes``, or one longer line, or nothing before a line end."""
    # The budget is for payloads, which are shorter than their lines.
    wanted = max_bytes + TAIL_BYTES
    data = _read(descriptor, position, min(wanted, end - position))
    cut = data.rfind(b"\n") + 1
    while not cut and len(data) < end - position:
        wanted *= 2
        data = _read(descriptor, position, min(wanted, end - position))
        cut = data.find(b"\n") + 1
    return data[:cut]


def _unfinished(segment: Segment, descriptor: int, position: int) -> Iterator[Chunk]:
    """Yield a segment's last piece, once no writer can finish it."""
    # First the lock, then the end: the writer may have gone on, and ended, since the last read.
    if segment.last and locks.is_held(segment.place.lock):
        return
    data = _read(descriptor, position, os.fstat(descriptor).st_size - position)
    cut = data.rfind(b"\n") + 1
    found = split(data[:cut], position, segment.place)
    if data[cut:]:
        found.rejects.append(reject(position + cut, data[cut:], "torn_tail", segment.place))
    yield _chunk(segment, found, position + len(data))


def _chunk(segment: Segment, found: Lines, next_offset: int) -> Chunk:
    place = segment.place
    return Chunk(
        segment.source,
        found.payloads,
        found.offsets,
        next_offset,
        found.rejects,
        stream_id=place.stream_id,
        run_id=place.run_id,
        route=place.route,
    )


def _last_line_end(descriptor: int, size: int) -> int:
    end = size
    while end > 0:
        begin = max(0, end - BACKWARD_BYTES)
        cut = _read(descriptor, begin, end - begin).rfind(b"\n") + 1
        if cut:
            return begin + cut
        end = begin
    return 0


def _read(descriptor: int, position: int, length: int) -> bytes:
    data = os.pread(descriptor, length, position)
    while len(data) < length:  # one call reads at most 2 GiB, and a signal may cut it short
        more = os.pread(descriptor, length - len(data), position + len(data))
        if not more:
            break
        data += more
    return data
