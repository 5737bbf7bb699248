"""What every command is given: where the log and the store are, and when the command started."""

import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from build_events import home


@dataclass(frozen=True, slots=True)
class Home:
    """One folder: the event log and the DuckDB store made from it."""

    folder: Path
    runtime_dir: Path  # for sockets, whose paths must stay short
    command_started_ns: int  # CLOCK_MONOTONIC

    @classmethod
    def from_environment(
        cls, option: Path | None, environment: Mapping[str, str], *, command_started_ns: int
    ) -> "Home":
        """Return the home that ``--home``, else ``ENGINETRAIL_HOME`` names, else ``.enginetrail``."""
        runtime = environment.get("XDG_RUNTIME_DIR")
        return cls(home.home_folder(option, environment), Path(runtime or tempfile.gettempdir()), command_started_ns)

    @property
    def log_folder(self) -> Path:
        """The local log."""
        return self.folder / home.LOG
