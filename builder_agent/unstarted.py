"""What a building process leaves in the log when it ends before ``run.started``: a lock, an empty segment."""

import contextlib
import os
from pathlib import Path

from build_events.local_log import locks
from build_events.local_log.layout import run_stream


def remove_stale_lock(log_folder: Path, run_id: str, stream_id: str) -> None:
    """Remove the lock of a stream whose writer is gone and whose end is declared, or need not be."""
    path = Path(run_stream(log_folder, run_id, stream_id).lock)
    descriptor = locks.take_abandoned(str(path))
    if descriptor is None:
        return
    try:
        with contextlib.suppress(OSError):  # found again by the next start
            path.unlink()
    finally:
        os.close(descriptor)


def remove_unstarted(log_folder: Path, run_id: str, stream_id: str) -> None:
    """Remove the traces of a main stream that holds no event, unless somebody else's are beside them.

    A segment with bytes in it stays, even if they are half an event: nobody truncates the log.
    """
    remove_stale_lock(log_folder, run_id, stream_id)
    place = run_stream(log_folder, run_id, stream_id)
    segment = Path(place.segment(0))
    with contextlib.suppress(OSError):
        if segment.stat().st_size == 0:
            segment.unlink()
    with contextlib.suppress(OSError):
        Path(place.folder).rmdir()
