"""``enginetrail build`` as its users and scripts see it."""

import importlib
import json
import os
import re
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

import psutil
import pytest

from build_events.local_log import read_run
from builder_agent.supervised.control import BuildSpec
from builder_agent.supervised.supervise import SupervisedResult
from enginetrail.cli import run
from tests.enginetrail.conftest import COMMAND, Build, Cli
from tests.models import chain_model, external_model, small_model

build_module = importlib.import_module("enginetrail.build")
CONTROL_CODE = re.compile(r"\x1b")


def _wait_for_phase(cli: Cli, name: str, *, bound_s: float = 30) -> str:
    """Return the run id once the only run has opened a phase of this name."""
    deadline = time.monotonic() + bound_s
    while time.monotonic() < deadline:
        for folder in (cli.home / "log" / "runs").glob("*"):
            if any(getattr(record.event, "name", None) == name for record in read_run(cli.home / "log", folder.name)):
                return folder.name
        time.sleep(0.02)
    raise AssertionError(f"no run reached {name} within {bound_s} s")


def test_a_build_ends_with_one_json_object_on_stdout(cli: Cli, build: Build) -> None:
    """Scripts read the run id, the outcome and the artifact's digest from stdout."""
    summary = build()
    assert summary["outcome"] == "completed"
    assert summary["exit_code"] == 0
    assert summary["latencies"] is None
    assert summary["complete"]
    assert len(summary["artifact_digest"]) == 64
    rows = cli.query(f"SELECT * FROM runs WHERE run_id = '{summary['run_id']}'")
    assert rows[0]["artifact_digest"] == summary["artifact_digest"]
    assert Path(summary["artifact"]["path"]).stat().st_size == summary["artifact"]["size_bytes"]


def test_without_a_terminal_a_build_prints_plain_lines(cli: Cli) -> None:
    """A CI log shows each phase and no control codes; stdout keeps the result for people."""
    process = cli("build", "model.onnx", "-o", "model.engine", "--route", "r/fp32/sm89")
    assert "finish Building engine (5 steps" in process.stderr
    assert process.stdout.startswith("run ")
    assert not CONTROL_CODE.search(process.stdout + process.stderr)


def test_ctrl_c_inside_the_silent_window_ends_cancelled_with_every_leg(cli: Cli) -> None:
    """The latencies are those of the view, each later than the one before."""
    process = cli.start("build", "large.onnx", "-o", "large.engine", "--route", "r/fp32/sm89", "--format", "json")
    run_id = _wait_for_phase(cli, "Determining refit engines")
    process.send_signal(signal.SIGINT)
    output, _ = process.communicate(timeout=60)
    summary = json.loads(output)
    assert (process.returncode, summary["outcome"], summary["run_id"]) == (130, "cancelled", run_id)
    (row,) = cli.query("SELECT source, observed_ms, returned_ms, cleaned_ms, exited_ms FROM cancellations")
    assert row["source"] == "ctrl_c"
    legs = [row["observed_ms"], row["returned_ms"], row["cleaned_ms"], row["exited_ms"]]
    assert legs == sorted(legs)
    assert legs == [summary["latencies"][f"{leg}_ms"] for leg in ("observed", "returned", "cleaned", "exited")]
    assert not (cli.folder / "large.engine").exists()


def test_ctrl_c_between_the_end_of_the_build_and_its_result_changes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The engine is published, so the script that reads stdout gets its JSON, and 0."""
    (tmp_path / "model.onnx").write_bytes(small_model())
    summarize, pressed = build_module._summary, list[int]()

    def press_first(spec: BuildSpec, result: SupervisedResult) -> dict[str, Any]:
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGINT):
            os.kill(os.getpid(), number)
            pressed.append(number)
        summary: dict[str, Any] = summarize(spec, result)
        return summary

    monkeypatch.setattr(build_module, "_summary", press_first)
    paths = [str(tmp_path / "model.onnx"), "-o", str(tmp_path / "model.engine")]
    arguments = ["--home", str(tmp_path / "home"), "build", *paths, "--route", "r/fp32/sm89", "--format", "json"]
    assert run(arguments, started_ns=time.monotonic_ns()) == 0
    assert json.loads(capsys.readouterr().out)["outcome"] == "completed"
    assert len(pressed) == 3


@pytest.mark.quiet
def test_a_deadline_inside_the_silent_window_kills_and_exits_124(cli: Cli) -> None:
    """The supervised mode keeps a hard deadline that the builder never hears of."""
    # Asked to stop at half the deadline, which is after run.started and inside the window also on a busy machine.
    (cli.folder / "huge.onnx").write_bytes(chain_model(2000))
    summary = cli.json(
        "build", "huge.onnx", "-o", "large.engine", "--route", "r/fp32/sm89", "--deadline", "4", code=124
    )
    assert summary["outcome"] == "killed"
    assert summary["latencies"]["source"] == "ci"
    assert not (cli.folder / "large.engine").exists()


def test_a_retry_follows_the_plan_that_the_cancelled_run_recorded(cli: Cli) -> None:
    """``--retry-of`` alone is enough: the policy comes from the log."""
    process = cli.start("build", "large.onnx", "-o", "m.engine", "--route", "r/fp32/sm89", "--format", "json")
    cancelled = _wait_for_phase(cli, "Determining refit engines")
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=60)
    assert process.returncode == 143
    cli.json("build", "model.onnx", "-o", "m.engine", "--route", "r/fp32/sm89", "--retry-of", cancelled[:8])
    (row,) = cli.query("SELECT retry_of, retry_policy, outcome FROM runs WHERE retry_of IS NOT NULL")
    assert row == {"retry_of": cancelled, "retry_policy": "retry_cold", "outcome": "completed"}


def test_a_retry_of_nothing_or_of_another_route_is_wrong_usage(cli: Cli, build: Build) -> None:
    """A retry without a plan, a run or the same route is refused before anything starts."""
    run_id = build()["run_id"]
    arguments = ("build", "model.onnx", "-o", "model.engine")
    assert "no run" in cli(*arguments, "--route", "r/fp32/sm89", "--retry-of", "feedbeef", code=2).stderr
    assert "keeps the route" in cli(*arguments, "--route", "other", "--retry-of", run_id, code=2).stderr
    assert "no retry plan" in cli(*arguments, "--route", "r/fp32/sm89", "--retry-of", run_id, code=2).stderr
    assert "--retry-of" in cli(*arguments, "--route", "r/fp32/sm89", "--retry-policy", "retry_cold", code=2).stderr


def test_refused_input_exits_2_names_what_and_leaves_no_run(cli: Cli) -> None:
    """A missing model, no model, a missing folder, an unknown target: each is told apart, none is a run."""
    (cli.folder / "text.onnx").write_text("this is no model", encoding="utf-8")
    os.mkfifo(cli.folder / "pipe")
    route = ("--route", "r/fp32/sm89")
    cases = {
        ("build", "none.onnx", "-o", "x.engine", *route): "none.onnx",
        ("build", "text.onnx", "-o", "x.engine", *route): "text.onnx",
        ("build", "model.onnx", "-o", "missing/x.engine", *route): "missing",
        ("build", "model.onnx", "-o", "x.engine", *route, "--target", "sm12"): "sm12",
        ("build", "model.onnx", "-o", "x.engine", *route, "--deadline", "-1"): "--deadline",
        ("build", "model.onnx", "-o", "x.engine", *route, "--deadline", "nan"): "--deadline",
        ("build", "model.onnx", "-o", "x.engine", *route, "--deadline", "inf"): "--deadline",
        ("build", "model.onnx", "-o", "x.engine", *route, "--retry-of", ""): "no run",
        ("build", "model.onnx", "-o", f"{'x' * 250}.engine", *route): "too long",
        ("build", "model.onnx", "-o", "pipe", *route): "pipe",
        ("build", "model.onnx", "-o", "x.engine", "--route", " "): "route",
        ("build", "model.onnx", "-o", "x.engine", "--route", "two\nlines"): "route",
        ("build", "model.onnx", "-o", "x.engine", "--route", "é" * 100): "255",
    }
    for arguments, named in cases.items():
        process = cli(*arguments, code=2)
        assert named in process.stderr, process.stderr
        assert process.stdout == ""
    assert cli.query("SELECT * FROM runs") == []
    assert not list(cli.folder.glob("**/*.engine*"))


def test_a_second_build_to_one_output_is_refused_while_the_first_lives(cli: Cli) -> None:
    """The output lock is taken before the run starts; the first build is not disturbed."""
    first = cli.start("build", "large.onnx", "-o", "m.engine", "--route", "r/fp32/sm89")
    _wait_for_phase(cli, "Determining refit engines")
    refused = cli("build", "model.onnx", "-o", "m.engine", "--route", "r/fp32/sm89", code=2)
    assert "m.engine" in refused.stderr
    first.communicate(timeout=60)
    assert first.returncode == 0
    assert [row["outcome"] for row in cli.query("SELECT outcome FROM runs")] == ["completed"]


def test_an_output_that_the_build_reads_is_refused_and_the_input_survives(cli: Cli) -> None:
    """Neither the model nor its external weights are replaced by an engine."""
    model, weights = external_model()
    (cli.folder / "external.onnx").write_bytes(model)
    (cli.folder / "weights.bin").write_bytes(weights)
    for name, output in (("external.onnx", "external.onnx"), ("external.onnx", "weights.bin")):
        assert output in cli("build", name, "-o", output, "--route", "r", code=2).stderr
    assert (cli.folder / "external.onnx").read_bytes() == model
    assert (cli.folder / "weights.bin").read_bytes() == weights
    (cli.folder / "weights.bin").unlink()
    assert "weights.bin" in cli("build", "external.onnx", "-o", "x.engine", "--route", "r", code=2).stderr
    assert cli.query("SELECT * FROM runs") == []


def test_output_that_nobody_reads_changes_no_exit_code(cli: Cli) -> None:
    """A full disk under the log of a CI job, or a closed pipe, does not make a green build red."""
    command = [COMMAND, "build", "model.onnx", "-o", "m.engine", "--route", "r"]
    with Path("/dev/full").open("w") as full:
        process = subprocess.run(command, cwd=cli.folder, env=cli.environment, stdout=full, stderr=full, check=False)
    assert process.returncode == 0
    assert [row["outcome"] for row in cli.query("SELECT outcome FROM runs")] == ["completed"]


def test_a_service_manager_that_stops_every_process_leaves_a_killed_run(cli: Cli) -> None:
    """SIGTERM to supervisor and build at once ends as 143, as SIGTERM to the supervisor alone does."""
    process = cli.start("build", "large.onnx", "-o", "large.engine", "--route", "r/fp32/sm89", "--format", "json")
    _wait_for_phase(cli, "Determining refit engines")
    parent = psutil.Process(process.pid)
    for one in (parent, *parent.children()):
        one.terminate()
    output, _ = process.communicate(timeout=60)
    assert (process.returncode, json.loads(output)["outcome"]) == (143, "killed")


def test_a_crash_says_what_ended_the_process(cli: Cli) -> None:
    """The signal stands in the summary and in ``show``."""
    process = cli.start("build", "large.onnx", "-o", "large.engine", "--route", "r/fp32/sm89", "--format", "json")
    run_id = _wait_for_phase(cli, "Determining refit engines")
    psutil.Process(process.pid).children()[0].kill()
    output, _ = process.communicate(timeout=60)
    summary = json.loads(output)
    assert (process.returncode, summary["outcome"]) == (1, "crashed")
    assert "SIGKILL" in summary["error_message"]
    assert "SIGKILL" in cli("show", run_id).stdout
