"""Where a home keeps its log and its store."""

import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

DEFAULT_HOME = ".enginetrail"


@dataclass(frozen=True, slots=True)
class Home:
    """One folder: the event log and the DuckDB store made from it."""

    folder: Path
    runtime_dir: Path  # for sockets, whose paths must stay short

    @classmethod
    def from_environment(cls, option: Path | None, environment: Mapping[str, str]) -> "Home":
        """Return the home that ``--home``, else ``ENGINETRAIL_HOME`` names, else ``.enginetrail``."""
        folder = option or Path(environment.get("ENGINETRAIL_HOME") or DEFAULT_HOME)
        runtime = environment.get("XDG_RUNTIME_DIR")
        return cls(folder.absolute(), Path(runtime or tempfile.gettempdir()))

    @property
    def log_folder(self) -> Path:
        """The local log."""
        return self.folder / "log"
