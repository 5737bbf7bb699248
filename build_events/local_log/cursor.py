"""How far a stream's segments have been handed on to another log, and the lock of whoever does it.

A cursor that is missing, torn or of another log means the stream's beginning: to send again is safe,
to leave out is not. So it needs no fsync.
"""

import contextlib
import json
import os
from dataclasses import dataclass
from pathlib import Path

from build_events.local_log import locks
from build_events.local_log.layout import StreamPlace


@dataclass(frozen=True, slots=True, order=True)
class Position:
    """A place in a stream: everything in earlier segments, and before the offset in this one, is behind it."""

    segment: int = 0  # number
    offset: int = 0  # bytes


class DrainLock:
    """The right to hand on a stream: one drainer at a time, live or dead, in any process."""

    def __init__(self, place: StreamPlace, descriptor: int) -> None:
        self.place = place
        self._descriptor = descriptor

    @classmethod
    def take(cls, place: StreamPlace) -> "DrainLock | None":
        """Return the lock, or ``None`` where another drainer holds it.

        Raises:
            OSError: the folder cannot be written.
        """
        descriptor = locks.take_or_create(place.drain)
        return None if descriptor is None else cls(place, descriptor)

    def release(self) -> None:
        """Let others drain the stream."""
        os.close(self._descriptor)

    def write_cursor(self, position: Position, log: str) -> None:
        """Say that ``log`` has acknowledged everything before ``position``.

        Raises:
            OSError: it cannot be written; what was acknowledged since the last cursor is sent again.
        """
        text = json.dumps({"log": log, "segment": position.segment, "offset": position.offset})
        draft = Path(f"{self.place.cursor}.new")
        try:
            draft.write_text(text, encoding="ascii")
            draft.replace(self.place.cursor)
        except OSError:
            draft.unlink(missing_ok=True)
            raise

    def forget(self) -> None:
        """Remove the cursor and the lock's own file: the stream's segments are gone."""
        for path in (self.place.cursor, f"{self.place.cursor}.new", self.place.drain):
            with contextlib.suppress(FileNotFoundError):
                Path(path).unlink()


def read_cursor(place: StreamPlace, log: str | None = None) -> Position:
    """Return how far ``log`` (any, if not given) has acknowledged the stream."""
    try:
        found = json.loads(Path(place.cursor).read_bytes())
        if log is None or found["log"] == log:
            return Position(int(found["segment"]), int(found["offset"]))
    except (FileNotFoundError, ValueError, TypeError, KeyError):
        pass
    return Position()
