"""What is already there is used: a service by its address, a program by PATH, a build from the cache."""

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from deploy.services import NAMES, MissingToolError, ServiceError, Services, UnknownServiceError
from deploy.services.services import SERVICES

service = pytest.mark.service
cold = pytest.mark.timeout(1800)


@pytest.fixture
def heard() -> list[str]:
    """What a person was told."""
    return []


@pytest.fixture
def bare(tmp_path: Path, environ: dict[str, str], heard: list[str]) -> Iterator[Services]:
    """Services on a machine that has nothing: PATH leads to ``tmp_path / "bin"``, the cache is empty."""
    (tmp_path / "bin").mkdir()
    nothing = {"PATH": str(tmp_path / "bin"), "XDG_CACHE_HOME": str(tmp_path / "cache"), "HOME": environ["HOME"]}
    mine = Services(tmp_path / "bare", nothing, heard.append)
    yield mine
    mine.purge()


def program_of(services: Services, name: str) -> Path:
    """Return the program that a running service is."""
    services.start(name)
    return Path(f"/proc/{services.status(name).pid}/exe").resolve()


@pytest.mark.parametrize(
    ("name", "tool", "package"),
    [
        ("kafka", "java", "openjdk-17-jre-headless"),
        ("jaeger", "go", "golang-go"),
        ("otelcol", "go", "golang-go"),
        ("prometheus", "go", "golang-go"),
    ],
)
def test_a_missing_tool_is_named_with_what_to_install(bare: Services, name: str, tool: str, package: str) -> None:
    """The error names the tool, a package, and the two ways to do without it."""
    with pytest.raises(MissingToolError) as caught:
        bare.start(name)
    text = str(caught.value)
    assert f"needs `{tool}`, which is not on PATH" in text
    assert package in text
    assert "on PATH, or give a running one" in text
    assert SERVICES[name].variable in text


def test_kafka_without_maven_names_maven(bare: Services, tmp_path: Path) -> None:
    """Java runs Kafka, Maven obtains it: each is missed by its own name."""
    java = shutil.which("java")
    assert java is not None
    (tmp_path / "bin" / "java").symlink_to(Path(java).resolve())
    with pytest.raises(MissingToolError, match=r"needs `mvn`.*install Apache Maven"):
        bare.start("kafka")


def test_an_old_java_is_named_with_its_version(bare: Services, tmp_path: Path) -> None:
    """Java 11 would die with a class version that tells nobody anything."""
    script(tmp_path / "bin" / "java", """echo 'openjdk version "11.0.20" 2023-07-18' >&2""")
    with pytest.raises(MissingToolError, match="is Java 11: install a Java 17 runtime or newer"):
        bare.start("kafka")


def script(path: Path, line: str) -> None:
    """Write a program of one line of shell."""
    path.write_text(f"#!/bin/sh\n{line}\n")
    path.chmod(0o755)


@service
@cold
def test_a_program_on_path_is_used_and_nothing_is_built(bare: Services, tmp_path: Path, services: Services) -> None:
    """With a prometheus of a fitting version on PATH, Go is not needed."""
    found = tmp_path / "bin" / "prometheus"
    shutil.copy(program_of(services, "prometheus"), found)
    assert program_of(bare, "prometheus") == found
    assert not (tmp_path / "cache").exists()


def test_a_program_on_path_of_another_version_is_not_used(bare: Services, tmp_path: Path, heard: list[str]) -> None:
    """It is said, and what is missing to build the right one as well."""
    script(tmp_path / "bin" / "prometheus", "echo 'prometheus, version 2.42.0+ds (branch: debian/sid)'")
    with pytest.raises(MissingToolError, match="needs `go`"):
        bare.start("prometheus")
    refused = f"{tmp_path}/bin/prometheus is not used: its version is 2.42.0, wanted is 3 up to, not including, 4"
    assert refused in heard


@service
@pytest.mark.timeout(600)
def test_kafkas_own_scripts_on_path_are_used(bare: Services, tmp_path: Path, kafka: Services) -> None:
    """An installed Kafka of the right version formats its storage and runs, without Maven."""
    command = Path(f"/proc/{kafka.status('kafka').pid}/cmdline").read_text().split("\0")
    java, jars = command[0], command[command.index("-cp") + 1]
    for name, main in (("kafka-server-start.sh", "kafka.Kafka"), ("kafka-storage.sh", "kafka.tools.StorageTool")):
        script(tmp_path / "bin" / name, f'exec {java} $KAFKA_HEAP_OPTS $KAFKA_LOG4J_OPTS -cp "{jars}" {main} "$@"')
    assert bare.start("kafka") != kafka.address("kafka")
    assert not (tmp_path / "cache").exists()


@service
@pytest.mark.timeout(600)
def test_a_service_given_by_address_is_used_and_never_ended(
    tmp_path: Path, environ: dict[str, str], kafka: Services
) -> None:
    """``KAFKA_BOOTSTRAP`` of a running broker: nothing is started, stop and purge leave it, kill refuses."""
    given = kafka.address("kafka")
    guest = Services(tmp_path / "guest", {**environ, "KAFKA_BOOTSTRAP": given}, print)
    assert guest.start("kafka") == given
    assert (guest.status("kafka").state, guest.address("kafka")) == ("elsewhere", given)
    with pytest.raises(ServiceError, match="does not run"):
        guest.kill("kafka")
    guest.stop("kafka")
    assert (tmp_path / "guest" / "env").read_text() == f"KAFKA_BOOTSTRAP={given}\n"
    guest.purge()
    assert kafka.status("kafka").state == "running"


@service
@pytest.mark.timeout(600)
def test_an_address_read_back_from_the_env_file_is_our_own(environ: dict[str, str], kafka: Services) -> None:
    """A shell that has read ``.services/env`` still stops and starts the folder's own services."""
    again = Services(kafka.log("kafka").parents[1], {**environ, "KAFKA_BOOTSTRAP": kafka.address("kafka")}, print)
    assert again.status("kafka").state == "running"


def test_a_given_address_where_nothing_answers_is_an_error(tmp_path: Path, environ: dict[str, str]) -> None:
    """It says which variable, and both ways out."""
    dead = Services(tmp_path / "home", {**environ, "KAFKA_BOOTSTRAP": "127.0.0.1:1"}, print)
    with pytest.raises(ServiceError, match=r"KAFKA_BOOTSTRAP=127\.0\.0\.1:1 does not answer.*unset KAFKA_BOOTSTRAP"):
        dead.start("kafka")


def test_an_unknown_name_is_refused_with_the_known_ones(tmp_path: Path) -> None:
    """Every method takes the four names alone."""
    with pytest.raises(UnknownServiceError, match=", ".join(NAMES)):
        Services(tmp_path / "home", dict(os.environ)).start("zookeeper")


def test_a_service_never_started_has_no_address(tmp_path: Path, environ: dict[str, str]) -> None:
    """Asking makes no folder and chooses no port."""
    fresh = Services(tmp_path / "home", environ)
    assert fresh.status("jaeger").address is None
    with pytest.raises(ServiceError, match="never started"):
        fresh.address("jaeger")
    assert not (tmp_path / "home").exists()
