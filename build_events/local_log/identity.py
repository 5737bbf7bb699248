"""A log's identity: a random id in ``identity.json``, made once with the folder."""

import contextlib
import json
import os
import uuid
from pathlib import Path

from build_events import ids
from build_events.errors import LogCorruptError
from build_events.local_log.layout import KINDS
from build_events.local_log.storage import sync_folder

FORMAT = 1  # of the folder and its lines


def create(folder: Path) -> None:
    """Make the log folder unless it is there. Any number of processes may do so at once.

    Raises:
        OSError: the folder cannot be made.
        LogCorruptError: there are streams but no identity.
    """
    for kind in KINDS:
        (folder / kind).mkdir(parents=True, exist_ok=True)
    path = identity_path(folder)
    if not path.exists():
        _make(path)
    # Also when another process made it: it may not have come this far, and appends rely on it.
    sync_folder(folder)
    sync_folder(folder.parent)


def _make(path: Path) -> None:
    folder = path.parent
    # Streams are written only after the identity, so without one they are of a log that lost it.
    if any(any((folder / kind).iterdir()) for kind in KINDS) and not path.exists():
        raise _without_identity(path)
    draft = folder / f".identity-{ids.random_id()}"
    try:
        with draft.open("xb") as file:
            file.write(json.dumps({"format": FORMAT, "identity": ids.random_id()}).encode() + b"\n")
            file.flush()
            os.fsync(file.fileno())
        with contextlib.suppress(FileExistsError):
            os.link(draft, path)  # unlike a rename, never replaces what another process made first
    finally:
        draft.unlink(missing_ok=True)


def read(folder: Path) -> str:
    """Return the log's identity.

    Raises:
        LogCorruptError: there is none, or the file holds something else.
    """
    path = identity_path(folder)
    try:
        content = json.loads(path.read_bytes())
        written, identity = content["format"], str(uuid.UUID(content["identity"]))
    except FileNotFoundError:
        raise _without_identity(path) from None
    except OSError as error:
        raise LogCorruptError(f"{path}: {error.strerror}. Make the log folder readable.") from error
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise LogCorruptError(f"{path}: holds no identity. Restore this file from a backup.") from error
    if written != FORMAT:
        raise LogCorruptError(f"{path}: format {written!r} is not {FORMAT}. Read it with the release that wrote it.")
    return identity


def identity_path(folder: Path) -> Path:
    """Return where the identity is kept."""
    return folder / "identity.json"


def _without_identity(path: Path) -> LogCorruptError:
    return LogCorruptError(
        f"{path}: missing, so the folder is no event log, or lost its identity. "
        "Restore the file from a backup, or start a log in a folder that does not exist yet."
    )
