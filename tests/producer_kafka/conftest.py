"""The command with a topic of the shared broker as its log."""

import itertools
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from typing_extensions import override

from build_events.kafka_settings import KafkaSettings, kafka_settings
from builder_agent.kafka.topics import TopicPlan, ensure_topic
from deploy.services import Services
from tests.enginetrail.conftest import TIMEOUT_S, Cli, Process
from tests.models import chain_model, small_model

MEDIUM = 250  # layers: about half a second of building on two cores
NOWHERE = "kafka://127.0.0.1:9/nowhere"  # the discard port: nothing listens there
_numbers = itertools.count(1)


@dataclass(frozen=True)
class KafkaCli(Cli):
    """``enginetrail`` in a folder, with ``ENGINETRAIL_LOG`` set."""

    url: str = NOWHERE

    @property
    @override
    def environment(self) -> dict[str, str]:
        return {**super().environment, "ENGINETRAIL_LOG": self.url}

    @property
    def spool(self) -> Path:
        """The home's spool."""
        return self.home / "spool"

    def at(self, url: str) -> "KafkaCli":
        """Return the same home with another log."""
        return replace(self, url=url)

    def python(self, code: str) -> Process:
        """Run Python code in the folder to its end; it must leave with 0."""
        process = subprocess.run(
            [sys.executable, "-c", code],
            cwd=self.folder,
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=TIMEOUT_S,
            check=False,
        )
        assert process.returncode == 0, f"{process.stdout}\n{process.stderr}"
        return process

    def build(self, *more: str, model: str = "model.onnx", code: int = 0) -> dict[str, Any]:
        """Build a model to its end and return the JSON summary."""
        fixed = ("-o", f"{model}.engine", "--route", "r/fp32/sm89", "--target", "sm89")
        summary: dict[str, Any] = self.json("build", model, *fixed, *more, code=code)
        return summary


@pytest.fixture
def settings(kafka: Services) -> KafkaSettings:
    """Return a topic of its own with two partitions and our settings, on a broker that is up."""
    return new_topic(kafka)


@pytest.fixture
def make_topic(kafka: Services) -> Callable[[], KafkaSettings]:
    """Return a function that makes another such topic."""
    return lambda: new_topic(kafka)


def new_topic(kafka: Services) -> KafkaSettings:
    """Make a topic that no test had before."""
    settings = unmade_topic(kafka)
    ensure_topic(settings, TopicPlan(partitions=2))
    return settings


def unmade_topic(kafka: Services) -> KafkaSettings:
    """Return the settings of a topic that nobody has made."""
    return kafka_settings(f"kafka://{kafka.address('kafka')}/produced-{os.getpid()}-{next(_numbers)}", {})


@pytest.fixture
def away(tmp_path: Path) -> KafkaCli:
    """Return the command in an empty folder with three models; its log is at an address where nothing listens."""
    (tmp_path / "model.onnx").write_bytes(small_model())
    (tmp_path / "medium.onnx").write_bytes(chain_model(MEDIUM))
    (tmp_path / "large.onnx").write_bytes(chain_model(1000))
    return KafkaCli(tmp_path)


@pytest.fixture
def cli(away: KafkaCli, settings: KafkaSettings) -> KafkaCli:
    """Return the same with a log that is there."""
    return away.at(settings.url)
