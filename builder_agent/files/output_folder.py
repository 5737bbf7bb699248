"""Names, lock, inventory and quarantine beside a target: shared by the build, the sweep and the next start."""

import errno
import fcntl
import hashlib
import os
import stat
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Literal, NamedTuple

from build_events.events import ArtifactInventoried, ArtifactQuarantined, ErrorRecorded, InventoryEntry
from builder_agent import forks
from builder_agent.errors import OutputBusyError, OutputFolderError

_TEMP_SUFFIX = ".enginetrail-tmp"
_LOCK_SUFFIX = ".enginetrail-lock"
_QUARANTINE = ".enginetrail-quarantine"
_CHUNK_BYTES = 16 << 20
_NAME_MAX = 255  # bytes; limits.h of every Linux file system in use
# An inventory must not cost a build its time: larger files are listed without a digest.
HASHED_BYTES = 64 << 20
LISTED_FILES = 256  # of one inventory
_LISTED_BYTES = 96 << 10  # of their JSON: an event may have 128 KiB


def temp_path(target: Path, run_id: str) -> Path:
    """Return ``.NAME.RUNID.enginetrail-tmp`` beside the target. ``run_id`` holds no dot."""
    return target.with_name(f".{target.name}.{run_id}{_TEMP_SUFFIX}")


def temp_owner(path: Path, target: Path) -> str | None:
    """Return the run id in a temporary file's name, or ``None`` for any other file."""
    prefix, name = f".{target.name}.", path.name
    run_id = name[len(prefix) : -len(_TEMP_SUFFIX)]
    # A dot in between means the temporary file of another target, NAME.MORE.
    return run_id if name == f"{prefix}{run_id}{_TEMP_SUFFIX}" and run_id and "." not in run_id else None


def lock_path(target: Path) -> Path:
    """Return ``.NAME.enginetrail-lock`` beside the target."""
    return target.with_name(f".{target.name}{_LOCK_SUFFIX}")


def quarantine_folder(target: Path, run_id: str) -> Path:
    """Return ``.enginetrail-quarantine/RUNID`` beside the target."""
    return target.with_name(_QUARANTINE) / run_id


def temporaries(target: Path) -> list[Path]:
    """Return every temporary file of this target, of whatever run, by name."""
    return sorted(path for path in _files(target.parent) if temp_owner(path, target) is not None)


def quarantine(path: Path, target: Path, run_id: str, reason: str) -> ArtifactQuarantined:
    """Move ``path`` into the run's quarantine folder by rename; an earlier file there is kept.

    Raises:
        OSError: the file is gone, or the folder cannot be made or written.
    """
    folder = quarantine_folder(target, run_id)
    folder.mkdir(parents=True, exist_ok=True)
    place, number = folder / path.name, 0
    while place.exists():
        number += 1
        place = folder / f"{path.name}.{number}"
    size = path.stat().st_size
    digest = sha256_of(path) if size <= HASHED_BYTES else None
    path.rename(place)
    sync_folder(folder)
    sync_folder(path.parent)
    return ArtifactQuarantined(original=str(path), quarantine=str(place), size_bytes=size, sha256=digest, reason=reason)


def inventory(
    target: Path, run_id: str, moment: Literal["before", "after"], known: Mapping[Path, str] | None = None
) -> list[ArtifactInventoried | ErrorRecorded]:
    """Return the target, its temporaries and its quarantined files as they are now, and how many are left out.

    Only the target and the files of ``run_id`` are read for their digests: what earlier runs left must
    not cost a build its time. ``known`` are digests that need no reading, by path. Where the files are
    too many for one event, the oldest in quarantine are left out. A file that vanishes meanwhile is too.

    Raises:
        OSError: a folder cannot be read.
    """
    entries: list[InventoryEntry] = []
    files, size = _found(target, run_id), 0
    for number, file in enumerate(files):
        entry = _entry(file, known or {})
        size += len(entry.model_dump_json().encode()) if entry is not None else 0
        if len(entries) == LISTED_FILES or size > _LISTED_BYTES:
            left = f"{len(files) - number} further files beside {target} are not listed, the oldest of them"
            unlisted = ErrorRecorded(component="agent", code="unlisted", message=left)
            return [ArtifactInventoried(moment=moment, entries=entries), unlisted]
        if entry is not None:
            entries.append(entry)
    return [ArtifactInventoried(moment=moment, entries=entries)]


def sha256_of(path: Path) -> str:
    """Return the SHA-256 of a file in hexadecimal digits.

    Raises:
        OSError: it cannot be read.
    """
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while chunk := file.read(_CHUNK_BYTES):
            digest.update(chunk)
    return digest.hexdigest()


def sync_folder(folder: Path) -> None:
    """Make the names in a folder durable.

    Raises:
        OSError: the folder cannot be opened, or its file system cannot do so.
    """
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def check_target(target: Path) -> None:
    """Refuse a target that no engine can stand at.

    Raises:
        OutputFolderError: it is a folder or no regular file, or its name leaves no room for a temporary file's.
    """
    try:
        mode = target.stat().st_mode
    except OSError as error:
        mode = None
        if error.errno == errno.ENAMETOOLONG:
            raise OutputFolderError(target.parent, f"the name {target.name[:40]!r}... is too long") from None
    if mode is not None and stat.S_ISDIR(mode):
        raise OutputFolderError(target, "the output is a folder, not a file")
    if mode is not None and not stat.S_ISREG(mode):
        raise OutputFolderError(target, "the output is a device, pipe or socket, which an engine would replace")
    if len(os.fsencode(temp_path(target, "r" * 36).name)) > _NAME_MAX:
        raise OutputFolderError(target.parent, f"the name {target.name!r} leaves no room for a temporary file's")


class OutputLock:
    """flock on ``lock_path(target)``: held by the process that builds, or by who sweeps after it.

    The file is never renamed and may remain: a lock on the temporary file would let a waiter hold
    the published file (docs/contract.md section 3).
    """

    def __init__(self, target: Path) -> None:
        self.target = target
        self._descriptor: int | None = None

    def acquire(self) -> None:
        """Take the lock without waiting.

        Raises:
            OutputFolderError: the folder is missing or not writable, or the name cannot be used.
            OutputBusyError: another build, of this process or another, holds the lock.
        """
        check_target(self.target)
        forks.register(self)
        path = lock_path(self.target)
        try:
            self._descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
        except (FileNotFoundError, NotADirectoryError):
            raise OutputFolderError(self.target.parent, "it does not exist") from None
        except OSError as error:
            raise OutputFolderError(self.target.parent, f"cannot write in it ({error.strerror})") from error
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            self.release()
            raise OutputBusyError(self.target, path) from None

    def release(self) -> None:
        """Release it; the file stays."""
        descriptor, self._descriptor = self._descriptor, None
        if descriptor is not None:
            os.close(descriptor)

    def after_fork_in_child(self) -> None:
        """Close the descriptor: the lock would outlive the parent in this child."""
        self.release()


class _File(NamedTuple):
    path: Path
    role: Literal["target", "temporary", "quarantine"]
    mine: bool  # the target, or a file of the run that takes the inventory
    modified_ns: int
    size_bytes: int


def _found(target: Path, run_id: str) -> list[_File]:
    """Return the files in the order in which they matter: target, temporaries, quarantine; mine, then the newest."""
    folder = quarantine_folder(target, run_id)
    files = [
        _file(target, "target", mine=True),
        *(_file(path, "temporary", mine=temp_owner(path, target) == run_id) for path in temporaries(target)),
        *(_file(path, "quarantine", mine=path.parent == folder) for path in _quarantined(target)),
    ]
    order = ("target", "temporary", "quarantine")
    found = [file for file in files if file is not None]
    return sorted(found, key=lambda file: (order.index(file.role), not file.mine, -file.modified_ns))


def _file(path: Path, role: Literal["target", "temporary", "quarantine"], *, mine: bool) -> _File | None:
    try:
        status = path.stat()
    except FileNotFoundError:
        return None
    if not stat.S_ISREG(status.st_mode):
        return None
    return _File(path, role, mine, status.st_mtime_ns, status.st_size)


def _entry(file: _File, known: Mapping[Path, str]) -> InventoryEntry | None:
    digest = known.get(file.path)
    try:
        if digest is None and file.mine and file.size_bytes <= HASHED_BYTES:
            digest = sha256_of(file.path)
    except FileNotFoundError:
        return None
    # Whatever lies in the folder: a name need not be UTF-8, an event must be.
    name = str(file.path).encode(errors="backslashreplace").decode()
    return InventoryEntry(path=name, role=file.role, size_bytes=file.size_bytes, sha256=digest)


def _quarantined(target: Path) -> Iterator[Path]:
    root = target.with_name(_QUARANTINE)
    if root.is_dir():
        for folder in sorted(root.iterdir()):
            mine = (path for path in _files(folder) if path.name.startswith((target.name, f".{target.name}.")))
            yield from sorted(mine)


def _files(folder: Path) -> list[Path]:
    return [Path(entry.path) for entry in os.scandir(folder) if entry.is_file(follow_symlinks=False)]
