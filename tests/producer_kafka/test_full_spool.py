"""A spool whose disk is full while an earlier run's end waits to be declared: everything goes on, nothing is lost."""

import signal
import subprocess
import time
from pathlib import Path

import psutil
import pytest

from build_events.kafka_settings import KafkaSettings, kafka_settings
from builder_agent.spool.drain import waiting_events
from enginetrail.home import Home
from enginetrail.housekeeping import housekeeping
from tests.builder_agent.test_supervised_builds import little_room
from tests.enginetrail.conftest import TIMEOUT_S
from tests.producer_kafka.conftest import NOWHERE, KafkaCli
from tests.producer_kafka.test_faults import fill
from tests.waiting import until

pytestmark = [pytest.mark.service, pytest.mark.timeout(600)]


def test_builds_and_followers_outlive_it(away: KafkaCli, settings: KafkaSettings, tmp_path: Path) -> None:
    """A build succeeds, a follower says once what it could not do, and declares the lost run when there is room."""
    cli = away.at(settings.url)
    cli.home.mkdir()
    with little_room(cli.spool, 256 << 10):
        _leave_a_lost_run(away)
        filler = cli.spool / "filler"
        fill(filler)
        built = away("build", "model.onnx", "-o", "m.engine", "--route", "r", "--target", "sm89", "--drain", "0")
        assert "declared by a later start" in built.stderr
        assert "the log took nothing of it" in built.stderr
        assert (cli.folder / "m.engine").exists()
        with (tmp_path / "said").open("w") as said:
            follower = cli.start("collect", "--follow", stderr=said)
        try:
            until(lambda: "tried again every second" in (tmp_path / "said").read_text())
            assert cli.query("SELECT outcome FROM runs") == [{"outcome": None}]
            before = _held(cli, follower)
            time.sleep(4.0)  # some four tries more; each would leave two of both
            after = _held(cli, follower)
            assert all(now <= then + 2 for now, then in zip(after, before, strict=True)), (before, after)
            filler.unlink()
            until(lambda: cli.query("SELECT outcome FROM runs") == [{"outcome": "lost"}])
        finally:
            follower.send_signal(signal.SIGTERM)
            follower.communicate(timeout=TIMEOUT_S)
        assert follower.returncode == 0
        assert (tmp_path / "said").read_text().count("tried again every second") == 1


@pytest.mark.quiet
def test_a_broker_that_is_away_does_not_hold_up_a_follower(away: KafkaCli) -> None:
    """What waits in the spool is handed on beside the follower's own work."""
    away.build("--drain", "0")
    assert waiting_events(away.spool)
    home = Home(away.home, away.folder, time.monotonic_ns(), kafka_settings(NOWHERE, {}))
    said: list[str] = []
    with housekeeping(home, said.append) as keep_house:
        began = time.monotonic()
        for _ in range(3):
            keep_house()
        assert time.monotonic() - began < 1.0
    assert said == []


def _held(cli: KafkaCli, process: subprocess.Popen[str]) -> tuple[int, int]:
    """Return how many files the runs of a spool have, and how many of them a process has open."""
    opened = psutil.Process(process.pid).open_files()
    inside = [file for file in opened if file.path.startswith(str(cli.spool))]
    return sum(path.is_file() for path in (cli.spool / "runs").rglob("*")), len(inside)


def _leave_a_lost_run(cli: KafkaCli) -> None:
    """Kill a build with all its processes after its first events."""
    process = cli.start("build", "large.onnx", "-o", "l.engine", "--route", "r", "--target", "sm89", "--drain", "0")
    until(lambda: any((cli.spool / "runs").rglob("*.jsonl")))
    until(lambda: waiting_events(cli.spool) > 2)
    family = [*psutil.Process(process.pid).children(recursive=True), psutil.Process(process.pid)]
    for member in family:
        member.send_signal(signal.SIGKILL)
    process.communicate(timeout=TIMEOUT_S)
    psutil.wait_procs(family, timeout=TIMEOUT_S)
