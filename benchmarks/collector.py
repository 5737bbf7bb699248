"""How fast the collector is, as a share of what DuckDB takes in at most. Run: ``python -m benchmarks.collector``.

Ceiling: the same rows, ready as typed Arrow tables, inserted in batches of the same size into the same
table, each batch in a transaction of its own. Against it, from the local log on disk:

* rows: the log read and checked, duplicates known, rows, positions and sequence ranges committed;
* projected: the same with the fold of runs, which is what ``enginetrail collect`` does.

All in turns in one process, medians of several rounds; the shapes are many short runs and one long one.
The collector's three threads need both cores of a small machine: where others work on it, compare the CPU.
"""

import argparse
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa

from build_events import ids
from build_events.clock import Clock, Instant
from build_events.envelope import StreamHeader
from build_events.events import (
    Event,
    HeartbeatRecorded,
    PhaseFinished,
    PhaseProgressed,
    PhaseStarted,
    RunFinished,
    RunStarted,
)
from build_events.local_log import LocalLog
from build_events.log import EventReader
from build_events.stream import EventStream
from collector import fold_store, projection
from collector.arrivals import arrivals, new_events
from collector.batches import ParsedBatch
from collector.commit import CollectStats, commit, insert_events, move_positions
from collector.ingest import BATCH_RECORDS, Commit, Ingester
from collector.projection import StreamNews
from collector.store import Store, insert

START = Instant(1_767_268_800_000_000_000, 5_000_000_000_000)
STEP_NS = 1_234_567
APPEND_EVENTS = 500
IN_MEMORY = Path(":memory:")


class _Ticks:
    """A clock that goes on by the same step with every reading."""

    def __init__(self) -> None:
        self._now = START

    def __call__(self) -> Instant:
        self._now = Instant(self._now.wall_ns + STEP_NS, self._now.monotonic_ns + STEP_NS)
        return self._now


def run_events(run_id: str, count: int) -> Iterator[tuple[Event, int]]:
    """Yield events of a run, each with its phase: phases of four events, a heartbeat now and then."""
    yield _started(run_id), ids.ROOT_ORDINAL
    produced, number = 1, 0
    while produced < count - 6:
        number += 1
        for event in _phase(run_id, number):
            yield event, number
            produced += 1
        if number % 10 == 0:
            yield HeartbeatRecorded(open_phase_id=number, since_callback_ns=STEP_NS, cancel_state="none"), 0
            produced += 1
    yield RunFinished(outcome="completed", duration_ns=count * STEP_NS), ids.ROOT_ORDINAL


def write_log(folder: Path, *, runs: int, events_per_run: int) -> LocalLog:
    """Write a local log with that many runs."""
    log = LocalLog.create(folder)
    clock: Clock = _Ticks()
    for _ in range(runs):
        run_id = ids.random_id()
        header = StreamHeader(
            stream_id=ids.random_id(),
            role="main",
            run_id=run_id,
            trace_id=ids.trace_id(),
            source="enginetrail/build",
            boot_id=ids.random_id(),
        )
        stream = EventStream(header, log, clock=clock)
        waiting = []
        for event, phase_id in run_events(run_id, events_per_run):
            waiting.append(stream.record(event, span_id=ids.span_id(run_id, phase_id)))
            if len(waiting) == APPEND_EVENTS:
                log.append(waiting)
                waiting = []
        log.append(waiting)
        stream.close()
    return log


def _started(run_id: str) -> RunStarted:
    return RunStarted(
        route="resnet50/fp16/sm89",
        build_id=run_id,
        mode="supervised",
        output="/models/engine.plan",
        lease_ns=60_000_000_000,
        heartbeat_interval_ns=1_000_000_000,
        host="host",
        pid=7,
        agent_version="0.1.0",
    )


def _phase(run_id: str, number: int) -> Iterator[Event]:
    phase: dict[str, Any] = {
        "phase_id": number,
        "parent_id": 1 if number > 1 else None,
        "name": f"Building engine from network, layer {number % 97}",
        "steps_total": 10,
        "thread_id": 140_213_123_123,
        "build_id": run_id,
        "cancel_state": "none",
    }
    yield PhaseStarted(**phase, steps_seen=0)
    yield PhaseProgressed(**phase, steps_seen=1, callbacks=1, longest_gap_ns=STEP_NS)
    yield PhaseProgressed(**phase, steps_seen=10, callbacks=9, longest_gap_ns=2 * STEP_NS)
    yield PhaseFinished(**phase, steps_seen=10, duration_ns=4 * STEP_NS, longest_gap_ns=2 * STEP_NS)


def commit_rows(store: Store, batch: ParsedBatch, noted_at_ns: int) -> CollectStats:
    """Commit a batch without the fold of runs: rows, positions, and the sequence ranges of its streams."""
    del noted_at_ns
    arrived = arrivals(batch.parsed)
    with store.transaction() as db:
        known = fold_store.load(db, arrived, ()).folds
        new = new_events(batch.parsed, arrived, {header: item.state.seen for header, item in known.items()})
        insert_events(db, new)
        news = [StreamNews(header, sequences) for header, sequences in new.sequences.items()]
        fold_store.write_folds(db, projection.advance(known, news).folds.values())
        move_positions(db, batch.positions)
    return CollectStats(records=batch.records, events=new.rows.num_rows + sum(map(len, new.decoded.values())))


def typed_tables(log: LocalLog) -> list[pa.Table]:
    """Return the log's rows as Arrow tables of a batch each, cut for both of DuckDB's threads."""
    with Store.open(IN_MEMORY, log_identity=log.identity(), views=[]) as store, Ingester(log, store) as ingester:
        ingester.ingest()
        rows = store.cursor().sql("SELECT * REPLACE (payload::VARCHAR AS payload) FROM base.events").to_arrow_table()
    rows = rows.combine_chunks()
    pieces = [rows.slice(start, BATCH_RECORDS) for start in range(0, rows.num_rows, BATCH_RECORDS)]
    return [pa.Table.from_batches(piece.to_batches(piece.num_rows // 4 + 1)) for piece in pieces]


def insert_plainly(tables: list[pa.Table], path: Path) -> float:
    """Return seconds to insert typed rows, a transaction with a position for each table."""
    with Store.open(path, log_identity="ceiling", views=[]) as store:
        began = time.perf_counter()
        for number, table in enumerate(tables):
            with store.transaction() as db:
                insert(db, "events", table)
                move_positions(db, {"ceiling": number})
        return time.perf_counter() - began


def take_in(log: EventReader, path: Path, commit: Commit) -> float:
    """Return seconds to take the log into a new store."""
    with Store.open(path, log_identity=log.identity(), views=[]) as store:
        began = time.perf_counter()
        with Ingester(log, store, commit=commit) as ingester:
            ingester.ingest()
        return time.perf_counter() - began


def measure(shape: str, log: LocalLog, folder: Path, rounds: int) -> None:
    """Print the medians of one shape."""
    tables = typed_tables(log)
    events = sum(table.num_rows for table in tables)
    seconds: dict[str, list[float]] = {"ceiling": [], "rows": [], "projected": []}
    cpu: dict[str, list[float]] = {name: [] for name in seconds}
    for number in range(rounds):
        ways: dict[str, Callable[[Path], float]] = {
            "ceiling": lambda path: insert_plainly(tables, path),
            "rows": lambda path: take_in(log, path, commit_rows),
            "projected": lambda path: take_in(log, path, commit),
        }
        for name, way in ways.items():
            path = folder / f"{name}-{number}.duckdb"
            before = time.process_time()
            seconds[name].append(way(path))
            cpu[name].append(time.process_time() - before)
            path.unlink()
    medians = {name: statistics.median(values) for name, values in seconds.items()}
    for name, value in medians.items():
        share = medians["ceiling"] / value
        per_event_us = statistics.median(cpu[name]) / events * 1e6
        rate = f"{events / value / 1e3:7.0f} k events/s  {share:5.0%} of the ceiling"
        print(f"{shape:14} {name:10} {rate}, CPU {per_event_us:.1f} us per event")


def main() -> None:
    """Measure both shapes and print shares of the ceiling."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--events", type=int, default=100_000, help="events of each shape")
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for runs in (options.events // 1_000, 1):
            log = write_log(folder / f"log-{runs}", runs=runs, events_per_run=options.events // runs)
            measure(f"{runs} x {options.events // runs}", log, folder, options.rounds)


if __name__ == "__main__":
    main()
