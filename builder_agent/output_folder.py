"""Names, lock, inventory and quarantine beside a target: shared by the build, the sweep and the next start."""

from pathlib import Path
from typing import Literal

from build_events.events import ArtifactInventoried, ArtifactQuarantined


def temp_path(target: Path, run_id: str) -> Path:
    """Return ``.NAME.RUNID.enginetrail-tmp`` beside the target."""
    raise NotImplementedError


def lock_path(target: Path) -> Path:
    """Return ``.NAME.enginetrail-lock`` beside the target."""
    raise NotImplementedError


def temporaries(target: Path) -> list[Path]:
    """Return every temporary file of this target, of whatever run."""
    raise NotImplementedError


def quarantine(path: Path, target: Path, run_id: str, reason: str) -> ArtifactQuarantined:
    """Move ``path`` into ``.enginetrail-quarantine/RUNID/`` beside the target (rename, folder fsync)."""
    raise NotImplementedError


def inventory(target: Path, moment: Literal["before", "after"]) -> ArtifactInventoried:
    """Return the target, its temporaries and its quarantined files as they are now."""
    raise NotImplementedError


class OutputLock:
    """flock on ``lock_path(target)``: held by the process that builds, or by who sweeps after it."""

    def __init__(self, target: Path) -> None:
        self.target = target

    def acquire(self) -> None:
        """Take the lock without waiting; raises OutputFolderError or OutputBusyError."""

    def release(self) -> None:
        """Release it; the file stays."""
