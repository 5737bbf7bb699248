"""How fast the collector is, as a share of what DuckDB takes in at most. Run: ``python -m benchmarks.collector``.

Ceiling: the same rows, ready in memory as typed Arrow tables of four record batches, inserted in batches of
the same size into the same table with the same settings, each batch and its position in a transaction of its
own, synced to disk. It neither reads nor parses, and keeps one core busy. Against it, from the local log:

* read: the log read from disk and its checksums checked, nothing else;
* parsed: that, and the contract checked, in two threads; nothing stored;
* rows: that, duplicates known, rows, positions and sequence ranges committed;
* projected: the same with the fold of runs, which is what ``enginetrail collect`` does.

All in turns in one process, medians of several rounds; the shapes are many short runs and one long one.
The batches of a second ceiling, and the first before there was a better size, have 50,000 rows: fewer than a
row group of DuckDB's, so they go to its WAL and, at a checkpoint, into the file. A share of that with the
checkpoint in both times says what whoever goes on taking events in pays. The collector's three threads need
both cores of a small machine: where others work on it, compare the CPU (checkpoint included).
"""

import argparse
import statistics
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa

from benchmarks.written_log import write_log
from build_events.local_log import LocalLog
from build_events.log import EventReader
from collector import fold_store, projection
from collector.arrivals import arrivals, new_events
from collector.batches import ParsedBatch
from collector.commit import CollectStats, commit, insert_events, move_positions
from collector.ingest import Commit, Ingester, Sizes, parsed_ahead, three_threads
from collector.memory import keep_freed
from collector.parsing import Parser
from collector.projection import StreamNews
from collector.store import Store, insert

IN_MEMORY = Path(":memory:")
SIZES = Sizes()
SMALL_BATCH = 50_000
CEILING, SMALL_CEILING = "ceiling", "of 50,000"


class Seconds(NamedTuple):
    """How long it took."""

    committed: float  # until the last event was committed
    checkpointed: float  # until DuckDB had moved everything into its file

    @classmethod
    def of(cls, taken: float) -> "Seconds":
        """Return the time of something that stores nothing."""
        return cls(taken, taken)


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


def typed_rows(log: LocalLog) -> pa.Table:
    """Return the log's rows as one Arrow table."""
    with Store.open(IN_MEMORY, log_identity=log.identity(), views=[]) as store, Ingester(log, store) as ingester:
        ingester.ingest()
        return store.cursor().sql("SELECT * REPLACE (payload::VARCHAR AS payload) FROM base.events").to_arrow_table()


def cut(rows: pa.Table, size: int) -> list[pa.Table]:
    """Return tables of ``size`` rows, each cut for both of DuckDB's threads."""
    rows = rows.combine_chunks()
    pieces = [rows.slice(start, size) for start in range(0, rows.num_rows, size)]
    return [pa.Table.from_batches(piece.to_batches(piece.num_rows // 4 + 1)) for piece in pieces]


def ceilings(rows: pa.Table) -> dict[str, Callable[[Path], Seconds]]:
    """Return the two ways that only insert."""
    as_committed, small = cut(rows, SIZES.commit_records), cut(rows, SMALL_BATCH)
    return {
        CEILING: lambda path: insert_plainly(as_committed, path),
        SMALL_CEILING: lambda path: insert_plainly(small, path),
    }


def insert_plainly(tables: list[pa.Table], path: Path) -> Seconds:
    """Return how long it takes to insert typed rows, a transaction with a position for each table."""
    with Store.open(path, log_identity="ceiling", views=[]) as store:
        began = time.perf_counter()
        for number, table in enumerate(tables):
            with store.transaction() as db:
                insert(db, "events", table)
                move_positions(db, {"ceiling": number})
        return _until_checkpoint(store, began)


def take_in(log: EventReader, path: Path, commit: Commit) -> Seconds:
    """Return how long it takes to take the log into a new store."""
    with Store.open(path, log_identity=log.identity(), views=[]) as store:
        began = time.perf_counter()
        with Ingester(log, store, commit=commit) as ingester:
            ingester.ingest()
        return _until_checkpoint(store, began)


def read_through(log: EventReader) -> Seconds:
    """Return how long it takes to read the log and drop what was read."""
    began = time.perf_counter()
    for _ in log.read({}, max_bytes=SIZES.chunk_bytes):
        pass
    return Seconds.of(time.perf_counter() - began)


def parse_through(log: EventReader) -> Seconds:
    """Return how long it takes to read and parse the log as the collector does, and drop what was parsed."""
    began = time.perf_counter()
    chunks = log.read({}, max_bytes=SIZES.chunk_bytes)
    parser = Parser()
    with three_threads():
        for _ in parsed_ahead(chunks, parser, SIZES):
            pass
    parser.close()
    return Seconds.of(time.perf_counter() - began)


def _until_checkpoint(store: Store, began: float) -> Seconds:
    committed = time.perf_counter() - began
    store.checkpoint()
    return Seconds(committed, time.perf_counter() - began)


def compare(
    title: str, ways: Mapping[str, Callable[[Path], Seconds]], folder: Path, *, events: int, rounds: int
) -> None:
    """Run all ways, the ceilings among them, in turns and print their medians as shares of those."""
    seconds: dict[str, list[Seconds]] = {name: [] for name in ways}
    cpu: dict[str, list[float]] = {name: [] for name in ways}
    for number in range(rounds):
        for name, way in ways.items():
            path = folder / f"{name}-{number}.duckdb"
            before = time.process_time()
            seconds[name].append(way(path))
            cpu[name].append(time.process_time() - before)
            path.unlink(missing_ok=True)
    medians = {name: Seconds(*map(statistics.median, zip(*taken, strict=True))) for name, taken in seconds.items()}
    for name, median in medians.items():
        rate = f"{events / median.committed / 1e3:5.0f} k events/s"
        shares = f"{medians[CEILING].committed / median.committed:5.0%} of the ceiling"
        small = medians[SMALL_CEILING]
        shares += f", {small.committed / median.committed:4.0%} of that of 50,000"
        if median.checkpointed > median.committed:
            shares += f", {small.checkpointed / median.checkpointed:4.0%} with the checkpoint"
        per_event_us = statistics.median(cpu[name]) / events * 1e6
        print(f"{title:14} {name:10} {rate} {shares}, CPU {per_event_us:.1f} us per event", flush=True)


def measure(shape: str, log: LocalLog, folder: Path, rounds: int) -> None:
    """Print the medians of one shape."""
    rows = typed_rows(log)
    ways: dict[str, Callable[[Path], Seconds]] = {
        **ceilings(rows),
        "read": lambda _: read_through(log),
        "parsed": lambda _: parse_through(log),
        "rows": lambda path: take_in(log, path, commit_rows),
        "projected": lambda path: take_in(log, path, commit),
    }
    compare(shape, ways, folder, events=rows.num_rows, rounds=rounds)


def main() -> None:
    """Measure both shapes and print shares of the ceiling."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--events", type=int, default=1_000_000, help="events of each shape")
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    keep_freed()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for runs in (options.events // 1_000, 1):
            log = write_log(folder / f"log-{runs}", runs=runs, events_per_run=options.events // runs)
            measure(f"{runs} x {options.events // runs}", log, folder, options.rounds)


if __name__ == "__main__":
    main()
