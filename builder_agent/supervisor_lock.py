"""The supervisor's sign of life: a lock that exists before its building process does.

Recovery may find the lock of a main stream free a moment after the process died and before its
supervisor has recorded that. While this lock is held, the end is the supervisor's to declare. Not a
stream's lock: a run that never starts must leave nothing in the log.
"""

import contextlib
import os
from pathlib import Path

from build_events.errors import LogUnavailableError
from build_events.local_log import locks
from build_events.local_log.layout import LOCK_SUFFIX, quote
from build_events.local_log.storage import names
from builder_agent import forks

_FOLDER = "supervisors"  # in the log folder, beside the streams


class SupervisorLock:
    """Held from before the building process starts until its end is recorded."""

    def __init__(self, log_folder: Path, run_id: str) -> None:
        self._path = lock_path(log_folder, run_id)
        self._descriptor: int | None = None

    def acquire(self) -> None:
        """Take the lock of a run that is about to start.

        Raises:
            LogUnavailableError: the log folder cannot be written, or the run id was used before.
        """
        forks.register(self)
        try:
            self._path.parent.mkdir(exist_ok=True)
            self._descriptor = locks.create(str(self._path))
        except OSError as error:
            raise LogUnavailableError(
                f"{self._path}: {error.strerror}. Give a folder that can be written, or free its disk."
            ) from error

    def release(self) -> None:
        """Give it up; what happened to the run is recorded, or there is no run."""
        if self._descriptor is not None:
            # Where the file cannot be removed, the next start does it.
            with contextlib.suppress(OSError):
                self._path.unlink()
            self.after_fork_in_child()

    def after_fork_in_child(self) -> None:
        """Close the descriptor: the lock would outlive the parent in this child."""
        descriptor, self._descriptor = self._descriptor, None
        if descriptor is not None:
            os.close(descriptor)


def lock_path(log_folder: Path, run_id: str) -> Path:
    """Return where the supervisor's lock of a run is."""
    return log_folder / _FOLDER / f"{quote(run_id)}{LOCK_SUFFIX}"


def is_supervised(log_folder: Path, run_id: str) -> bool:
    """Say whether the run's supervisor lives.

    Ask before reading the run's streams: a supervisor that is gone by then has recorded what it knew.
    """
    return locks.is_held(str(lock_path(log_folder, run_id)))


def remove_abandoned_locks(log_folder: Path) -> None:
    """Remove the locks of supervisors that died."""
    folder = log_folder / _FOLDER
    for name in names(folder):
        if not name.endswith(LOCK_SUFFIX):
            continue
        descriptor = locks.take_abandoned(str(folder / name))
        if descriptor is not None:
            try:
                with contextlib.suppress(OSError):  # found again by the next start
                    (folder / name).unlink()
            finally:
                os.close(descriptor)
