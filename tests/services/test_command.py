"""``python -m deploy.services``: what the Makefile's targets call."""

import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PATIENCE_S = 1500  # a cold machine compiles first

cold = [pytest.mark.service, pytest.mark.timeout(1800)]


@dataclass(frozen=True)
class Command:
    """The command over a folder of its own."""

    folder: Path
    environ: dict[str, str]

    def begin(self, *arguments: str) -> subprocess.Popen[str]:
        """Start the command."""
        return subprocess.Popen(
            [sys.executable, "-m", "deploy.services", "--folder", str(self.folder), *arguments],
            cwd=ROOT,
            env=self.environ,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def __call__(self, *arguments: str, code: int = 0) -> str:
        """Run the command to its end, check its exit code, and return its output (of a failure: its errors)."""
        with self.begin(*arguments) as process:
            output, errors = process.communicate(timeout=PATIENCE_S)
        assert process.returncode == code, errors
        return errors if code else output


@pytest.fixture
def command(tmp_path: Path, environ: dict[str, str]) -> Iterator[Command]:
    """The command, with whatever it started gone in the end."""
    run = Command(tmp_path / "home", dict(environ))
    yield run
    run("purge")


class TestOneService:
    """Over Prometheus, which starts in a fraction of a second."""

    pytestmark = cold

    def test_up_prints_and_writes_the_address_and_down_keeps_it(self, command: Command) -> None:
        """NAME=ADDRESS on stdout and in ``env``; the same after down and up; status tells which it is."""
        printed = command("up", "prometheus")
        assert printed.startswith("PROMETHEUS=http://127.0.0.1:")
        assert (command.folder / "env").read_text() == printed
        assert command("up", "prometheus") == printed
        address = printed.strip().split("=")[1]
        assert f"prometheus  running   {address} (process " in command("status")
        command("down")
        assert f"prometheus  stopped   {address}\n" in command("status")
        assert (command.folder / "env").read_text() == ""
        assert command("up", "prometheus") == printed

    def test_two_commands_at_once_start_one_service(self, command: Command) -> None:
        """The second waits for the first and finds it running."""
        with command.begin("up", "prometheus") as one, command.begin("up", "prometheus") as two:
            printed = {process.communicate(timeout=PATIENCE_S)[0] for process in (one, two)}
            assert (one.returncode, two.returncode) == (0, 0)
        assert len(printed) == 1
        assert not (command.folder / "prometheus" / "log.old").exists()


def test_status_before_anything_names_every_service(command: Command) -> None:
    """Nothing is started or made by looking."""
    assert [line.split()[0] for line in command("status").splitlines()] == ["kafka", "jaeger", "otelcol", "prometheus"]
    assert "never started" in command("status")
    assert not command.folder.exists()


def test_an_error_is_one_line_for_a_person(command: Command) -> None:
    """No traceback: what is wrong and what to do, exit code 1; a wrong name is usage, 2."""
    command.environ.update(KAFKA_BOOTSTRAP="127.0.0.1:1")
    try:
        errors = command("up", "kafka", code=1)
    finally:
        del command.environ["KAFKA_BOOTSTRAP"]
    assert errors.startswith("error: KAFKA_BOOTSTRAP=127.0.0.1:1 does not answer")
    assert "Traceback" not in errors
    assert "'zookeeper' is not one of" in command("up", "zookeeper", code=2)
