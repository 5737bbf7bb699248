"""What was built once, kept per user and named by the digest of what it was built from."""

import hashlib
import platform
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path

from deploy.services.locking import Say, exclusive

_DIGEST_CHARACTERS = 16  # 64 bits: enough to tell builds apart, short enough to read


def default_folder(environ: Mapping[str, str]) -> Path:
    """Return the user's cache folder for services (XDG Base Directory Specification)."""
    home = Path(environ.get("HOME") or Path.home())
    return Path(environ.get("XDG_CACHE_HOME") or home / ".cache") / "enginetrail" / "services"


def digest(sources: Path, recipe: str) -> str:
    """Return the hexadecimal digest of every file under ``sources``, the recipe and the kind of machine."""
    content = hashlib.sha256()
    for part in (platform.system(), platform.machine(), recipe):
        content.update(f"{part}\0".encode())
    for path in sorted(path for path in sources.rglob("*") if path.is_file()):
        name, body = path.relative_to(sources).as_posix(), path.read_bytes()
        content.update(f"{name}\0{len(body)}\0".encode() + body)
    return content.hexdigest()


class BuildCache:
    """Built programs in one folder, each made once by whoever needs it first."""

    def __init__(self, folder: Path, say: Say) -> None:
        self._folder, self._say = folder, say

    def obtain(self, name: str, sources: Path, recipe: str, build: Callable[[Path], None]) -> Path:
        """Return the folder that ``build`` filled, now or earlier, for the same sources and recipe.

        ``build`` fills an empty folder, which takes its final name only when ``build`` returns: an
        interrupted build is begun anew, a failed one leaves nothing that counts.
        """
        target = self._folder / f"{name}-{digest(sources, recipe)[:_DIGEST_CHARACTERS]}"
        if target.is_dir():
            return target
        with exclusive(target.with_name(f"{target.name}.lock"), self._say):
            if not target.is_dir():
                self._say(f"{name}: building into {target}, once for this user")
                unfinished = target.with_name(f"{target.name}.unfinished")
                shutil.rmtree(unfinished, ignore_errors=True)
                unfinished.mkdir()
                build(unfinished)
                unfinished.rename(target)
        return target
