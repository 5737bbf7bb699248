"""What the fold's tables cost and hold, beyond the laws: bounded states, route streams, late events."""

from build_events import codec
from build_events.envelope import StreamHeader
from build_events.events import HeartbeatRecorded, StreamClosed
from tests.collector.scenes import numbered, whole_run
from tests.collector.stores import payloads, store_of

ROUTE = StreamHeader(stream_id="evidence-1", role="route", route="resnet50/fp16/sm89", source="tests", boot_id="boot-1")


def test_a_runs_state_does_not_grow_with_its_phases() -> None:
    """Settled phases leave the state, so a commit costs what is new and not how long the run is."""
    sizes = []
    for phases in (50, 500):
        with store_of(payloads(whole_run(phases=phases))) as db:
            sizes += [size for (size,) in db.execute("SELECT octet_length(state) FROM base.fold_states").fetchall()]
            assert db.execute("SELECT count(*) FROM base.settled_phases").fetchone() == (phases,)
            assert db.execute("SELECT count(*) FROM base.open_phases").fetchone() == (0,)
    assert abs(sizes[0] - sizes[1]) < 100


def test_settled_phases_are_written_once_and_open_ones_again() -> None:
    """A later commit of the run leaves the rows of settled phases where they are."""
    run = payloads(whole_run(phases=20))
    with store_of(run[:31]) as db:
        before = db.execute("SELECT phase_id, rowid FROM base.settled_phases ORDER BY ALL").fetchall()
        open_before = db.execute("SELECT phase_id FROM base.open_phases").fetchall()
    with store_of(run[:31], run[31:40]) as db:
        after = db.execute("SELECT phase_id, rowid FROM base.settled_phases ORDER BY ALL").fetchall()
    assert len(before) == 10
    assert open_before == []
    assert after[:10] == before
    assert len(after) == 13


def test_a_phase_that_is_open_has_a_row_that_moves_on() -> None:
    """Steps show while the phase runs; its finish moves it to the settled ones."""
    run = payloads(whole_run(phases=2))
    seen = []
    for count in (2, 3, 4):
        with store_of(run[:count]) as db:
            seen += db.execute("SELECT steps_seen, status, duration_ns FROM base.phases").fetchall()
    assert seen == [(0, "open", None), (5, "open", None), (10, "finished", 3_000_000)]


def test_the_stream_of_a_route_has_a_row_and_makes_no_run() -> None:
    """Evidence and decisions stand in streams of their route; a gap in one is named."""
    said = [HeartbeatRecorded(cancel_state="none")] * 3
    records = numbered([*said, StreamClosed(events=4, dropped=0)], ROUTE)
    sql = "SELECT stream_id, role, run_id, route, events, declared_events, missing, complete FROM base.streams"
    with store_of(payloads(records)) as db:
        assert db.execute(sql).fetchall() == [("evidence-1", "route", None, ROUTE.route, 4, 4, "", True)]
        assert db.execute("SELECT count(*) FROM base.runs").fetchone() == (0,)
    with store_of(payloads(records[:1]), payloads(records[2:])) as db:
        assert db.execute(sql).fetchall() == [("evidence-1", "route", None, ROUTE.route, 3, 4, "1", False)]
    with store_of(payloads(records[:1]), payloads(records[2:]), payloads(records[1:2])) as db:
        assert db.execute(sql).fetchall() == [("evidence-1", "route", None, ROUTE.route, 4, 4, "", True)]


def test_an_event_that_arrives_late_completes_its_run() -> None:
    """What filled the gap changes the phase that was written as settled, and the run's completeness."""
    records = whole_run(phases=3)
    without = payloads([record for record in records if record.sequence != 2])
    with store_of(without) as db:
        assert db.execute("SELECT complete FROM base.runs").fetchall() == [(False,)]
        assert db.execute("SELECT count(*) FROM base.anomalies").fetchone() == (1,)
    with store_of(without, [codec.encode(records[2])]) as db:
        assert db.execute("SELECT complete FROM base.runs").fetchall() == [(True,)]
        assert db.execute("SELECT count(*) FROM base.anomalies").fetchone() == (0,)
        assert db.execute("SELECT count(*) FROM base.phases").fetchone() == (3,)
