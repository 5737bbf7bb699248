"""The command as a user has it: a process, a home of its own, real models."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import pytest

from tests.models import chain_model, small_model

COMMAND = str(Path(sys.executable).with_name("enginetrail"))
TIMEOUT_S = 120  # of one command; none here takes a tenth of it

Process = subprocess.CompletedProcess[str]


@dataclass(frozen=True)
class Cli:
    """``enginetrail`` in a folder, with a home in it."""

    folder: Path

    @property
    def home(self) -> Path:
        """The home that every command here uses."""
        return self.folder / "home"

    @property
    def environment(self) -> dict[str, str]:
        """The environment of a user whose home is set by variable."""
        path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        return {**os.environ, "ENGINETRAIL_HOME": str(self.home), "PATH": path, "COLUMNS": "200"}

    def __call__(self, *arguments: str, code: int = 0) -> Process:
        """Run a command to its end and check its exit code."""
        process = subprocess.run(
            [COMMAND, *arguments],
            cwd=self.folder,
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=TIMEOUT_S,
            check=False,
        )
        assert process.returncode == code, f"{arguments}: exit {process.returncode}\n{process.stdout}\n{process.stderr}"
        return process

    def json(self, *arguments: str, code: int = 0) -> Any:
        """Run a command with ``--format json`` and return what it prints on stdout, which must be JSON alone."""
        return json.loads(self(*arguments, "--format", "json", code=code).stdout)

    def start(self, *arguments: str, stderr: int | IO[str] = subprocess.PIPE) -> subprocess.Popen[str]:
        """Start a command; the caller ends it."""
        return subprocess.Popen(
            [COMMAND, *arguments],
            cwd=self.folder,
            env=self.environment,
            stdout=subprocess.PIPE,
            stderr=stderr,
            text=True,
        )

    def query(self, sql: str) -> list[dict[str, Any]]:
        """Return the rows of a query."""
        rows: list[dict[str, Any]] = self.json("query", sql)
        return rows


@pytest.fixture
def cli(tmp_path: Path) -> Cli:
    """Return the command in an empty folder with two models: ``model.onnx`` (tiny) and ``large.onnx`` (seconds)."""
    (tmp_path / "model.onnx").write_bytes(small_model())
    (tmp_path / "large.onnx").write_bytes(chain_model(1000))
    return Cli(tmp_path)


Build = Callable[..., dict[str, Any]]


@pytest.fixture
def build(cli: Cli) -> Build:
    """Return a function that builds a model to its end and returns the JSON summary."""

    def run(
        *more: str, model: str = "model.onnx", output: str = "model.engine", route: str = "r/fp32/sm89", code: int = 0
    ) -> dict[str, Any]:
        arguments = ("build", model, "-o", output, "--route", route, "--target", "sm89", *more)
        summary: dict[str, Any] = cli.json(*arguments, code=code)
        return summary

    return run
