"""Where a home keeps its log and its store."""

import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from build_events.kafka_settings import KafkaSettings

DEFAULT_HOME = ".enginetrail"


@dataclass(frozen=True, slots=True)
class Home:
    """One folder: the event log, or the spool of one, and the DuckDB store made from it."""

    folder: Path
    runtime_dir: Path  # for sockets, whose paths must stay short
    kafka: KafkaSettings | None = None  # the event log, where it is not this folder's own

    @classmethod
    def from_environment(
        cls, option: Path | None, environment: Mapping[str, str], kafka: KafkaSettings | None = None
    ) -> "Home":
        """Return the home that ``--home``, else ``ENGINETRAIL_HOME`` names, else ``.enginetrail``."""
        folder = option or Path(environment.get("ENGINETRAIL_HOME") or DEFAULT_HOME)
        runtime = environment.get("XDG_RUNTIME_DIR")
        return cls(folder.absolute(), Path(runtime or tempfile.gettempdir()), kafka)

    @property
    def log_folder(self) -> Path:
        """The folder that commands append to: the local log, or the spool of a Kafka log.

        Two folders, because what is drained is deleted, and a log of record never is.
        """
        return self.folder / ("log" if self.kafka is None else "spool")
