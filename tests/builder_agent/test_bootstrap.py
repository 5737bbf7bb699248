"""The composition root of embedded use: where the home is, whose trace it joins, what a start does first."""

import signal
import subprocess
import sys
from pathlib import Path

import pytest

import builder_agent
from build_events import fold
from build_events.events import ArtifactQuarantined, RunLost
from builder_agent.errors import UsageError
from builder_agent.files.output_folder import temp_path, temporaries
from builder_agent.telemetry.surroundings import trace_context_from
from tests.builder_agent.builds import folded, of_type, records_at
from tests.builder_agent.test_observe_signals import ROOT, host


def test_the_home_is_the_argument_else_the_environment_else_here(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And the output is relative to where the run was opened."""
    monkeypatch.chdir(tmp_path)
    for folder, environment, argument in ((".enginetrail", None, None), ("env", "env", None), ("arg", "env", "arg")):
        if environment is not None:
            monkeypatch.setenv("ENGINETRAIL_HOME", environment)
        else:
            monkeypatch.delenv("ENGINETRAIL_HOME", raising=False)
        with builder_agent.observe(route="r", output="out.engine", home=argument) as run:
            pass
        assert folded(tmp_path / folder, run.run_id).run.outcome == "failed"


@pytest.mark.parametrize("what", ["route", "output", "retry_of"])
def test_what_events_cannot_hold_is_refused_before_the_run(tmp_path: Path, what: str) -> None:
    """A path of bytes that are no UTF-8 is named in the error, and nothing is begun."""
    arguments = {"route": "r", "output": str(tmp_path / "out.engine"), what: str(tmp_path / "caf\udce9")}
    with pytest.raises(UsageError, match=rf"{what}:? '.*caf\\udce9' (is not UTF-8.*rename it|holds characters)"):
        builder_agent.observe(**arguments, home=tmp_path / "home")  # type: ignore[arg-type] # all of them are texts
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        ("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", True),
        ("cc-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01-what-a-later-version-adds", True),
        ("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01-more", False),
        ("ff-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", False),
        ("00-00000000000000000000000000000000-b7ad6b7169203331-01", False),
        ("00-0af7651916cd43dd8448eb211c80319c-0000000000000000-01", False),
        ("00-0AF7651916CD43DD8448EB211C80319C-b7ad6b7169203331-01", False),
        ("nonsense", False),
    ],
)
def test_a_run_joins_the_trace_that_it_was_started_in(given: str, kept: bool) -> None:  # noqa: FBT001 # a case
    """W3C Trace Context; anything else gets a new trace."""
    trace = trace_context_from({"TRACEPARENT": given})
    assert (trace.trace_id == given[3:35]) == kept
    assert trace.parent_span_id == (given[36:52] if kept else None)
    assert len(trace.trace_id) == 32
    assert trace.trace_id.strip("0")
    assert trace_context_from({}) != trace_context_from({})


def test_a_start_declares_what_a_killed_host_left_and_quarantines_its_file(tmp_path: Path) -> None:
    """The killed run is lost, its temporary file is moved and not deleted, and the new run is not held up."""
    with host(tmp_path, "build") as process:
        process.send_signal(signal.SIGKILL)
        process.wait(20)
    (folder,) = (tmp_path / "home" / "log" / "runs").iterdir()
    killed, target = folder.name, tmp_path / "out.engine"
    temp_path(target, killed).write_bytes(b"half an engine")
    with builder_agent.observe(route="r", output=target, home=tmp_path / "home") as run:
        pass
    assert folded(tmp_path / "home", run.run_id).run.complete
    found = records_at(tmp_path / "home", killed)
    state = fold.fold_run(found)
    assert state is not None
    assert (state.run.outcome, state.run.complete) == ("lost", False)
    assert len(of_type(found, RunLost)) == 1
    assert Path(of_type(found, ArtifactQuarantined)[0].quarantine).read_bytes() == b"half an engine"
    assert temporaries(target) == []


def test_the_agent_works_where_only_the_base_packages_are_used(tmp_path: Path) -> None:
    """A run without a build needs neither TensorRT nor CUDA."""
    output, home = str(tmp_path / "out.engine"), str(tmp_path / "home")
    code = (
        "import builder_agent, sys\n"
        f"with builder_agent.observe(route='r', output={output!r}, home={home!r}): pass\n"
        "print({'tensorrt', 'tensorrt_rtx', 'cuda', 'duckdb', 'onnx', 'numpy'} & set(sys.modules))\n"
    )
    ran = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == "set()"
