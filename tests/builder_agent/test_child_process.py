"""The building process by itself: its pipe, its parent, its signals."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from build_events import ids
from build_events.events import (
    CancelDeferred,
    CancelObserved,
    CancelRequested,
    CancelSignalled,
    PhaseStarted,
    RunFinished,
    StreamClosed,
)
from build_events.local_log import LocalLog
from builder_agent.supervised.control import (
    BuildSpec,
    CancelMessage,
    ControlError,
    read_cancels,
    read_spec,
    write_message,
)
from tests.builder_agent.supervised import WAIT_S, Place, is_running, wait_until
from tests.models import chain_model, small_model

MEDIUM = 250  # layers: about 0.5 s of building on two cores
LARGE = 1500  # about 5 s


@contextmanager
def child(spec: BuildSpec | None, *, parent: int | None = None) -> Iterator[tuple["subprocess.Popen[str]", int]]:
    """Start a building process and yield it with the writing end of its pipe; nothing of it is left."""
    read_end, write_end = os.pipe()
    command = [sys.executable, "-m", "builder_agent.supervised.child", str(read_end), str(parent or os.getpid())]
    process = subprocess.Popen(command, pass_fds=(read_end,), stderr=subprocess.PIPE, text=True)
    os.close(read_end)
    try:
        if spec is not None:
            LocalLog.create(Path(spec.log_folder))
            write_message(write_end, spec)
        yield process, write_end
    finally:
        os.close(write_end)
        process.kill()
        process.communicate()


def request(source: str = "ide") -> CancelMessage:
    """Return a request to stop."""
    return CancelMessage.model_validate(
        {
            "request_id": ids.random_id(),
            "source": source,
            "wall_ns": str(time.time_ns()),
            "monotonic_ns": str(time.monotonic_ns()),
        }
    )


def open_phases(place: Place, spec: BuildSpec) -> set[str]:
    """Return the names of the phases that have started."""
    started = place.logged(spec.run_id, PhaseStarted)
    return {record.event.name for record in started if isinstance(record.event, PhaseStarted)}


def test_a_child_whose_parent_died_before_it_looked_ends_itself() -> None:
    """A parent id that is not its parent's any more: SIGKILL, whatever the pipe says."""
    with child(None, parent=1) as (process, _):
        assert process.wait(WAIT_S) == -signal.SIGKILL


def test_a_pipe_that_ends_before_the_specification_ends_the_child(tmp_path: Path) -> None:
    """Without a specification there is nothing to build, and nothing is left."""
    read_end, write_end = os.pipe()
    os.close(write_end)
    command = [sys.executable, "-m", "builder_agent.supervised.child", str(read_end), str(os.getpid())]
    done = subprocess.run(command, pass_fds=(read_end,), cwd=tmp_path, timeout=WAIT_S, check=False)
    os.close(read_end)
    assert done.returncode == 1
    assert list(tmp_path.iterdir()) == []


def test_a_request_before_the_run_ends_the_child_at_once(tmp_path: Path) -> None:
    """It does not wait for the parser, and nothing is left: no run, no file, not even a lock."""
    place = Place(tmp_path, chain_model(LARGE))
    with child(place.spec()) as (process, pipe):
        write_message(pipe, request("ctrl_c"))
        assert process.wait(WAIT_S) == 130
    assert place.runs_in_the_log() == []
    assert place.beside_the_output(locks=True) == []


def test_a_request_is_signalled_and_observed_under_its_own_id(tmp_path: Path) -> None:
    """The child records the flag and the first False; the request itself is the supervisor's to record."""
    place = Place(tmp_path, chain_model(MEDIUM))
    spec, message = place.spec(), request()
    with child(spec) as (process, pipe):
        wait_until(lambda: "Determining refit engines" in open_phases(place, spec), "the long phase")
        write_message(pipe, message)
        assert process.wait(WAIT_S) == 130
    (signalled,) = place.logged(spec.run_id, CancelSignalled)
    (observed,) = place.logged(spec.run_id, CancelObserved)
    assert isinstance(signalled.event, CancelSignalled)
    assert isinstance(observed.event, CancelObserved)
    assert {signalled.event.request_id, observed.event.request_id} == {message.request_id}
    assert place.logged(spec.run_id, CancelRequested) == []


def test_the_end_of_the_pipe_is_a_request(tmp_path: Path) -> None:
    """A supervisor that is gone, but did not take the child along: source ``service``, recorded by the child."""
    place = Place(tmp_path, chain_model(MEDIUM))
    spec = place.spec()
    read_end, write_end = os.pipe()
    command = [sys.executable, "-m", "builder_agent.supervised.child", str(read_end), str(os.getpid())]
    with subprocess.Popen(command, pass_fds=(read_end,)) as process:
        os.close(read_end)
        LocalLog.create(place.log)
        write_message(write_end, spec)
        wait_until(lambda: bool(open_phases(place, spec)), "the first phase")
        os.close(write_end)
        assert process.wait(WAIT_S) == 143
    (asked,) = place.logged(spec.run_id, CancelRequested)
    assert isinstance(asked.event, CancelRequested)
    assert (asked.event.source, asked.event.reason) == ("service", "the supervisor is gone")
    assert place.state(spec.run_id).run.outcome == "cancelled"


@pytest.mark.quiet
def test_sigterm_flushes_the_stream_and_leaves_at_once(tmp_path: Path) -> None:
    """In the middle of a silence: all that was recorded is in the log, and no end is claimed."""
    place = Place(tmp_path, chain_model(LARGE))
    spec = place.spec()
    with child(spec) as (process, pipe):
        wait_until(lambda: "Determining refit engines" in open_phases(place, spec), "the long phase")
        write_message(pipe, request())
        wait_until(lambda: bool(place.logged(spec.run_id, CancelSignalled)), "the flag")
        asked_at = time.monotonic()
        process.terminate()
        assert process.wait(WAIT_S) == 143
        assert time.monotonic() - asked_at < 1
    assert place.logged(spec.run_id, RunFinished) == []
    assert place.logged(spec.run_id, StreamClosed) == []


@pytest.mark.quiet
def test_sigterm_waits_for_the_end_of_a_no_cancel_zone(tmp_path: Path) -> None:
    """While the engine is published or files are put in order, the process stays; SIGKILL bounds that."""
    code = (
        "import pathlib, sys, time\n"
        "from build_events.clock import boot_id, system_clock\n"
        "from build_events.log import InMemoryEventLog\n"
        "from builder_agent.supervised.child_termination import Termination\n"
        "from builder_agent.session import RunSession\n"
        "from builder_agent.settings import RunSettings\n"
        "output = pathlib.Path(sys.argv[1]) / 'out.engine'\n"
        "settings = RunSettings(route='r', output=output, run_id='r', trace_id='0' * 31 + '1', stream_id='s')\n"
        "session = RunSession(settings, writer=InMemoryEventLog(), clock=system_clock, boot_id=boot_id())\n"
        "Termination(session, grace_ns=10**9).install()\n"
        "with session, session.cancel_state.zone('publish'):\n"
        "    print('in the zone', flush=True)\n"
        "    sys.stdin.readline()\n"
        "    print('still here', flush=True)\n"
        "time.sleep(60)\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code, str(tmp_path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stdout.readline() == "in the zone\n"
        process.terminate()
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(0.3)
        process.stdin.write("\n")
        process.stdin.flush()
        assert process.stdout.readline() == "still here\n"
        assert process.wait(WAIT_S) == 143


def test_the_terminals_ctrl_c_is_not_the_childs(tmp_path: Path) -> None:
    """SIGINT to the child itself changes nothing: the supervisor judges it."""
    place = Place(tmp_path, chain_model(MEDIUM))
    spec = place.spec()
    with child(spec) as (process, _):
        wait_until(lambda: bool(open_phases(place, spec)), "the first phase")
        os.kill(process.pid, signal.SIGINT)
        assert process.wait(WAIT_S) == 0
    assert place.state(spec.run_id).run.outcome == "completed"


def test_a_request_while_publishing_waits_for_its_end(tmp_path: Path) -> None:
    """Whenever it comes, a request never leaves a torn file: the engine is whole, or there is none."""
    for delay_ms in range(0, 60, 12):
        place = Place(tmp_path / str(delay_ms), small_model())
        spec = place.spec()
        with child(spec) as (process, pipe):
            wait_until(lambda place=place, spec=spec: bool(open_phases(place, spec)), "the first phase")  # type: ignore[misc] # bound now
            time.sleep(delay_ms / 1000)
            write_message(pipe, request())
            code = process.wait(WAIT_S)
        state = place.state(spec.run_id)
        assert (code, state.run.outcome) in {(0, "completed"), (130, "cancelled")}
        assert place.beside_the_output() == ([] if code else ["model.engine"])
        assert len(place.logged(spec.run_id, CancelDeferred)) <= 1


@pytest.mark.quiet
def test_a_child_is_gone_when_its_parent_is(tmp_path: Path) -> None:
    """The parent gets SIGKILL, alone: the kernel takes the child along."""
    place = Place(tmp_path, chain_model(LARGE))
    code = (
        "import os, subprocess, sys\n"
        "r, w = os.pipe()\n"
        "c = subprocess.Popen([sys.executable, '-m', 'builder_agent.supervised.child', str(r), str(os.getpid())],"
        " pass_fds=(r,), start_new_session=True)\n"
        "os.write(w, sys.argv[1].encode() + b'\\n')\n"
        "print(c.pid, flush=True)\n"
        "c.wait()\n"
    )
    spec = place.spec()
    LocalLog.create(place.log)
    command = [sys.executable, "-c", code, spec.model_dump_json()]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        pid = int(parent.stdout.readline())
        wait_until(lambda: bool(open_phases(place, spec)), "the first phase")
        parent.kill()
        killed_at = time.monotonic()
        wait_until(lambda: not is_running(pid), "the child's end")
        assert time.monotonic() - killed_at < 1


def test_messages_survive_the_pipe(tmp_path: Path) -> None:
    """A specification and requests are read as they were written; a torn line is the end."""
    spec, messages = Place(tmp_path).spec(), [request(), request("service")]
    read_end, write_end = os.pipe()
    assert write_message(write_end, spec)
    for message in messages:
        assert write_message(write_end, message)
    os.write(write_end, b'{"kind":"cancel"')
    os.close(write_end)
    with os.fdopen(read_end, "rb") as pipe:
        assert read_spec(pipe) == spec
        assert list(read_cancels(pipe)) == messages


def test_a_foreign_line_in_the_pipe_is_an_error_that_names_the_field() -> None:
    """Two releases that do not understand each other say so."""
    read_end, write_end = os.pipe()
    os.write(write_end, b'{"kind":"pause"}\n')
    os.close(write_end)
    with os.fdopen(read_end, "rb") as pipe, pytest.raises(ControlError, match="CancelMessage kind"):
        list(read_cancels(pipe))


def test_writing_to_a_child_that_is_gone_says_so(tmp_path: Path) -> None:
    """No exception: the supervisor learns of the end in another way."""
    read_end, write_end = os.pipe()
    os.close(read_end)
    assert not write_message(write_end, Place(tmp_path).spec())
    os.close(write_end)
