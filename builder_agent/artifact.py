"""Atomic artifact writing: temporary name, fsync, hash, read-back, rename, folder fsync."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from build_events.events import Event


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """An artifact that is complete and verified under its temporary name."""

    temp: Path
    target: Path
    sha256: str
    size_bytes: int
    checks: tuple[str, ...]  # e.g. read_back, size_field, trailer


class ArtifactWriter:
    """Writes one run's artifact beside its target while the output lock is held."""

    def __init__(self, target: Path, run_id: str, *, post: Callable[[Event], None], durable: Callable[[], None]) -> None:
        """``durable`` returns when the events posted so far stand in the log (or the log has failed)."""

    def lock(self) -> None:
        """Take the output lock.

        Raises:
            OutputFolderError: the folder is missing or not writable.
            OutputBusyError: another build holds the lock.
        """

    def save(self, engine: object) -> Written:
        """Write, verify and publish; posts artifact.publishing (durable before the rename) and artifact.published.

        Raises:
            ArtifactWriteError: nothing was published; the temporary file was removed or quarantined.
        """
        raise NotImplementedError

    def unlock(self) -> None:
        """Release the output lock; its file may remain."""
