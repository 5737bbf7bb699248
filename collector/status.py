"""How a collector is doing: written beside its store every second, read by anybody."""

import contextlib
import json
import os
import time
from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

from build_events.log import Chunk, EventReader, Positions
from collector.store import Store

STATUS_FILE = "status.json"
_EVERY_S = 1.0
_WINDOW_S = 60.0


@dataclass(frozen=True, slots=True)
class CollectorStatus:
    """What a following collector says of itself."""

    pid: int
    events: int  # in the store
    events_per_s: float  # over the last minute, or since it started
    at_end: bool  # it has read the log to its end; false also while the log is away
    written_at: float  # seconds since 1970 UTC


class StatusWriter:
    """Writes the status of one store, at most once a second."""

    def __init__(self, folder: Path) -> None:
        """Take the store's folder."""
        self._path = folder / STATUS_FILE
        self._seen: deque[tuple[float, int]] = deque()

    def note(self, store: Store, *, at_end: bool) -> None:
        """Write the status if it is time. A status that cannot be written is none: the store tells of a full disk."""
        now = time.monotonic()
        if self._seen and now - self._seen[-1][0] < _EVERY_S:
            return
        cursor = store.cursor()
        try:
            (events,) = cursor.execute("SELECT count(*) FROM base.events").fetchone() or (0,)
        finally:
            cursor.close()
        self._seen.append((now, events))
        while now - self._seen[0][0] > _WINDOW_S:
            self._seen.popleft()
        began, first = self._seen[0]
        rate = (events - first) / (now - began) if now > began else 0.0
        status = CollectorStatus(os.getpid(), events, round(rate, 1), at_end, time.time())
        draft = self._path.with_name(f".{STATUS_FILE}.{os.getpid()}")
        with contextlib.suppress(OSError):
            draft.write_text(json.dumps(asdict(status)), encoding="utf-8")
            draft.replace(self._path)

    def close(self) -> None:
        """Take the status away: the collector ends. One that another collector wrote meanwhile stays."""
        status = read_status(self._path.parent)
        if status is None or status.pid != os.getpid():
            return
        with contextlib.suppress(OSError):
            self._path.unlink(missing_ok=True)


def read_status(folder: Path) -> CollectorStatus | None:
    """Return what the collector of a store said last; ``None`` where none runs, or was killed."""
    try:
        status = CollectorStatus(**json.loads((folder / STATUS_FILE).read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError):
        return None
    return status if _is_alive(status.pid) else None


def lag(positions: Mapping[str, int], ends: Mapping[str, int]) -> dict[str, int]:
    """Return how far each source is behind its end, in the log's own unit: records of Kafka, bytes of a local log."""
    return {source: max(0, end - positions.get(source, 0)) for source, end in ends.items()}


class StillLog:
    """A log as a store knows it, in which nothing is new: for looking without taking in."""

    def __init__(self, log: EventReader) -> None:
        """Take the log whose identity counts."""
        self._log = log

    def identity(self) -> str:
        """Return the log's identity."""
        return self._log.identity()

    def read(self, after: Positions, *, max_bytes: int) -> Iterator[Chunk]:
        """Yield nothing."""
        del after, max_bytes
        return iter(())

    def ends(self) -> dict[str, int]:
        """Return no ends: whatever a store holds is enough."""
        return {}


def _is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
