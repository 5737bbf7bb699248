"""Where a home lies: one folder that holds the local log and what is made from it."""

from collections.abc import Mapping
from pathlib import Path

VARIABLE = "ENGINETRAIL_HOME"
DEFAULT = ".enginetrail"
LOG = "log"  # the local log, in the home
SPOOL = "spool"  # of a Kafka log; a folder of its own: what is drained is deleted, and a log of record never is


def home_folder(given: Path | None, environment: Mapping[str, str]) -> Path:
    """Return the home: the one given, else the variable's unless it is empty, else the default here."""
    return (given if given is not None else Path(environment.get(VARIABLE) or DEFAULT)).absolute()
