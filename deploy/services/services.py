"""The services of one folder: started, found again, stopped, killed and purged."""

import signal
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from deploy.services.cache import BuildCache, default_folder
from deploy.services.errors import PortTakenError, ServiceError, UnknownServiceError
from deploy.services.home import Home
from deploy.services.jaeger import Jaeger
from deploy.services.kafka import Kafka
from deploy.services.locking import Say, exclusive
from deploy.services.otelcol import OTelCollector
from deploy.services.ports import HOST, is_free
from deploy.services.probe import port_answers
from deploy.services.process import Daemon, recorded, spawn
from deploy.services.prometheus import Prometheus
from deploy.services.spec import Place, Service
from deploy.services.tools import Tools, tail

SERVICES: dict[str, Service] = {service.name: service for service in (Kafka(), Jaeger(), OTelCollector(), Prometheus())}
NAMES = tuple(SERVICES)
_LISTENERS = {service.name: service.port_names for service in SERVICES.values()}
_POLL_S = 0.05
_AFTER_KILL_S = 10.0  # the kernel frees the memory of a large process in far less


@dataclass(frozen=True, slots=True)
class Status:
    """What is known of one service."""

    name: str
    state: Literal["running", "stopped", "elsewhere"]  # elsewhere: its address was given by the environment
    address: str | None  # where it answers, or will once started again; None before its first start
    pid: int | None = None


class Services:
    """The services whose data, ports and processes belong to one folder.

    What changes something holds the folder's lock meanwhile, so that commands of several processes
    do not meet. A service whose variable is set, in ``environ``, to an address that is not this
    folder's own is *elsewhere*: used as it is, never started, stopped or killed.
    """

    def __init__(self, folder: Path, environ: Mapping[str, str], say: Say = lambda _: None) -> None:
        """Take a folder, an environment (PATH, cache folder, addresses), and who hears what takes long."""
        self._home = Home(folder)
        self._environ = environ
        self._say = say
        self._tools = Tools(environ, say)
        self._cache = BuildCache(default_folder(environ), say)

    def start(self, name: str) -> str:
        """Return the address of a service that answers, started if need be. Repeating it changes nothing.

        Raises:
            MissingToolError, BuildFailedError: its program is not here and could not be made.
            PortTakenError: another program listens where it did before.
            ServiceError: it ended while starting, or does not answer; has the end of its log.
        """
        service = _known(name)
        if (given := self._given(service)) is not None:
            return _reachable(service, given)
        with exclusive(self._home.lock, self._say):
            daemon = self._running(name)
            if daemon is None:
                self._launch(service)
            else:
                self._await_ready(service, daemon)
            self._write_env()
        return self.address(name)

    def stop(self, name: str) -> None:
        """Ask a service to end, and wait; one that takes too long is killed. Stopped already is fine."""
        service = _known(name)
        with exclusive(self._home.lock, self._say):
            self._stop(service)
            self._write_env()

    def kill(self, name: str) -> None:
        """End a service by SIGKILL, for fault tests, and return when it is gone.

        Raises:
            ServiceError: none that this folder started runs.
        """
        _known(name)
        with exclusive(self._home.lock, self._say):
            daemon = self._running(name)
            if daemon is None:
                raise ServiceError(f"{name} does not run in {self._home.folder}: start it first")
            self._kill(name, daemon)
            self._write_env()

    def address(self, name: str) -> str:
        """Return where a service answers, or will once started again.

        Raises:
            ServiceError: it was never started, so it has no address yet.
        """
        known = self.status(name).address
        if known is None:
            raise ServiceError(f"{name} was never started in {self._home.folder}: start it first")
        return known

    def port(self, name: str, listener: str) -> int:
        """Return the port of one listener of a service; the names stand in ``port_names`` of its class."""
        service = _known(name)
        if listener not in service.port_names:
            raise ServiceError(f"{name} has no listener {listener!r}: it has {', '.join(service.port_names)}")
        ports = self._home.ports().get(name)
        if ports is None:
            raise ServiceError(f"{name} was never started in {self._home.folder}: start it first")
        return ports[listener]

    def log(self, name: str) -> Path:
        """Return the file with the output of a service since its last start."""
        return self._home.log(_known(name).name)

    def status(self, name: str) -> Status:
        """Return whether a service runs, and where."""
        service = _known(name)
        if (given := self._given(service)) is not None:
            return Status(name, "elsewhere", given)
        ports = self._home.ports().get(name)
        address = service.address(ports) if ports else None
        daemon = self._running(name)
        return Status(name, "running", address, daemon.pid) if daemon else Status(name, "stopped", address)

    def purge(self) -> None:
        """Stop what this folder started, then remove its data and ports. The cache of builds stays."""
        with exclusive(self._home.lock, self._say):
            for service in SERVICES.values():
                self._stop(service)
            self._home.remove(NAMES)

    def _given(self, service: Service) -> str | None:
        """Return the address of a service elsewhere. Our own, read back from the env file, is none."""
        given = self._environ.get(service.variable)
        ports = self._home.ports().get(service.name)
        return None if not given or (ports and given == service.address(ports)) else given

    def _running(self, name: str) -> Daemon | None:
        daemon = recorded(self._home.record(name))
        return daemon if daemon is not None and daemon.is_running() else None

    def _launch(self, service: Service) -> None:
        place = self._place(service)
        launch = service.prepare(place, self._tools, self._cache)
        log = self._home.log(service.name)
        if log.exists():
            log.replace(log.with_suffix(".old"))  # why the last one ended may stand there
        self._say(f"{service.name}: starting at {service.address(place.ports)}")
        daemon = spawn(self._home.record(service.name), log, place.folder, launch.command, launch.environ)
        try:
            self._await_ready(service, daemon)
        except BaseException:
            self._kill(service.name, daemon)
            raise

    def _place(self, service: Service) -> Place:
        """Return the place of a service that does not run, with ports that are free."""
        name, folder = service.name, self._home.of(service.name)
        ports = self._home.claim(_LISTENERS)
        busy = [port for port in ports[name].values() if not is_free(port)]
        if busy and folder.exists():
            raise PortTakenError(
                f"another program listens on {HOST}:{busy[0]}, which {name} has used so far: stop that program, "
                "or give up the ports and the data of all services with `make services-purge`"
            )
        if busy:  # nobody knows these ports yet
            ports = self._home.claim(_LISTENERS, anew=name)
        folder.mkdir(parents=True, exist_ok=True)
        return Place(folder, ports[name], ports)

    def _await_ready(self, service: Service, daemon: Daemon) -> None:
        ports, log = self._home.ports()[service.name], self._home.log(service.name)
        deadline = time.monotonic() + service.start_timeout_s
        while not service.is_ready(ports):
            if not daemon.is_running():
                raise ServiceError(f"{service.name} ended while it was starting; the end of {log}:\n{tail(log)}")
            if time.monotonic() > deadline:
                raise ServiceError(
                    f"{service.name} does not answer at {service.address(ports)} after {service.start_timeout_s:g} s; "
                    f"the end of {log}:\n{tail(log)}"
                )
            time.sleep(_POLL_S)

    def _stop(self, service: Service) -> None:
        daemon = self._running(service.name)
        if daemon is None:
            return
        daemon.send(signal.SIGTERM)
        if not daemon.wait(service.stop_timeout_s):
            self._say(f"{service.name}: still there {service.stop_timeout_s:g} s after SIGTERM, so it is killed")
            self._kill(service.name, daemon)

    def _kill(self, name: str, daemon: Daemon) -> None:
        daemon.send(signal.SIGKILL)
        if not daemon.wait(_AFTER_KILL_S):
            raise ServiceError(f"{name}: process {daemon.pid} is still there {_AFTER_KILL_S:g} s after SIGKILL")

    def _write_env(self) -> None:
        states = {name: self.status(name) for name in NAMES}
        self._home.write_env(
            {
                SERVICES[name].variable: status.address
                for name, status in states.items()
                if status.state != "stopped" and status.address
            }
        )


def _known(name: str) -> Service:
    if name not in SERVICES:
        raise UnknownServiceError(f"there is no service {name!r}: the names are {', '.join(NAMES)}")
    return SERVICES[name]


def _reachable(service: Service, given: str) -> str:
    if not port_answers(given):
        raise ServiceError(
            f"{service.variable}={given} does not answer: start that {service.name}, or unset {service.variable} "
            "to have one started here"
        )
    return given
