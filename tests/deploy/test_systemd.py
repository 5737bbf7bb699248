"""The units, by systemd's own checks and against the ladder of a build."""

import shutil
import subprocess
from pathlib import Path

import pytest

from tests.deploy.budget import cancel_budget_s, seconds
from tests.deploy.files import UNITS, lines, settings_of
from tests.enginetrail.conftest import COMMAND

MAX_EXPOSURE = 2.5  # of 10; systemd calls under 5 "OK"


@pytest.fixture(scope="module")
def analyze() -> str:
    """Return systemd's checker. A machine without it fails here: the units would be unchecked."""
    found = shutil.which("systemd-analyze")
    assert found, "systemd-analyze is not on PATH: install systemd (Debian and Ubuntu: systemd)"
    return found


def _check(*command: str) -> None:
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stderr) == (0, ""), done.stdout + done.stderr


@pytest.mark.parametrize("unit", UNITS, ids=lambda path: path.name)
def test_systemd_takes_the_unit(unit: Path, analyze: str, tmp_path: Path) -> None:
    """Every setting is known and has a value that systemd understands; the program is there."""
    text = unit.read_text()
    assert "/opt/enginetrail/bin/enginetrail" in text
    copy = tmp_path / unit.name
    copy.write_text(text.replace("/opt/enginetrail/bin/enginetrail", COMMAND))
    _check(analyze, "verify", "--man=no", str(copy))


@pytest.mark.parametrize("unit", UNITS, ids=lambda path: path.name)
def test_the_unit_is_confined(unit: Path, analyze: str) -> None:
    """By systemd's own measure of what a service could do to its host."""
    limit = round(MAX_EXPOSURE * 10)
    _check(analyze, "security", "--offline=true", "--no-pager", f"--threshold={limit}", str(unit))


def test_a_stop_leaves_a_build_the_time_of_its_ladder() -> None:
    """SIGTERM goes to the supervising parent alone, and systemd's SIGKILL comes after ours."""
    (line,) = (line for line in lines() if line.where == "enginetrail-build@.service")
    (unit,) = (settings_of(path) for path in UNITS if path.name == line.where)
    assert (unit["KillMode"], unit["KillSignal"]) == (["mixed"], ["SIGTERM"])
    assert seconds(unit["TimeoutStopSec"][0]) >= cancel_budget_s(line.arguments)


def test_systemd_repeats_the_collector_and_never_a_build() -> None:
    """Retries of a build are decided by its route's policy."""
    restart = {path.name: settings_of(path)["Restart"] for path in UNITS}
    assert restart == {"enginetrail-build@.service": ["no"], "enginetrail-collector.service": ["on-failure"]}
