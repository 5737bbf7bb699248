"""The demo's whole job over Kafka: builds, a cancellation, a retry and verdicts, beside the local log."""

import subprocess
import sys
from collections import Counter
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from typing_extensions import override

from build_events import codec
from build_events.kafka_settings import KafkaSettings
from build_events.local_log import LocalLog
from collector.kafka.reader import KafkaReader
from demo.__main__ import HOME, LARGE_ROUTE
from tests.collector_kafka.tables import tables_of
from tests.enginetrail.conftest import Cli
from tests.producer_kafka.conftest import KafkaCli

pytestmark = [pytest.mark.service, pytest.mark.timeout(600)]

LATER = "2100-01-01T00:00:00Z"  # than any event here; the same for every verdict that is compared


@dataclass(frozen=True)
class Demo(KafkaCli):
    """The demo in a folder of its own."""

    @property
    @override
    def home(self) -> Path:
        return self.folder / HOME

    def play(self) -> subprocess.Popen[str]:
        """Start the demo; the caller waits for it."""
        self.folder.mkdir()
        return subprocess.Popen(
            [sys.executable, "-m", "demo"],
            cwd=self.folder,
            env=self.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )


def test_the_demo_over_kafka_is_the_demo_on_the_local_log(settings: KafkaSettings, tmp_path: Path) -> None:
    """Its events in a local log give all views and fold tables row by row, and both verdicts to the letter."""
    demo, local = Demo(tmp_path / "kafka", url=settings.url), Demo(tmp_path / "local", url="")
    playing = [demo.play(), local.play()]
    said = [process.communicate(timeout=300)[0] for process in playing]
    assert [process.returncode for process in playing] == [0, 0], "\n".join(said)

    copied = Cli(tmp_path / "copied")
    copied.folder.mkdir()
    _copy(settings, copied.home / "log")
    for cli in (demo, copied):
        cli("collect")
    tables = tables_of(demo.home / "store.duckdb")
    assert tables == tables_of(copied.home / "store.duckdb")
    outcomes = Counter(row["outcome"] for row in copied.query("SELECT outcome FROM runs"))
    assert outcomes == {"completed": 2, "cancelled": 1}
    assert len(tables["decisions"]) == 3  # on the cancelled run, on its retry, on the route

    judged = _judged(demo)
    assert judged == _judged(copied)
    assert [_told(report) for report in judged] == [_told(report) for report in _judged(local)]


def _copy(settings: KafkaSettings, folder: Path) -> None:
    """Write the topic's events into a local log."""
    log = LocalLog.create(folder)
    with closing(KafkaReader(settings.client, settings.topic)) as reader:
        for chunk in reader.read({}, max_bytes=1 << 20):
            assert not chunk.rejects
            log.append([codec.decode(payload) for payload in chunk.payloads])
    log.close()


def _judged(cli: Cli) -> list[dict[str, Any]]:
    """Return both reports of the demo's larger model."""
    (cancelled,) = cli.query("SELECT run_id FROM runs WHERE outcome = 'cancelled'")
    subjects = (("accept", "stuck-build", cancelled["run_id"]), ("gate", "evaluate", LARGE_ROUTE))
    return [cli.json(*subject, "--as-of", LATER, code=4) for subject in subjects]


def _told(report: dict[str, Any]) -> dict[str, Any]:
    """Return what two executions of the same demo say alike: all but ids, and times that were measured."""
    findings = report["criteria" if report["kind"] == "sbat" else "gates"]
    return {
        "verdict": report["verdict"],
        "policy": report["policy"],
        "findings": [
            (item["id"], item["verdict"], [reason["code"] for reason in item["reasons"]]) for item in findings
        ],
        "summary": {name: value for name, value in report["summary"].items() if name != "cancelLatencyMs"},
    }
