"""What every command is given: where the log and the store are, and when the command started."""

import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from build_events import home
from build_events.kafka_settings import KafkaSettings


@dataclass(frozen=True, slots=True)
class Home:
    """One folder: the event log, or the spool of one, and the DuckDB store made from it."""

    folder: Path
    runtime_dir: Path  # for sockets, whose paths must stay short
    command_started_ns: int  # CLOCK_MONOTONIC
    kafka: KafkaSettings | None = None  # the event log, where it is not this folder's own

    @classmethod
    def from_environment(
        cls,
        option: Path | None,
        environment: Mapping[str, str],
        *,
        command_started_ns: int,
        kafka: KafkaSettings | None = None,
    ) -> "Home":
        """Return the home that ``--home``, else ``ENGINETRAIL_HOME`` names, else ``.enginetrail``."""
        runtime = environment.get("XDG_RUNTIME_DIR")
        folder = home.home_folder(option, environment)
        return cls(folder, Path(runtime or tempfile.gettempdir()), command_started_ns, kafka)

    @property
    def log_folder(self) -> Path:
        """The folder that commands append to: the local log, or the spool of a Kafka log.

        Two folders, because what is drained is deleted, and a log of record never is.
        """
        return self.folder / (home.LOG if self.kafka is None else home.SPOOL)
