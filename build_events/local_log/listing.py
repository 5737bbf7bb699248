"""Which segments a log folder holds, without opening any.

A folder of a run or route is *settled* when none of its streams has a lock file and nothing in it
changed lately: no writer is left, so its sizes are final and it is listed only once. This keeps a
poll of a log with thousands of finished runs to one ``stat`` per run.
"""

import os
import time
from collections.abc import Iterator
from dataclasses import dataclass

from build_events.clock import NS_PER_S
from build_events.local_log.layout import KINDS, LOCK_SUFFIX, Kind, StreamPlace, parse_segment

# A folder's change time has the grain of the kernel's tick (at most 10 ms). After this long, an equal
# change time means an equal folder.
SETTLING_NS = 2 * NS_PER_S


@dataclass(frozen=True, slots=True)
class Segment:
    """A segment file, as a listing found it."""

    place: StreamPlace
    source: str
    path: str
    last: bool  # no later segment of its stream was listed: only this one can still grow
    locked: bool  # its stream had a lock file when the segment was there
    size: int | None  # bytes; null where a writer may be left


class Listing:
    """Lists a log folder again and again, cheaply."""

    def __init__(self, root: str) -> None:
        self._root = root
        self._settled: dict[str, tuple[int, list[Segment]]] = {}  # folder -> change time, segments

    def segments(self) -> Iterator[Segment]:
        """Yield every segment: runs before routes, then by key, stream and number."""
        for kind in KINDS:
            for entry in _entries(f"{self._root}/{kind}"):
                yield from self._folder(kind, entry)

    def _folder(self, kind: Kind, entry: os.DirEntry[str]) -> list[Segment]:
        try:
            changed_ns = entry.stat().st_mtime_ns
        except FileNotFoundError:
            return []
        known = self._settled.get(entry.path)
        if known is not None and known[0] == changed_ns:
            return known[1]
        quiet = time.time_ns() - changed_ns > SETTLING_NS
        segments, locked = _list_folder(self._root, kind, entry, quiet=quiet)
        if quiet and not locked:
            self._settled[entry.path] = (changed_ns, segments)
        return segments


def _list_folder(root: str, kind: Kind, folder: os.DirEntry[str], *, quiet: bool) -> tuple[list[Segment], bool]:
    entries = _entries(folder.path)
    # A lock file appears before its first segment, but one pass over a changing folder may miss it
    # and still meet the segment. A second pass cannot miss what was there before it began.
    names = [entry.name for entry in (entries if quiet else _entries(folder.path))]
    locked = {name[: -len(LOCK_SUFFIX)] for name in names if name.endswith(LOCK_SUFFIX)}
    found = sorted((*parsed, entry) for entry in entries if (parsed := parse_segment(entry.name)) is not None)
    last = {name: number for name, number, _ in found}
    segments = []
    for name, number, entry in found:
        place = StreamPlace(root, kind, folder.name, name)
        size = entry.stat().st_size if quiet and not locked else None
        source = place.source(number)
        segments.append(Segment(place, source, entry.path, last[name] == number, name in locked, size))
    return segments, bool(locked)


def _entries(path: str) -> list[os.DirEntry[str]]:
    """Return what is in a folder, in order; a folder that does not exist holds nothing."""
    try:
        with os.scandir(path) as entries:
            return sorted(entries, key=lambda entry: entry.name)
    except (FileNotFoundError, NotADirectoryError):
        return []
