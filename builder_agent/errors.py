"""Errors of the agent: usage errors raise before a run begins; each says what, where and what next."""

from pathlib import Path

from build_events.errors import EngineTrailError


class AgentError(EngineTrailError):
    """Base of the agent's errors."""


class UsageError(AgentError):
    """The agent was called in a way that cannot work, e.g. two builds in one run."""


class BackendError(AgentError):
    """No TensorRT module, or more than one, can be meant."""


class OutputFolderError(AgentError):
    """The folder of the target does not exist or cannot be written; refused before the run begins."""

    def __init__(self, folder: Path, why: str) -> None:
        self.folder = folder
        super().__init__(f"output folder {folder}: {why}. Create it or make it writable, then build again.")


class OutputIsInputError(UsageError):
    """The engine would replace a file that it is built from; refused before the run begins."""

    def __init__(self, target: Path, source: Path) -> None:
        self.target, self.source = target, source
        super().__init__(f"{target}: the build reads this file ({source}). Give another output.")


class OutputBusyError(AgentError):
    """Another build holds the target's lock; refused before the run begins."""

    def __init__(self, target: Path, lock: Path) -> None:
        self.target, self.lock = target, lock
        super().__init__(
            f"{target}: another build is writing it (it holds {lock}). Wait for that build to end, "
            "cancel it, or give another output."
        )


class ArtifactWriteError(AgentError):
    """The engine could not be written, verified or published; the run fails with ``error_type``."""

    error_type = "artifact_write"

    def __init__(self, path: Path, why: str) -> None:
        self.path = path
        super().__init__(f"{path}: {why}. The target is as it was before the build; free space or fix the disk, retry.")


class ModelRefusedError(AgentError):
    """The parser read the model and will not take it; its errors are recorded, the run fails with ``error_type``."""

    error_type = "parser_error"
