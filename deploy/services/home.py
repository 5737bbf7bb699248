"""The folder of a set of services on disk: ports, one sub-folder each, and the addresses for a shell."""

import json
import shutil
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path

from deploy.services.ports import choose
from deploy.services.spec import Ports


class Home:
    """Reads and writes the files of one folder; makes it when something is written."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder.absolute()
        self.lock = self.folder / "lock"
        self._ports = self.folder / "ports.json"
        self._env = self.folder / "env"

    def of(self, name: str) -> Path:
        """Return the folder of one service: its configuration, data, log and process record."""
        return self.folder / name

    def record(self, name: str) -> Path:
        """Return the file that names the process of a service."""
        return self.of(name) / "process.json"

    def log(self, name: str) -> Path:
        """Return the file with the output of a service since its last start."""
        return self.of(name) / "log"

    def ports(self) -> dict[str, Ports]:
        """Return the ports of each service that has some."""
        try:
            return dict(json.loads(self._ports.read_bytes()))
        except FileNotFoundError:
            return {}

    def claim(self, wanted: Mapping[str, Iterable[str]], *, anew: str | None = None) -> dict[str, Ports]:
        """Return ports for every listener in ``wanted``: those it has, and new ones where it has none.

        The service ``anew`` gets new ones in any case.
        """
        ports = {name: given for name, given in self.ports().items() if name != anew}
        for name, listeners in wanted.items():
            if name not in ports:
                taken = {port for given in ports.values() for port in given.values()}
                ports[name] = choose(listeners, taken)
        _replace(self._ports, json.dumps(ports, indent=1))
        return ports

    def write_env(self, addresses: Mapping[str, str]) -> None:
        """Write ``NAME=ADDRESS`` lines that a shell can read."""
        _replace(self._env, "".join(f"{name}={address}\n" for name, address in addresses.items()))

    def remove(self, names: Iterable[str]) -> None:
        """Remove the folders of services and what belongs to all; files of others are left."""
        for name in names:
            if self.of(name).exists():
                shutil.rmtree(self.of(name))
        for file in (self._ports, self._env, self.lock):
            file.unlink(missing_ok=True)
        with suppress(OSError):  # somebody else's file lies there
            self.folder.rmdir()


def _replace(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    fresh = path.with_name(f"{path.name}.new")
    fresh.write_text(text)
    fresh.replace(path)
