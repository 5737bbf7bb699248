"""The README is run: what it shows works as it stands there."""

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
import tensorrt_rtx as trt

from enginetrail.cli import COMMANDS
from tests.enginetrail.conftest import Cli
from tests.models import small_model

README = (Path(__file__).parent.parent / "README.md").read_text(encoding="utf-8")


def _blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", README, flags=re.MULTILINE | re.DOTALL)


def test_every_shell_command_of_the_readme_runs_in_order(tmp_path: Path) -> None:
    """A newcomer may paste each ``sh`` block from top to bottom."""
    (tmp_path / "model.onnx").write_bytes(small_model())
    commands = [line for block in _blocks("sh") for line in block.splitlines() if line.strip()]
    assert len(commands) >= 5
    for line in commands:
        process = subprocess.run(
            shlex.split(line), cwd=tmp_path, env=Cli(tmp_path).environment, capture_output=True, text=True, check=False
        )
        assert process.returncode == 0, f"{line}\n{process.stdout}\n{process.stderr}"


def test_the_embedded_example_of_the_readme_builds_an_engine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The three lines work beside an ordinary TensorRT set-up."""
    monkeypatch.chdir(tmp_path)
    logger = trt.Logger(trt.Logger.ERROR)
    builder = trt.Builder(logger)
    network = builder.create_network(0)
    parser = trt.OnnxParser(network, logger)
    assert parser.parse(small_model())
    (example,) = _blocks("python")
    exec(example, {"builder": builder, "network": network, "config": builder.create_builder_config()})  # noqa: S102 # the README is ours
    assert (tmp_path / "resnet50.engine").stat().st_size > 0
    assert (tmp_path / ".enginetrail" / "log").is_dir()


def test_the_readme_names_every_subcommand() -> None:
    """No command is hidden from the one page that newcomers read."""
    missing = [name for name in COMMANDS if f"enginetrail {name}" not in README]
    assert not missing


def test_help_names_every_subcommand_and_loads_nothing_heavy() -> None:
    """``--help`` answers without the store, the builder or numpy."""
    script = (
        "import sys, enginetrail.cli as cli; code = cli.run(['--help'], started_ns=0); "
        "heavy = {'duckdb', 'pyarrow', 'numpy', 'tensorrt_rtx', 'rich'} & set(sys.modules); "
        "sys.exit(code or (f'loaded {heavy}' if heavy else 0))"
    )
    process = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert process.returncode == 0, process.stderr
    for name in COMMANDS:
        assert name in process.stdout
