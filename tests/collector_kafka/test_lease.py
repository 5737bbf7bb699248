"""Leases run only while the log is there and read to its end: our own deafness fences nobody."""

from build_events.clock import NS_PER_S
from collector.lease import LeaseWatch, OpenRun

LEASE_S = 60


def run(sequence: int, run_id: str = "run-1") -> OpenRun:
    """Return an open run whose main stream was read up to ``sequence``."""
    return OpenRun(run_id, f"{run_id}-build", sequence, LEASE_S * NS_PER_S)


def fenced(watch: LeaseWatch, runs: list[OpenRun], at_s: float, *, at_end: bool = True) -> list[tuple[str, float]]:
    """Return the runs whose lease is over at a moment, and for how long they were silent, in seconds."""
    found = watch.expired(runs, at_end=at_end, now_ns=round(at_s * NS_PER_S))
    return [(item.run.run_id, item.silent_ns / NS_PER_S) for item in found]


def test_a_run_is_fenced_after_its_lease_and_not_before() -> None:
    """The lease begins when the collector first saw the run, on the collector's clock."""
    watch = LeaseWatch()
    assert fenced(watch, [run(3)], 1000) == []
    assert fenced(watch, [run(3)], 1059.9) == []
    assert fenced(watch, [run(3)], 1060) == [("run-1", 60)]


def test_a_sign_of_life_begins_the_lease_anew() -> None:
    """Any event of the main stream counts, a heartbeat as well as a phase."""
    watch = LeaseWatch()
    for moment in range(0, 600, 50):
        assert fenced(watch, [run(moment)], moment) == []
    assert fenced(watch, [run(550)], 609) == []
    assert fenced(watch, [run(550)], 610) == [("run-1", 60)]


def test_an_outage_longer_than_the_lease_fences_nobody() -> None:
    """While the log is away, or not read to its end, no lease runs; after it every lease begins anew."""
    watch = LeaseWatch()
    fenced(watch, [run(3)], 0)
    assert fenced(watch, [run(3)], 30, at_end=False) == []
    assert fenced(watch, [run(3)], 500, at_end=False) == []
    assert fenced(watch, [run(3)], 501) == []
    assert fenced(watch, [run(3)], 560) == []
    assert fenced(watch, [run(3)], 561) == [("run-1", 60)]


def test_one_read_that_fails_is_an_outage_already() -> None:
    """Nobody can tell how long the log was away between two looks."""
    watch = LeaseWatch()
    fenced(watch, [run(3)], 0)
    fenced(watch, [run(3)], 59, at_end=False)
    assert fenced(watch, [run(3)], 61) == []


def test_runs_have_leases_of_their_own() -> None:
    """One run's heartbeat does not keep another."""
    watch = LeaseWatch()
    fenced(watch, [run(1, "a"), run(1, "b")], 0)
    assert fenced(watch, [run(1, "a"), run(2, "b")], 60) == [("a", 60)]


def test_a_fence_that_did_not_get_through_is_tried_again_after_another_lease() -> None:
    """And not with every look in between."""
    watch = LeaseWatch()
    fenced(watch, [run(1)], 0)
    assert fenced(watch, [run(1)], 60) == [("run-1", 60)]
    assert fenced(watch, [run(1)], 61) == []
    assert fenced(watch, [run(1)], 120) == [("run-1", 60)]
