"""What one service is: an implementation for each of the four, all used in the same way."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from string import Template
from typing import Protocol

from deploy.services.cache import BuildCache
from deploy.services.tools import Tools

SOURCES = Path(__file__).with_name("sources")
_TEMPLATES = Path(__file__).with_name("templates")

Ports = Mapping[str, int]  # by what listens there


@dataclass(frozen=True, slots=True)
class Place:
    """Where a service keeps its files, and where it and the others listen."""

    folder: Path  # of this service alone; its working directory
    ports: Ports
    peers: Mapping[str, Ports]  # of every service, whether it runs or not


@dataclass(frozen=True, slots=True)
class Launch:
    """How to start a service whose files are in place."""

    command: tuple[str, ...]
    environ: Mapping[str, str]


class Service(Protocol):
    """A real service that tests and docs use. Objects have no state: it lies in the place."""

    name: str
    variable: str  # the environment variable of its address
    port_names: tuple[str, ...]
    start_timeout_s: float
    stop_timeout_s: float

    def address(self, ports: Ports) -> str:
        """Return the address that clients use, as the value of ``variable``."""
        ...

    def prepare(self, place: Place, tools: Tools, cache: BuildCache) -> Launch:
        """Obtain the program, write its configuration into the place, and return how to start it."""
        ...

    def is_ready(self, ports: Ports) -> bool:
        """Return whether the service does its work, by asking it."""
        ...


def fill(template: str, place: Place, **values: str | int) -> None:
    """Write a configuration from the template of the same name into the folder of the place."""
    text = Template((_TEMPLATES / template).read_text()).substitute({**place.ports, **values})
    (place.folder / template).write_text(text)
