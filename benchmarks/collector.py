"""How fast the collector is, as a share of what DuckDB takes in at most. Run: ``python -m benchmarks.collector``.

Ceiling: the same rows, ready in memory as typed Arrow tables of four record batches, inserted in batches of
the same size into the same table with the same settings, each batch and its position in a transaction of its
own, synced to disk. It neither reads nor parses, and keeps one core busy. Against it, from the local log:

* read: the log read from disk and its checksums checked, nothing else;
* parsed: that, and the contract checked, in two threads; nothing stored;
* rows: that, duplicates known, rows, positions and sequence ranges committed;
* projected: the same with the fold of runs, which is what ``enginetrail collect`` does.

All in turns in one process, medians of several rounds; the shapes are many short runs and one long one.
A second share has DuckDB's checkpoint in both times: commits write to its WAL, and whoever goes on taking
events in pays for that, too. The collector's three threads need both cores of a small machine: where others
work on it, compare the CPU (checkpoint included).
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
from collector.ahead import ahead
from collector.arrivals import arrivals, new_events
from collector.batches import ParsedBatch, batches, parse
from collector.commit import CollectStats, commit, insert_events, move_positions
from collector.ingest import BATCH_BYTES, BATCH_RECORDS, CHUNK_BYTES, Commit, Ingester, three_threads
from collector.parsing import Parser
from collector.projection import StreamNews
from collector.store import Store, insert

IN_MEMORY = Path(":memory:")


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


def typed_tables(log: LocalLog) -> list[pa.Table]:
    """Return the log's rows as Arrow tables of a batch each, cut for both of DuckDB's threads."""
    with Store.open(IN_MEMORY, log_identity=log.identity(), views=[]) as store, Ingester(log, store) as ingester:
        ingester.ingest()
        rows = store.cursor().sql("SELECT * REPLACE (payload::VARCHAR AS payload) FROM base.events").to_arrow_table()
    rows = rows.combine_chunks()
    pieces = [rows.slice(start, BATCH_RECORDS) for start in range(0, rows.num_rows, BATCH_RECORDS)]
    return [pa.Table.from_batches(piece.to_batches(piece.num_rows // 4 + 1)) for piece in pieces]


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
    for _ in log.read({}, max_bytes=CHUNK_BYTES):
        pass
    return Seconds.of(time.perf_counter() - began)


def parse_through(log: EventReader) -> Seconds:
    """Return how long it takes to read and parse the log as the collector does, and drop what was parsed."""
    began = time.perf_counter()
    chunks = log.read({}, max_bytes=CHUNK_BYTES)
    parser = Parser()
    with three_threads():
        for batch in ahead(batches(chunks, max_records=BATCH_RECORDS, max_bytes=BATCH_BYTES)):
            parse(batch, parser)
    parser.close()
    return Seconds.of(time.perf_counter() - began)


def _until_checkpoint(store: Store, began: float) -> Seconds:
    committed = time.perf_counter() - began
    store.checkpoint()
    return Seconds(committed, time.perf_counter() - began)


def compare(
    title: str, ways: Mapping[str, Callable[[Path], Seconds]], folder: Path, *, events: int, rounds: int
) -> None:
    """Run all ways in turns and print their medians as shares of the way "ceiling"."""
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
    ceiling = medians["ceiling"]
    for name, median in medians.items():
        rate = f"{events / median.committed / 1e3:5.0f} k events/s"
        shares = f"{ceiling.committed / median.committed:5.0%} of the ceiling"
        if median.checkpointed > median.committed:
            shares += f", {ceiling.checkpointed / median.checkpointed:4.0%} with the checkpoint"
        per_event_us = statistics.median(cpu[name]) / events * 1e6
        print(f"{title:14} {name:10} {rate} {shares}, CPU {per_event_us:.1f} us per event", flush=True)


def measure(shape: str, log: LocalLog, folder: Path, rounds: int) -> None:
    """Print the medians of one shape."""
    tables = typed_tables(log)
    ways: dict[str, Callable[[Path], Seconds]] = {
        "ceiling": lambda path: insert_plainly(tables, path),
        "read": lambda _: read_through(log),
        "parsed": lambda _: parse_through(log),
        "rows": lambda path: take_in(log, path, commit_rows),
        "projected": lambda path: take_in(log, path, commit),
    }
    compare(shape, ways, folder, events=sum(table.num_rows for table in tables), rounds=rounds)


def main() -> None:
    """Measure both shapes and print shares of the ceiling."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--events", type=int, default=200_000, help="events of each shape")
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for runs in (options.events // 1_000, 1):
            log = write_log(folder / f"log-{runs}", runs=runs, events_per_run=options.events // runs)
            measure(f"{runs} x {options.events // runs}", log, folder, options.rounds)


if __name__ == "__main__":
    main()
