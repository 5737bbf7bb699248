"""Apache Kafka: one node, broker and controller in one process (KRaft)."""

import base64
import hashlib
import os
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from deploy.services.cache import BuildCache
from deploy.services.errors import BuildFailedError, MissingToolError, ServiceError
from deploy.services.ports import HOST
from deploy.services.probe import kafka_answers
from deploy.services.spec import SOURCES, Launch, Place, Ports, fill
from deploy.services.tools import INSTALL, Tools, tail

_LOWEST, _BELOW = (4,), (5,)  # of a Kafka on PATH, used instead of the one that the pom pins
_OLDEST_JAVA = 17
_HEAP = "-Xms256m -Xmx512m"
_LOGGING = "-Dlog4j2.configurationFile=log4j2.properties"
_FORMATTED = "formatted"  # marks data that was formatted to the end, by its presence
_PLUGIN_GOAL = "dependency:copy-dependencies"
_RECIPE = f"{_PLUGIN_GOAL} -DincludeScope=runtime"
_OTHERWISE = (
    "put kafka-server-start.sh and kafka-storage.sh of Kafka 4.x on PATH, or give a running one: "
    "KAFKA_BOOTSTRAP=HOST:PORT"
)


class Kafka:
    """A broker at ``KAFKA_BOOTSTRAP``, plain text, that keeps its topics over restarts."""

    name = "kafka"
    variable = "KAFKA_BOOTSTRAP"
    port_names: tuple[str, ...] = ("broker", "controller")
    start_timeout_s = 90.0  # about 4 s alone on two cores; shared cores may be ten times slower
    stop_timeout_s = 30.0

    def address(self, ports: Ports) -> str:
        """Return ``HOST:PORT`` of the broker."""
        return f"{HOST}:{ports['broker']}"

    def is_ready(self, ports: Ports) -> bool:
        """Return whether the broker answers a request."""
        return kafka_answers(HOST, ports["broker"])

    def prepare(self, place: Place, tools: Tools, cache: BuildCache) -> Launch:
        """Obtain Kafka, configure it, and format its storage if that was never done."""
        program = _on_path(tools) or _from_registry(tools, cache)
        fill("server.properties", place)
        fill("log4j2.properties", place)
        if not (place.folder / _FORMATTED).exists():
            _format(place, program)
        return Launch(program.server, program.environ)


@dataclass(frozen=True, slots=True)
class _Program:
    """The two commands of a Kafka distribution, to be run in the folder of the configuration."""

    server: tuple[str, ...]
    storage: tuple[str, ...]
    environ: Mapping[str, str]


def _on_path(tools: Tools) -> _Program | None:
    storage = tools.find("kafka-storage.sh")
    if storage is None:
        return None
    start = tools.fitting("kafka-server-start.sh", ("--version",), r"(?m)^(\d+\.\d+\.\d+)", _LOWEST, _BELOW)
    if start is None:
        return None
    environ = tools.passed_on(KAFKA_HEAP_OPTS=_heap(tools), KAFKA_LOG4J_OPTS=_LOGGING, LOG_DIR="logs")
    return _Program((start, "server.properties"), (storage,), environ)


def _from_registry(tools: Tools, cache: BuildCache) -> _Program:
    java, sources = _java(tools), SOURCES / "kafka"
    jars = cache.obtain("kafka", sources, _RECIPE, lambda folder: _copy_jars(tools, sources, folder))
    classpath = ("-cp", f"{jars}/*")
    options = (*_heap(tools).split(), "-XX:+ExitOnOutOfMemoryError", _LOGGING)
    server = (java, *options, *classpath, "kafka.Kafka", "server.properties")
    return _Program(server, (java, *classpath, "kafka.tools.StorageTool"), tools.passed_on())


def _heap(tools: Tools) -> str:
    return tools.environ.get("KAFKA_HEAP_OPTS", _HEAP)


def _java(tools: Tools) -> str:
    home = tools.environ.get("JAVA_HOME")
    java = f"{home}/bin/java" if home else tools.require("java", "kafka", _OTHERWISE)
    version = tools.version((java, "-version"), r'version "(\d+)')
    if version is None or version[0] < _OLDEST_JAVA:
        found = f"is Java {version[0]}" if version else "does not run"
        raise MissingToolError(f"kafka: {java} {found}: install {INSTALL['java']}, or {_OTHERWISE}")
    return java


def _copy_jars(tools: Tools, sources: Path, folder: Path) -> None:
    """Fill ``folder`` with the jars of the pom, and hold each against its digest."""
    maven = tools.require("mvn", "kafka", _OTHERWISE)
    command = (maven, "--batch-mode", "--file", str(sources / "pom.xml"), *_RECIPE.split())
    log = folder.with_suffix(".log")
    tools.build((*command, f"-DoutputDirectory={folder}"), folder=sources, log=log)
    lines = (sources / "jars.sha256").read_text().splitlines()
    recorded = {name: digest for digest, name in (line.split() for line in lines)}
    got = {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in folder.iterdir()}
    differing = {name for name, _ in got.items() ^ recorded.items()}
    if differing:
        raise BuildFailedError(
            f"kafka: these jars are not the recorded ones: {', '.join(sorted(differing))}. If the pom was changed on "
            f"purpose, write their digests to {sources / 'jars.sha256'}; otherwise do not run them"
        )


def _format(place: Place, program: _Program) -> None:
    """Write an empty storage with a cluster id of its own. What an interrupted attempt left is replaced."""
    shutil.rmtree(place.folder / "data", ignore_errors=True)
    cluster = base64.urlsafe_b64encode(os.urandom(16)).decode().rstrip("=")
    log = place.folder / "format.log"
    with log.open("wb") as output:
        done = subprocess.run(
            [*program.storage, "format", f"--cluster-id={cluster}", "--config", "server.properties"],
            cwd=place.folder,
            env=program.environ,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            check=False,
        )
    if done.returncode != 0:
        raise ServiceError(f"kafka: formatting its storage failed; all output is in {log}:\n{tail(log)}")
    (place.folder / _FORMATTED).write_text(f"{cluster}\n")
