"""The draining thread: in the background, within its bound, whatever the log does."""

import time
from pathlib import Path

import pytest

from build_events.local_log import LocalLog
from builder_agent.spool.drainer import Drainer
from tests.spool.sinks import MemorySink
from tests.spool.test_drain import files, one_run
from tests.waiting import until

BOUND_S = 10.0


def test_events_arrive_while_the_stream_is_written(tmp_path: Path) -> None:
    """Each append is on its way within the interval, long before the end."""
    run, sink = one_run(), MemorySink()
    log = LocalLog.create(tmp_path)
    drainer = Drainer(tmp_path, sink)
    drainer.start()
    log.append(run[:4])
    until(lambda: sink.records == run[:4])
    log.append(run[4:])
    report = drainer.finish(BOUND_S)
    assert sink.records == run
    assert (report.events, report.waiting, report.reason) == (len(run), 0, "")
    assert sink.closed
    assert files(tmp_path) == []


def test_what_is_appended_before_the_end_is_asked_for_is_drained(tmp_path: Path) -> None:
    """The last look begins after ``finish`` does."""
    for number in range(20):
        folder = tmp_path / str(number)
        sink = MemorySink()
        drainer = Drainer(folder, sink)
        drainer.start()
        LocalLog.create(folder).append(one_run())
        assert drainer.finish(BOUND_S).waiting == 0


@pytest.mark.quiet
def test_a_log_that_is_away_costs_the_bound_and_no_more(tmp_path: Path) -> None:
    """The report says what waits and why."""
    LocalLog.create(tmp_path).append(one_run())
    drainer = Drainer(tmp_path, MemorySink(away=True))
    drainer.start()
    began = time.monotonic()
    report = drainer.finish(0.5)
    assert time.monotonic() - began < 2
    assert (report.waiting, report.reason) == (len(one_run()), "memory is away")


@pytest.mark.quiet
def test_a_log_that_never_answers_costs_the_bound_and_no_more(tmp_path: Path) -> None:
    """Records that are sent and not acknowledged count as waiting."""
    LocalLog.create(tmp_path).append(one_run())
    drainer = Drainer(tmp_path, MemorySink(silent=True))
    drainer.start()
    began = time.monotonic()
    report = drainer.finish(0.5)
    assert time.monotonic() - began < 2
    assert report.waiting == len(one_run())
    assert report.reason


def test_a_log_that_comes_back_gets_everything(tmp_path: Path) -> None:
    """The thread tries again by itself."""
    run, sink = one_run(), MemorySink(away=True)
    LocalLog.create(tmp_path).append(run)
    drainer = Drainer(tmp_path, sink)
    drainer.start()
    sink.away = False
    assert drainer.finish(BOUND_S).waiting == 0
    assert sink.records == run


def test_a_drainer_that_was_never_started_says_what_waits(tmp_path: Path) -> None:
    """``finish`` alone drains nothing and waits for nothing."""
    LocalLog.create(tmp_path).append(one_run())
    assert Drainer(tmp_path, MemorySink()).finish(0).waiting == len(one_run())
