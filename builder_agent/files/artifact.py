"""Atomic artifact writing: temporary name, fsync, hash, read-back, rename, folder fsync.

The target holds either what it held before or the whole new artifact, whatever happens in between.
"""

import contextlib
import hashlib
import os
from collections.abc import Callable
from pathlib import Path

from build_events.events import (
    ArtifactPublished,
    ArtifactPublishing,
    ArtifactRemoved,
    Event,
)
from builder_agent.errors import ArtifactWriteError
from builder_agent.files.output_folder import OutputLock, quarantine, sha256_of, sync_folder, temp_path
from builder_agent.trt.engine_file import EngineFileError, layout_checks

CHUNK_BYTES = 16 << 20  # one write of a whole engine holds the interpreter lock for long; 16 MiB, 2 ms


class ArtifactWriter:
    """Writes one run's artifact beside its target while the output lock is held.

    ``durable`` returns once the events posted so far stand in the log, or the log has failed.
    """

    def __init__(
        self, target: Path, run_id: str, *, post: Callable[[Event], None], durable: Callable[[], object]
    ) -> None:
        self.target = target
        self._run_id = run_id
        self._post = post
        self._durable = durable
        self._lock = OutputLock(target)

    def lock(self) -> None:
        """Take the output lock.

        Raises:
            OutputFolderError: the folder is missing or not writable.
            OutputBusyError: another build holds the lock.
        """
        self._lock.acquire()

    def unlock(self) -> None:
        """Release the output lock; its file may remain."""
        self._lock.release()

    def save(self, engine: memoryview) -> ArtifactPublished:
        """Write, verify and publish; return what was published.

        1. write under the temporary name, fsync; 2. verify; 3. ``artifact.publishing``, durable, so
        that a sweep knows a finished file from a torn one; 4. rename; 5. folder fsync.

        Raises:
            ArtifactWriteError: the target is untouched; the temporary file was removed or quarantined.
        """
        temp = temp_path(self.target, self._run_id)
        try:
            digest = _write(temp, engine)
        except OSError as error:
            self._remove(temp, f"writing failed: {error.strerror}")
            raise ArtifactWriteError(temp, f"cannot write {len(engine)} bytes ({error.strerror})") from error
        try:
            checks = _verify(temp, digest)
            self._post(
                ArtifactPublishing(temp=str(temp), target=str(self.target), sha256=digest, size_bytes=len(engine))
            )
            self._durable()
            temp.rename(self.target)
        except (OSError, EngineFileError) as error:
            why = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
            self._quarantine(temp, why)
            raise ArtifactWriteError(self.target, f"the new engine was not published: {why}") from error
        # A file system that cannot sync a folder still holds the file under its name.
        with contextlib.suppress(OSError):
            sync_folder(self.target.parent)
            checks = (*checks, "folder_fsync")
        published = ArtifactPublished(
            target=str(self.target), sha256=digest, size_bytes=len(engine), by="build", checks=list(checks)
        )
        self._post(published)
        return published

    def _remove(self, temp: Path, reason: str) -> None:
        # What cannot be removed shows in the inventory that follows.
        with contextlib.suppress(OSError):
            temp.unlink()
            self._post(ArtifactRemoved(path=str(temp), reason=reason))

    def _quarantine(self, temp: Path, reason: str) -> None:
        with contextlib.suppress(OSError):
            self._post(quarantine(temp, self.target, self._run_id, reason))


def _write(temp: Path, engine: memoryview) -> str:
    """Return the digest of what was written and made durable."""
    digest = hashlib.sha256()
    with temp.open("xb", buffering=0) as file:
        for start in range(0, len(engine), CHUNK_BYTES):
            chunk = engine[start : start + CHUNK_BYTES]
            digest.update(chunk)
            while chunk:
                chunk = chunk[file.write(chunk) :]
        os.fsync(file.fileno())
    return digest.hexdigest()


def _verify(temp: Path, digest: str) -> tuple[str, ...]:
    """Return the checks that the file passed, read back from its name."""
    found = sha256_of(temp)
    if found != digest:
        raise EngineFileError(f"read back SHA-256 {found}, wrote {digest}")
    return ("read_back", *layout_checks(temp))
