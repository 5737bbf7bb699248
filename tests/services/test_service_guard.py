"""The guard itself, over small test files of its own."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
HEAD = "import pytest\n\n"
SKIPPED = f"{HEAD}@pytest.mark.service\ndef test_one():\n    pytest.skip('no broker')\n"
PLAIN = f"{HEAD}def test_one():\n    pass\n\n\ndef test_two():\n    pytest.skip('not here')\n"


@pytest.mark.parametrize(
    ("body", "variables", "code", "says"),
    [
        (SKIPPED, {}, 1, "a test marked `service` starts what it needs, or fails"),
        (PLAIN, {}, 0, "1 passed, 1 skipped"),
        (PLAIN, {"CI": "true"}, 4, "CI ran no test marked `service`"),
    ],
    ids=["a skipped service test fails", "other tests may skip", "CI without service tests is an error"],
)
def test_a_service_test_runs_or_fails(
    tmp_path: Path, body: str, variables: dict[str, str], code: int, says: str
) -> None:
    """Exit code and words of a run under the guard."""
    (tmp_path / "test_small.py").write_text(body)
    (tmp_path / "pytest.ini").write_text("[pytest]\nmarkers =\n    service: needs one\n")
    environ = {key: value for key, value in os.environ.items() if key != "CI"} | {"PYTHONPATH": str(ROOT)} | variables
    command = [sys.executable, "-m", "pytest", "-p", "tests.service_guard", "-p", "no:cacheprovider", str(tmp_path)]
    done = subprocess.run(command, cwd=tmp_path, env=environ, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == code, done.stdout + done.stderr
    assert says in done.stdout + done.stderr
