"""What was not started from this folder is never touched: not by its id, its port or its address."""

import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from deploy.services import PortTakenError, ServiceError, Services
from deploy.services.launch import boot_id, start_ticks
from deploy.services.process import Daemon, recorded, spawn

PATIENCE_S = 20


@pytest.fixture
def stranger() -> Iterator[subprocess.Popen[bytes]]:
    """A process of somebody else."""
    with subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"]) as process:
        yield process
        process.kill()


@pytest.fixture
def own(tmp_path: Path, environ: dict[str, str]) -> Iterator[Services]:
    """Services of one test, in ``tmp_path / "home"``."""
    mine = Services(tmp_path / "home", environ, print)
    yield mine
    mine.purge()


def write_record(folder: Path, pid: int, *, started: int, boot: str) -> None:
    """Leave the record of a Kafka process behind."""
    folder.mkdir(parents=True)
    (folder / "process.json").write_text(json.dumps({"pid": pid, "started": started, "boot": boot, "command": []}))


@pytest.mark.parametrize(("ticks_apart", "boot"), [(1, boot_id()), (0, "another")])
def test_a_process_that_took_over_a_recorded_id_is_not_touched(
    own: Services, tmp_path: Path, stranger: subprocess.Popen[bytes], ticks_apart: int, boot: str
) -> None:
    """Same process id, another start time or another boot: not ours, so neither stopped, killed nor counted."""
    started = start_ticks(stranger.pid)
    assert started is not None
    write_record(tmp_path / "home" / "kafka", stranger.pid, started=started - ticks_apart, boot=boot)
    assert own.status("kafka").state == "stopped"
    own.stop("kafka")
    with pytest.raises(ServiceError, match="does not run"):
        own.kill("kafka")
    own.purge()
    assert stranger.poll() is None


def test_a_recorded_process_is_ended(own: Services, tmp_path: Path, stranger: subprocess.Popen[bytes]) -> None:
    """The counter-proof: with its true start time the same process is ours, and is killed."""
    started = start_ticks(stranger.pid)
    assert started is not None
    write_record(tmp_path / "home" / "kafka", stranger.pid, started=started, boot=boot_id())
    own.kill("kafka")
    assert stranger.wait(PATIENCE_S) == -signal.SIGKILL


def test_a_spawned_program_is_nobodys_child_and_known_by_its_record(tmp_path: Path) -> None:
    """It has a session of its own, its output in the log, and is gone after SIGTERM."""
    script = "import os, time; print(os.getsid(0) == os.getpid(), os.getcwd(), flush=True); time.sleep(600)"
    record, log = tmp_path / "process.json", tmp_path / "log"
    daemon = spawn(record, log, tmp_path, [sys.executable, "-c", script], dict(os.environ))
    try:
        assert recorded(record) == daemon
        assert daemon.is_running()
        while not log.read_text().endswith("\n"):
            assert daemon.is_running()
        assert log.read_text() == f"True {tmp_path}\n"
    finally:
        daemon.send(signal.SIGTERM)
    assert daemon.wait(PATIENCE_S)
    assert not daemon.is_running()
    assert not daemon.send(signal.SIGTERM)


def test_a_program_that_cannot_be_executed_leaves_no_record(tmp_path: Path) -> None:
    """The error of the kernel reaches the caller."""
    with pytest.raises(ServiceError, match="No such file"):
        spawn(tmp_path / "record", tmp_path / "log", tmp_path, [str(tmp_path / "missing")], {})
    assert recorded(tmp_path / "record") is None


def test_a_process_counts_as_running_while_any_of_its_threads_does(tmp_path: Path) -> None:
    """Its first thread a zombie, its port still taken: a program like Java's is not gone yet."""
    script = """
import ctypes, threading, time
threading.Thread(target=time.sleep, args=(600,)).start()
print("up", flush=True)
ctypes.CDLL(None).pthread_exit(None)
"""
    log = tmp_path / "log"
    daemon = spawn(tmp_path / "record", log, tmp_path, [sys.executable, "-c", script], dict(os.environ))
    try:
        while _state(daemon) != "Z":
            assert daemon.is_running(), log.read_text()
        assert daemon.is_running()
    finally:
        daemon.send(signal.SIGKILL)
    assert daemon.wait(PATIENCE_S)


def _state(daemon: Daemon) -> str:
    return Path(f"/proc/{daemon.pid}/stat").read_text().rsplit(")", 1)[1].split()[0]


@pytest.mark.service
@pytest.mark.timeout(1800)
def test_a_port_that_another_program_took_is_named_and_left_to_it(own: Services) -> None:
    """The ports of a folder are kept, not moved silently: the error says whose they are."""
    own.start("prometheus")
    own.stop("prometheus")
    port = own.port("prometheus", "web")
    with socket.create_server(("127.0.0.1", port)):
        with pytest.raises(PortTakenError, match=f"127.0.0.1:{port}.*services-purge"):
            own.start("prometheus")
        socket.create_connection(("127.0.0.1", port), PATIENCE_S).close()
    assert own.start("prometheus").endswith(str(port))


@pytest.mark.service
@pytest.mark.timeout(1800)
def test_a_service_that_ends_while_starting_is_reported_with_its_last_words(own: Services, tmp_path: Path) -> None:
    """The reason stands in the error, and nothing is left running."""
    own.start("prometheus")
    own.stop("prometheus")
    data = tmp_path / "home" / "prometheus" / "data"
    data.rename(data.with_name("aside"))
    data.write_text("not a folder")
    with pytest.raises(ServiceError, match=r"(?s)ended while it was starting.*not a directory"):
        own.start("prometheus")
    assert own.status("prometheus").state == "stopped"


@pytest.mark.service
@pytest.mark.timeout(1800)
def test_purge_ends_and_removes_what_was_started_here_and_nothing_else(own: Services, tmp_path: Path) -> None:
    """Process, data, ports and addresses go; a file that somebody else put there stays."""
    own.start("prometheus")
    daemon = recorded(tmp_path / "home" / "prometheus" / "process.json")
    foreign = tmp_path / "home" / "notes.txt"
    foreign.write_text("mine")
    own.purge()
    assert daemon is not None
    assert not daemon.is_running()
    assert list((tmp_path / "home").iterdir()) == [foreign]
    foreign.unlink()
    own.purge()
    assert not (tmp_path / "home").exists()
