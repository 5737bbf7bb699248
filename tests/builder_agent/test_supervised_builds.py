"""Supervised builds by the real builder that end by themselves, and what is refused before one begins."""

import contextlib
import fcntl
import os
import resource
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from build_events.events import BaselineRecorded, ErrorRecorded, PhaseStarted, ProcessExited, RetryPlanned
from builder_agent.files.output_folder import lock_path
from builder_agent.supervised.control import BuildSpec
from tests.builder_agent.supervised import Place, assert_in_order, children_of
from tests.models import dynamic_model, small_model, unsupported_model


def test_a_healthy_build_is_recorded_whole_and_published(tmp_path: Path) -> None:
    """The engine stands at its target, every promise is kept, and the child is gone."""
    place = Place(tmp_path, small_model())
    result = place.build()
    state = assert_in_order(place, result)
    assert (result.exit_code, state.run.outcome, state.run.mode) == (0, "completed", "supervised")
    assert place.beside_the_output() == ["model.engine"]
    assert {phase.status for phase in state.phases} == {"finished"}
    (exited,) = place.logged(result.run_id, ProcessExited)
    assert exited.event.model_dump(include={"exit_code", "signal", "signals_sent"}) == {
        "exit_code": 0,
        "signal": None,
        "signals_sent": [],
    }
    assert children_of(os.getpid()) == []


def test_the_caller_sees_every_event_that_is_logged(tmp_path: Path) -> None:
    """What the tail tells, stream by stream, is what the log holds, in order."""
    place = Place(tmp_path, small_model())
    result = place.build()
    stored = {record.event_id for record in place.logged(result.run_id, PhaseStarted)}
    seen = [record for record in place.events if isinstance(record.event, PhaseStarted)]
    assert {record.event_id for record in seen} == stored
    assert [record.sequence for record in seen] == sorted(record.sequence for record in seen)


def test_the_target_is_what_was_asked_for(tmp_path: Path) -> None:
    """``sm89`` is read back from the builder's configuration, and its absence leaves the library's default."""
    place = Place(tmp_path, small_model())
    targets = []
    for target in ("sm89", None):
        result = place.build(place.spec(target=target))
        (baseline,) = place.logged(result.run_id, BaselineRecorded)
        assert isinstance(baseline.event, BaselineRecorded)
        targets.append(baseline.event.targets)
    assert targets == [["sm89"], []]


def test_an_operator_that_the_parser_does_not_know_is_a_failed_run(tmp_path: Path) -> None:
    """The run ends failed with the parser's own text, each error once, and plans what to do next."""
    place = Place(tmp_path, unsupported_model())
    result = place.build()
    state = assert_in_order(place, result)
    assert (result.exit_code, state.run.outcome, state.run.error_type) == (1, "failed", "parser_error")
    assert "NoSuchOperator" in (state.run.error_message or "")
    (error,) = place.logged(result.run_id, ErrorRecorded)
    assert isinstance(error.event, ErrorRecorded)
    assert (error.event.component, error.event.code) == ("parser", "INVALID_NODE")
    assert len(place.logged(result.run_id, RetryPlanned)) == 1
    assert place.beside_the_output() == []


def test_a_build_without_one_callback_ends_failed_in_the_builders_words(tmp_path: Path) -> None:
    """An input of unknown size without a profile: the builder says no before the first phase."""
    place = Place(tmp_path, dynamic_model())
    result = place.build()
    state = assert_in_order(place, result)
    assert (result.exit_code, state.run.outcome, state.run.error_type) == (1, "failed", "builder_error")
    assert "optimization profile" in (state.run.error_message or "")
    assert state.phases == ()


@pytest.mark.parametrize(
    ("content", "changes", "said"),
    [
        (None, {}, "No such file"),
        (b"", {}, "no ONNX model"),
        (b"hello, this is text\n" * 50, {}, "no ONNX model"),
        (b"\x89PNG\r\n\x1a\n" + b"a" * 100, {}, "no ONNX model"),
        (small_model()[:-100], {}, "no ONNX model"),
        (small_model(), {"model": "/"}, "Is a directory"),
        (small_model(), {"output": "/no/such/folder/out.engine"}, "/no/such/folder: it does not exist"),
        (small_model(), {"output": "/"}, "is a folder"),
        (small_model(), {"target": "sm42"}, "sm75, sm80, sm86, sm89, sm120, sm121"),
    ],
    ids=["missing", "empty", "text", "image", "cut", "folder", "no-folder", "output-folder", "target"],
)
def test_what_cannot_be_built_is_refused_and_leaves_nothing(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], content: bytes | None, changes: dict[str, str], said: str
) -> None:
    """Wrong usage and unreadable input exit 2, say what, where and what next, and leave no run."""
    place = Place(tmp_path, content or b"")
    if content == b"":
        place.model.touch()
    result = place.build(place.spec(**changes))
    errors = capfd.readouterr().err
    assert (result.exit_code, result.state) == (2, None)
    assert said in errors
    assert place.runs_in_the_log() == []
    assert place.beside_the_output(locks=True) == []


def test_a_second_build_to_one_output_is_refused(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """While somebody holds the output's lock, a build exits 2 and says who to wait for."""
    place = Place(tmp_path, small_model())
    spec: BuildSpec = place.spec()
    with lock_path(place.output).open("w", encoding="ascii") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        result = place.build(spec)
    assert (result.exit_code, result.state) == (2, None)
    assert "another build is writing it" in capfd.readouterr().err
    assert place.runs_in_the_log() == []


@contextlib.contextmanager
def little_room(folder: Path, size: int) -> Iterator[None]:
    """Make writing in ``folder`` fail: a full disk where this user may mount one, else a limit on files."""
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(folder)]
    mounted = shutil.which("mount") and subprocess.run(mount, capture_output=True, check=False).returncode == 0
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    if not mounted:
        resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        if mounted:
            subprocess.run(["umount", str(folder)], check=True)
        else:
            resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_an_engine_that_does_not_fit_is_a_failed_run(tmp_path: Path) -> None:
    """The disk is full: ``artifact_write``, exit 1, and no partial file anywhere."""
    place = Place(tmp_path, small_model())
    with little_room(place.output.parent, 128 << 10):
        result = place.build()
        state = assert_in_order(place, result)
        assert (result.exit_code, state.run.outcome, state.run.error_type) == (1, "failed", "artifact_write")
        assert place.beside_the_output() == []
