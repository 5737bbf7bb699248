"""Signals, interrupts and forks of a host that embeds the agent; each host is a process of its own."""

import json
import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import builder_agent
from build_events.events import CancelRequested, ErrorRecorded
from tests.builder_agent.builds import folded, of_type, records_at

ROOT = Path(__file__).parents[2]
HOSTS = "tests.builder_agent.hosts"


@contextmanager
def host(folder: Path, way: str, handler: str = "default") -> Iterator[subprocess.Popen[str]]:
    """Start a host that builds and yield it once its builder calls back; it is killed if it does not end."""
    command = [sys.executable, "-m", f"{HOSTS}.building", str(folder), way, handler]
    process = subprocess.Popen(
        command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    try:
        assert process.stdout is not None
        assert json.loads(process.stdout.readline()) == "building"
        yield process
    finally:
        if process.poll() is None:
            process.kill()
        process.wait()
        for stream in (process.stdout, process.stderr):
            assert stream is not None
            stream.close()


def ending(process: subprocess.Popen[str]) -> dict[str, Any]:
    """Return what the host said at its end."""
    out, _ = process.communicate(timeout=60)
    result: dict[str, Any] = json.loads(out.splitlines()[-1])
    return result


@pytest.mark.parametrize("way", ["build", "lines", "build+signals", "lines+signals"])
def test_ctrl_c_cancels_the_build_is_recorded_and_raised_again(tmp_path: Path, way: str) -> None:
    """In every way of embedding, in a silent window of the builder too; TensorRT alone would lose it."""
    with host(tmp_path, way) as process:
        process.send_signal(signal.SIGINT)
        said = ending(process)
    assert (said["outcome"], said["raised"]) == ("cancelled", "KeyboardInterrupt")
    state = folded(tmp_path / "home", said["run_id"])
    assert (state.run.outcome, state.run.complete) == ("cancelled", True)
    assert state.cancellation is not None
    assert state.cancellation.source == "ctrl_c"
    assert None not in (state.cancellation.observed_ns, state.cancellation.returned_ns, state.cancellation.cleaned_ns)
    assert not (tmp_path / "out.engine").exists()


@pytest.mark.fault
def test_no_ctrl_c_is_lost_among_dense_callbacks_in_the_main_thread(tmp_path: Path) -> None:
    """The hardest place: the builder calls back every two microseconds, and each entry may run the handler."""
    for number in range(3 * int(os.environ.get("ENGINETRAIL_REPEAT", "3"))):
        folder = tmp_path / str(number)
        folder.mkdir()
        with host(folder, "lines") as process:
            time.sleep(random.Random(number).uniform(0, 0.006))
            process.send_signal(signal.SIGINT)
            said = ending(process)
        assert (said["outcome"], said["raised"]) == ("cancelled", "KeyboardInterrupt"), number
        assert folded(folder / "home", said["run_id"]).run.complete


def test_a_burst_of_a_thousand_interrupts_neither_hangs_nor_crashes(tmp_path: Path) -> None:
    """The request path is safe inside a handler that interrupts itself."""
    with host(tmp_path, "build+signals") as process:
        for _ in range(1000):
            process.send_signal(signal.SIGINT)
        said = ending(process)
    # An interrupt that comes when the run has given the handlers back does to the host what it always does.
    assert process.returncode in {0, -signal.SIGINT}
    assert (said["outcome"], said["raised"]) == ("cancelled", "KeyboardInterrupt")
    state = folded(tmp_path / "home", said["run_id"])
    assert state.run.complete
    assert of_type(records_at(tmp_path / "home", said["run_id"]), CancelRequested)


def test_further_presses_of_ctrl_c_are_tolerated_while_the_run_ends(tmp_path: Path) -> None:
    """Everything is still recorded, and one KeyboardInterrupt is raised."""
    with host(tmp_path, "build") as process:
        for _ in range(5):
            process.send_signal(signal.SIGINT)
            time.sleep(0.05)
        said = ending(process)
    assert (said["outcome"], said["raised"]) == ("cancelled", "KeyboardInterrupt")
    assert folded(tmp_path / "home", said["run_id"]).run.complete


def test_a_service_stop_is_recorded_and_then_does_what_it_would_have_done(tmp_path: Path) -> None:
    """SIGTERM with its default action ends the process, after the run has ended."""
    with host(tmp_path, "build+signals") as process:
        process.send_signal(signal.SIGTERM)
        process.wait(60)
    assert process.returncode == -signal.SIGTERM
    (folder,) = (tmp_path / "home" / "log" / "runs").iterdir()
    state = folded(tmp_path / "home", folder.name)
    assert (state.run.outcome, state.run.complete) == ("cancelled", True)
    assert state.cancellation is not None
    assert state.cancellation.source == "service"


def test_a_host_that_exits_from_its_own_handler_is_waited_for(tmp_path: Path) -> None:
    """SystemExit in the waiting thread is a service stop; the exit code is the host's."""
    with host(tmp_path, "build", "exit") as process:
        process.send_signal(signal.SIGTERM)
        said = ending(process)
    assert process.returncode == 7
    assert said["outcome"] == "cancelled"
    state = folded(tmp_path / "home", said["run_id"])
    assert state.cancellation is not None
    assert state.cancellation.source == "service"


def test_a_python_handler_of_the_host_is_called_too(tmp_path: Path) -> None:
    """Chained, and nothing is raised in its place."""
    with host(tmp_path, "build+signals", "python") as process:
        process.send_signal(signal.SIGINT)
        said = ending(process)
    assert (said["outcome"], said["raised"], said["handler_calls"]) == ("cancelled", "nothing", 1)


def test_a_signal_that_the_host_ignores_stays_ignored(tmp_path: Path) -> None:
    """A background job does not end because of a Ctrl-C in its terminal."""
    with host(tmp_path, "build+signals", "ignore") as process:
        process.send_signal(signal.SIGINT)
        said = ending(process)
    assert (said["outcome"], said["raised"]) == ("completed", "nothing")


def test_handlers_are_put_back_and_need_the_main_thread(tmp_path: Path) -> None:
    """Without signals=True none is installed at all."""
    before = signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)
    options: dict[str, Any] = {"route": "r", "output": tmp_path / "o", "home": tmp_path / "home"}
    with builder_agent.observe(**options):
        assert (signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)) == before
    with builder_agent.observe(**options, signals=True):
        assert signal.getsignal(signal.SIGTERM) != before[1]
    assert (signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)) == before
    errors: list[BaseException] = []

    def elsewhere() -> None:
        try:
            with builder_agent.observe(**options, signals=True):
                pass
        except builder_agent.UsageError as error:
            errors.append(error)

    thread = threading.Thread(target=elsewhere)
    thread.start()
    thread.join()
    assert "main thread only" in str(errors[0])
    with builder_agent.observe(**options):
        pass  # the refused run gave its lock back


def test_an_interrupt_outside_the_builder_is_a_cancelled_run(tmp_path: Path) -> None:
    """A Ctrl-C while the host parses its model: recorded, obeyed at once, raised again."""
    run = builder_agent.observe(route="r", output=tmp_path / "o", home=tmp_path / "home")
    with pytest.raises(KeyboardInterrupt), run:
        raise KeyboardInterrupt
    state = folded(tmp_path / "home", run.run_id)
    assert (state.run.outcome, state.run.complete) == ("cancelled", True)
    assert state.cancellation is not None
    assert state.cancellation.observed_ns is not None


def test_children_that_a_host_forks_inside_a_run_change_nothing_of_it(tmp_path: Path) -> None:
    """They leave the body as they like; the run, its lock, its stream and its artifact stay the parent's."""
    command = [sys.executable, "-m", f"{HOSTS}.forking", str(tmp_path)]
    ran = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60, check=True)
    run_id, _, codes = ran.stdout.strip().partition(" ")
    assert codes == "[0, 1, 5, 6]"
    state = folded(tmp_path / "home", run_id)
    assert (state.run.outcome, state.run.complete, state.anomalies) == ("completed", True, ())
    assert not of_type(records_at(tmp_path / "home", run_id), ErrorRecorded)
    assert (tmp_path / "out.engine").exists()


def test_a_host_that_never_ends_its_run_can_still_exit(tmp_path: Path) -> None:
    """The run's thread does not hold the interpreter; the run is then lost, as it must be."""
    code = (
        "import builder_agent, sys\n"
        "run = builder_agent.observe(route='r', output='out', home='home')\n"
        "run.__enter__()\n"
        "print(run.run_id)\n"
    )
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    ran = subprocess.run(
        [sys.executable, "-c", code],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        timeout=20,
        check=True,
    )
    assert folded(tmp_path / "home", ran.stdout.strip()).run.outcome is None


def test_an_engine_that_does_not_fit_on_the_disk_fails_the_run_and_is_raised(tmp_path: Path) -> None:
    """artifact_write, with the file; the old artifact stays and no temporary file is left."""
    (tmp_path / "out.engine").write_bytes(b"old")
    code = (
        "import builder_agent, resource, signal\n"
        "from tests import models\n"
        "from tests.builder_agent.builds import objects\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, 200_000))\n"
        "run = builder_agent.observe(route='r', output='out.engine', home='home')\n"
        "try:\n"
        "    with run:\n"
        "        run.build(*objects(models.small_model()))\n"
        "except builder_agent.ArtifactWriteError as error:\n"
        "    print(run.run_id, error)\n"
    )
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    ran = subprocess.run(
        [sys.executable, "-c", code],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    run_id, _, message = ran.stdout.strip().partition(" ")
    assert "File too large" in message
    state = folded(tmp_path / "home", run_id)
    assert (state.run.outcome, state.run.error_type, state.run.complete) == ("failed", "artifact_write", True)
    assert (tmp_path / "out.engine").read_bytes() == b"old"
    assert sorted(path.name for path in tmp_path.iterdir()) == [".out.engine.enginetrail-lock", "home", "out.engine"]
