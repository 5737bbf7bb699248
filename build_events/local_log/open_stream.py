"""One stream while its writer lives: its lock, its current segment, and what a failure leaves."""

import contextlib
import functools
import os
import threading
import weakref
from pathlib import Path

from build_events.errors import LogUnavailableError
from build_events.local_log import locks
from build_events.local_log.layout import StreamPlace
from build_events.local_log.storage import sync_folder

ATTEMPTS = 5


class OpenStream:
    """The writing end of a stream. One thread owns it.

    Nobody truncates: a segment that a failed append may have left with half a line is never written
    again, and the next append begins a new segment. So half a line is never glued to another, and a
    reader that sees a later segment knows the earlier one as final.
    """

    def __init__(self, place: StreamPlace, *, segment_bytes: int) -> None:
        self.place = place
        self._segment_bytes = segment_bytes
        self._lock: int | None = None
        self._segment: int | None = None
        self._number = -1
        self._size = 0
        self._spoiled = False  # the segment may end in half a line
        self._named = False  # the segment's and the lock's entries in the folder are durable
        self._inherited = False  # this is a forked child; the parent is the writer

    def append(self, data: bytes) -> None:
        """Return once ``data``, whole lines, is durable.

        Raises:
            LogUnavailableError: it is not, or only in part; append the same again.
        """
        if self._inherited:
            raise LogUnavailableError(
                f"{self.place.lock}: the stream belongs to the process that this one was forked from. "
                "Open a stream of this process's own."
            )
        try:
            segment = self._writable_segment()
            self._write(segment, data)
        except FileExistsError as error:
            raise LogUnavailableError(
                f"{error.filename2 or error.filename}: the stream has another writer, or lost one. "
                "Open a stream under a new id."
            ) from error
        except OSError as error:
            raise LogUnavailableError(
                f"{error.filename or self.place.segment(max(self._number, 0))}: {error.strerror}. Nothing of this "
                "append counts as stored. Free space on that disk or make the folder writable, then append again."
            ) from error

    def finish(self) -> None:
        """Give up the lock of a stream whose closing event is durable."""
        # Where the file cannot be removed it does no harm: the next start sees the closed stream.
        with contextlib.suppress(OSError):
            Path(self.place.lock).unlink()
        self.abandon()

    def abandon(self) -> None:
        """Close the descriptors as a killed writer does: an unclosed stream counts as lost from now on."""
        descriptors = (self._segment, self._lock)
        self._segment = self._lock = None
        for descriptor in descriptors:
            if descriptor is not None:
                os.close(descriptor)

    def leave_to_parent(self) -> None:
        """Let go of what a forked child inherited, or the lock would outlive its owner."""
        self._inherited = True
        self.abandon()

    def _writable_segment(self) -> int:
        if self._lock is None:
            _let_go_in_forked_children()
            with _forks_wait:
                self._lock = self._create_lock()
                _open_streams.add(self)
        if self._segment is None or self._spoiled or self._size >= self._segment_bytes:
            self._next_segment()
        if not self._named:
            sync_folder(self.place.folder)
            self._named = True
        assert self._segment is not None
        return self._segment

    def _create_lock(self) -> int:
        for attempt in range(ATTEMPTS):
            _make_folder(Path(self.place.folder))
            try:
                return locks.create(self.place.lock)
            except FileNotFoundError:
                # A drainer removed the empty folder in between; once the lock is in it, it stays.
                if attempt + 1 == ATTEMPTS:
                    raise
        raise AssertionError

    def _next_segment(self) -> None:
        """Create the segment that comes after all there are; the one before is never written again."""
        if self._segment is not None:
            os.close(self._segment)
            self._segment = None
        while self._segment is None:
            self._number += 1
            with contextlib.suppress(FileExistsError):  # of an earlier writer of this closed stream
                flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND
                self._segment = os.open(self.place.segment(self._number), flags, 0o644)
        self._size, self._spoiled, self._named = 0, False, False

    def _write(self, segment: int, data: bytes) -> None:
        written = 0
        self._spoiled = True  # also if a signal's handler raises between write and bookkeeping
        try:
            view = memoryview(data)
            while written < len(data):
                written += os.write(segment, view[written:])
            os.fdatasync(segment)
        except OSError:
            self._spoiled = written > 0  # a full disk that takes nothing must not cost a file per try
            raise
        self._size += written
        self._spoiled = False


_open_streams: weakref.WeakSet[OpenStream] = weakref.WeakSet()
# A fork between the creation of a lock and its entry above would leave the child a lock it cannot find.
_forks_wait = threading.RLock()


@functools.cache
def _let_go_in_forked_children() -> None:
    os.register_at_fork(
        before=_forks_wait.acquire, after_in_parent=_forks_wait.release, after_in_child=_leave_all_to_parent
    )


def _leave_all_to_parent() -> None:
    _forks_wait.release()
    for stream in list(_open_streams):
        stream.leave_to_parent()
    _open_streams.clear()


def _make_folder(path: Path) -> None:
    with contextlib.suppress(FileExistsError):
        path.mkdir()
    # Also where another process made it: it may not have come this far, and this append relies on it.
    sync_folder(path.parent)
