"""The guard itself, over small test files of its own."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
HEAD = "import pytest\n\n"
SKIPPED = f"{HEAD}@pytest.mark.service\ndef test_one():\n    pytest.skip('no broker')\n"
RUNS = f"{HEAD}@pytest.mark.service\ndef test_one():\n    pass\n"
PLAIN = f"{HEAD}def test_one():\n    pass\n\n\ndef test_two():\n    pytest.skip('not here')\n"


@pytest.mark.parametrize("workers", ["0", "1"], ids=["here", "in a worker"])
@pytest.mark.parametrize(
    ("body", "ci", "code", "says"),
    [
        (SKIPPED, False, 1, "a test marked `service` starts what it needs, or fails"),
        (PLAIN, False, 0, "1 passed, 1 skipped"),
        (PLAIN, True, 4, "CI ran no test marked `service`"),
        (RUNS, True, 0, "1 passed"),
    ],
    ids=["a skipped service test fails", "other tests may skip", "CI without service tests is an error", "CI with one"],
)
def test_a_service_test_runs_or_fails(
    tmp_path: Path, workers: str, body: str, code: int, says: str, *, ci: bool
) -> None:
    """Exit code and words of a run under the guard."""
    (tmp_path / "test_small.py").write_text(body)
    (tmp_path / "pytest.ini").write_text("[pytest]\nmarkers =\n    service: needs one\n")
    environ = {key: value for key, value in os.environ.items() if key != "CI" and not key.startswith("PYTEST_")}
    environ |= {"PYTHONPATH": str(ROOT), **({"CI": "true"} if ci else {})}
    guarded = ["-p", "tests.service_guard", "-p", "no:cacheprovider", "-n", workers]
    command = [sys.executable, "-m", "pytest", *guarded, str(tmp_path)]
    done = subprocess.run(command, cwd=tmp_path, env=environ, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == code, done.stdout + done.stderr
    assert says in done.stdout + done.stderr
