"""Where the query socket of a home lies: short, private, and computable by every user of the home."""

import hashlib
import os
import stat
from pathlib import Path

from collector.errors import SocketError

SOCKET_FILE = "q.sock"
_MAX_BYTES = 107  # of a socket's path on Linux: sun_path is 108 bytes with its end


def socket_path(home: Path, runtime_dir: Path) -> Path:
    """Return the socket of ``home``; ``runtime_dir`` is the user's runtime folder, or the temporary one."""
    digest = hashlib.sha256(os.fsencode(home.resolve())).hexdigest()[:16]
    return runtime_dir / f"enginetrail-{os.getuid()}-{digest}" / SOCKET_FILE


def make_folder(socket: Path) -> None:
    """Make the socket's folder, for this user alone.

    Raises:
        SocketError: it cannot be made, belongs to somebody else or is open to others, or its path is too long.
    """
    folder = socket.parent
    if len(os.fsencode(socket)) > _MAX_BYTES:
        msg = f"{socket} is longer than the {_MAX_BYTES} bytes of a socket path. Set XDG_RUNTIME_DIR to a shorter one."
        raise SocketError(msg)
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
        found = folder.lstat()
    except OSError as error:
        msg = f"{folder} cannot be made ({error.strerror}). Set XDG_RUNTIME_DIR to a folder that you can write."
        raise SocketError(msg) from error
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid() or stat.S_IMODE(found.st_mode) & 0o077:
        msg = f"{folder} must be a folder of yours that nobody else can enter (mode 0700). Remove it and try again."
        raise SocketError(msg)
