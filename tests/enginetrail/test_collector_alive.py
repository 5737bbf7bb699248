"""``enginetrail collect --alive``: what a probe asks."""

import signal
import time

from collector.status import read_status
from tests.enginetrail.conftest import Cli

PATIENCE_S = 60.0


def _await_status(cli: Cli) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while read_status(cli.home) is None:
        assert time.monotonic() < deadline, "the collector wrote no status"
        time.sleep(0.05)


def test_a_probe_tells_a_collector_that_works_from_one_that_hangs_and_from_none(cli: Cli) -> None:
    """Exit 0 while the loop turns, 1 while it stands still, 0 when it turns again, 1 when it is gone."""
    assert "no collector runs" in cli("collect", "--alive", "30", code=1).stdout
    collector = cli.start("collect", "--follow")
    try:
        _await_status(cli)
        assert f"process {collector.pid}" in cli("collect", "--alive", "30").stdout
        collector.send_signal(signal.SIGSTOP)
        written = read_status(cli.home)
        assert written is not None
        while time.time() - written.written_at < 1:  # probes below ask for less
            time.sleep(0.05)
        cli("collect", "--alive", "0.5", code=1)
        collector.send_signal(signal.SIGCONT)
        cli("collect", "--alive", "30")
    finally:
        collector.send_signal(signal.SIGCONT)
        collector.terminate()
        collector.communicate(timeout=PATIENCE_S)
    assert "no collector runs" in cli("collect", "--alive", "30", code=1).stdout


def test_a_probe_looks_and_does_nothing_else(cli: Cli) -> None:
    """It makes no home, no log and no store, and excludes what would."""
    cli("collect", "--alive", "30", code=1)
    assert not cli.home.exists()
    assert "only look" in cli("collect", "--follow", "--alive", "30", code=2).stderr
