"""Brokers that go, producers that are killed, disks that are full: what was acknowledged stays, drops are said."""

import json
import os
import random
import signal
import statistics
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import psutil
import pytest

from build_events.kafka_settings import KafkaSettings
from builder_agent.spool.drain import waiting_events
from deploy.services import Services
from tests.builder_agent.test_supervised_builds import little_room
from tests.models import chain_model
from tests.producer_kafka.conftest import KafkaCli
from tests.producer_kafka.wire import assert_whole_and_in_order, read_topic, streams
from tests.seeds import BASE, REPEAT, seeds

pytestmark = [pytest.mark.service, pytest.mark.timeout(1800)]

FULL_COUNT = 20  # of `make soak`
OUTAGE_S = 30.0 if REPEAT >= FULL_COUNT else 3.0
BROADER = 1500  # layers: some five seconds of building


@pytest.mark.fault
@pytest.mark.quiet
def test_a_broker_that_is_away_for_a_while_costs_no_event_and_no_time(
    cli: KafkaCli, kafka: Services, settings: KafkaSettings
) -> None:
    """Builds before, through and after an outage: all is in the topic in order, once in the store, none was slowed."""
    report(f"seed {BASE}, {REPEAT} builds, broker away for {OUTAGE_S:.0f} s")
    builds: list[dict[str, Any]] = []
    plain: list[dict[str, Any]] = []  # in turn with them, so that both meet the same load of the machine
    stop = threading.Event()

    def outage() -> None:
        stop.wait(random.Random(BASE).uniform(0.3, 2.0))
        kafka.stop("kafka")
        stop.wait(OUTAGE_S)
        kafka.start("kafka")

    breaking = threading.Thread(target=outage)
    breaking.start()
    while len(builds) < REPEAT or breaking.is_alive():
        builds.append(cli.build(model="medium.onnx"))
        plain.append(cli.at("").build(model="medium.onnx"))
    breaking.join()
    assert any(build["events_waiting"] for build in builds), "no build met the outage"
    cli("relay")
    repeated = assert_whole_and_in_order(streams(read_topic(settings)))
    assert waiting_events(cli.spool) == 0
    runs = cli.query("SELECT run_id FROM runs WHERE outcome = 'completed' AND complete")
    assert {row["run_id"] for row in runs} == {build["run_id"] for build in builds}
    (count,) = cli.query("SELECT count(*) AS n, count(DISTINCT event_id) AS once FROM events")
    assert count["n"] == count["once"]
    pairs = [with_["duration_ms"] / without["duration_ms"] for with_, without in zip(builds, plain, strict=True)]
    ratio = statistics.median(pairs)
    report(f"{len(builds)} builds, {repeated} events sent twice, median ratio to builds without Kafka {ratio:.2f}")
    assert ratio < 1.5


@pytest.mark.fault
@pytest.mark.parametrize("seed", seeds())
def test_a_producer_that_is_killed_loses_nothing_acknowledged(
    away: KafkaCli, settings: KafkaSettings, seed: int
) -> None:
    """SIGKILL of everything at a random moment: the next start says the run is lost and delivers all of it.

    Three of four moments count from the run's first event: a busy machine takes long to get there.
    """
    cli = away.at(settings.url)
    process = cli.start("build", "large.onnx", "-o", "large.engine", "--route", "r/fp32/sm89", "--target", "sm89")
    began = seed % 4 != 0
    if began:
        _wait_until(lambda: any(path.stat().st_size for path in cli.spool.rglob("*.jsonl")), "the run's first events")
    time.sleep(random.Random(seed).uniform(0.0, 2.5))
    _kill_all(process)
    spooled = waiting_events(cli.spool)
    relayed = cli("relay").stdout
    sequences = streams(read_topic(settings))
    assert_whole_and_in_order(sequences)
    assert waiting_events(cli.spool) == 0
    rows = cli.query("SELECT run_id, outcome, complete FROM runs")
    report(f"seed {seed}: {spooled} events waited at the kill; {relayed.strip()}; {rows}")
    assert not list((cli.spool / "runs").glob("*"))
    assert len(rows) == 1 or (not rows and not began)  # none: killed before run.started
    if rows and rows[0]["outcome"] != "completed":
        assert (rows[0]["outcome"], rows[0]["complete"]) == ("lost", False)


@pytest.mark.parametrize("room_again", [True, False])
def test_a_full_disk_under_the_spool_leaves_the_build_alone(
    away: KafkaCli, settings: KafkaSettings, *, room_again: bool
) -> None:
    """The engine is built, exit 0. With room before the end all of it arrives; without, the gate holds on the run."""
    cli = away.at(settings.url)
    (cli.folder / "large.onnx").write_bytes(chain_model(BROADER))
    cli.home.mkdir()
    with little_room(cli.spool, 256 << 10):
        filler = cli.spool / "filler"
        process = cli.start(
            *("build", "large.onnx", "-o", "large.engine", "--route", "r", "--target", "sm89", "--format", "json")
        )
        _wait_until(lambda: any((cli.spool / "runs").rglob("*.jsonl")), "the run's first events")
        fill(filler)
        if room_again:
            _wait_until(lambda: (cli.folder / "large.engine").exists() or _paused(1.0), "a second of a full disk")
            filler.unlink()
        output, errors = process.communicate(timeout=120)
        summary = json.loads(output)
        assert (process.returncode, (cli.folder / "large.engine").exists()) == (0, True), errors
        filler.unlink(missing_ok=True)
        cli("relay")
        (row,) = cli.query("SELECT complete, outcome FROM runs")
        assert row["complete"] is room_again
        assert summary["recorded"] is room_again
        assert "event log unavailable, the build goes on without it" in errors
        cli("gate", "evaluate", "r", code=4)


def test_a_spool_beyond_its_limit_drops_progress_and_says_so(away: KafkaCli, settings: KafkaSettings) -> None:
    """The bound is $ENGINETRAIL_SPOOL_BYTES; the run is not complete, and its end is recorded all the same."""
    first = away.build("--drain", "0")
    os.environ["ENGINETRAIL_SPOOL_BYTES"] = "1000"
    try:
        second = away.build("--drain", "0", model="medium.onnx")
    finally:
        del os.environ["ENGINETRAIL_SPOOL_BYTES"]
    cli = away.at(settings.url)
    cli("relay")
    rows = {row["run_id"]: row for row in cli.query("SELECT run_id, outcome, complete FROM runs")}
    assert (rows[first["run_id"]]["outcome"], rows[first["run_id"]]["complete"]) == ("completed", True)
    assert (rows[second["run_id"]]["outcome"], rows[second["run_id"]]["complete"]) == ("completed", False)
    (anomaly,) = cli.query(
        f"SELECT code FROM anomalies WHERE run_id = '{second['run_id']}' AND code = 'dropped_events'"
    )
    assert anomaly == {"code": "dropped_events"}


def report(text: str) -> None:
    """Leave a figure in the test's captured output."""
    sys.stdout.write(f"{text}\n")


def _kill_all(process: subprocess.Popen[str]) -> None:
    """Kill a command and every process that it started, and wait until they are gone."""
    family = [*psutil.Process(process.pid).children(recursive=True), psutil.Process(process.pid)]
    for member in family:
        member.send_signal(signal.SIGKILL)
    process.communicate(timeout=30)
    psutil.wait_procs(family, timeout=30)


def _wait_until(condition: object, what: str) -> None:
    assert callable(condition)
    deadline = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < deadline, what
        time.sleep(0.05)


def _paused(seconds: float) -> bool:
    time.sleep(seconds)  # the length of the fault, not a wait for anything
    return True


def fill(path: Path) -> None:
    """Take all room that is left on a file system."""
    with path.open("wb", buffering=0) as file:
        try:
            while file.write(b"x" * 4096):
                pass
        except OSError:
            return
