"""A build that was killed whole, as the commands see it afterwards."""

import random
import signal
import time
from pathlib import Path

import psutil
import pytest

from tests.enginetrail.conftest import Build, Cli
from tests.seeds import seeds

HOLD = 4
SILENT_S = 2.0  # of the large model's build, from its first phase


def kill_whole(pid: int) -> None:
    """SIGKILL a build and its child at once."""
    parent = psutil.Process(pid)
    children = parent.children(recursive=True)
    for process in (parent, *children):
        process.send_signal(signal.SIGKILL)
    psutil.wait_procs(children, timeout=10)


def _wait_for_run(cli: Cli, bound_s: float = 30) -> None:
    deadline = time.monotonic() + bound_s
    while not list((cli.home / "log" / "runs").glob("*/*.jsonl")):
        assert time.monotonic() < deadline, "the build did not start"
        time.sleep(0.01)


@pytest.mark.fault
@pytest.mark.parametrize("seed", seeds())
def test_a_killed_build_is_lost_leaves_nothing_and_the_gate_holds(cli: Cli, build: Build, seed: int) -> None:
    """After the next command the run is lost, the target is untouched, and no gate passes on it."""
    process = cli.start("build", "large.onnx", "-o", "model.engine", "--route", "r/fp32/sm89")
    _wait_for_run(cli)
    time.sleep(random.Random(seed).uniform(0, SILENT_S))
    kill_whole(process.pid)
    process.communicate(timeout=10)
    (run,) = cli.query("SELECT run_id, outcome, complete FROM runs")
    assert (run["outcome"], run["complete"]) == ("lost", False)
    assert not (cli.folder / "model.engine").exists()
    assert not list(cli.folder.glob(".*.enginetrail-tmp"))
    gate = cli.json("gate", "evaluate", "r/fp32/sm89", code=HOLD)
    codes = {reason["code"] for finding in gate["gates"] for reason in finding["reasons"]}
    assert "no_completed_run" in codes
    sbat = cli.json("accept", "stuck-build", run["run_id"], code=HOLD)
    assert any(reason["code"] == "run_lost" for finding in sbat["criteria"] for reason in finding["reasons"])
    build("--retry-of", run["run_id"])  # and the output is free again
    assert Path(cli.folder / "model.engine").exists()
