"""How fast the collector is from Kafka, and how soon an event can be asked for. Run: ``python -m benchmarks.kafka``.

Everything runs on this machine at once: broker, producer, collector. In turns in one process, medians of
several rounds, against the ceilings of ``benchmarks/collector.py``; the CPU is this process's, without the broker:

* consumed: what kafka-python alone makes of the same topic, each record touched once;
* read: what our reader makes of it: events, their places, and the topic's id asked after each fetch;
* parsed: that, and the contract checked; nothing stored;
* rows: that, duplicates known, rows, positions and sequence ranges committed;
* projected: the same with the fold of runs, which is what ``enginetrail collect`` does.

Latency: a following collector in a process of its own, events written at a steady rate by a paced
producer, and a reader that asks it every few milliseconds what it can see.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer, TopicPartition

from benchmarks.collector import (
    Seconds,
    ceilings,
    commit_rows,
    compare,
    parse_through,
    read_through,
    take_in,
    typed_rows,
)
from benchmarks.kafka_latency import measure_latency
from benchmarks.written_log import write_log
from build_events import kafka_record
from build_events.local_log import LocalLog
from collector.commit import commit
from collector.kafka.connection import CONSUMER
from collector.kafka.reader import KafkaReader
from collector.memory import keep_freed
from deploy.services import Services

PARTITIONS = 3


def make_topic(address: str, name: str) -> None:
    """Create a topic."""
    with KafkaAdminClient(bootstrap_servers=address) as admin:
        admin.create_topics({name: {"num_partitions": PARTITIONS, "replication_factor": 1}}, wait_for_metadata=True)


def copy_log(log: LocalLog, address: str, topic: str) -> None:
    """Write a local log's events to the topic, in records as the agent sends them."""
    with KafkaProducer(bootstrap_servers=address, acks="all", linger_ms=5, batch_size=256 << 10) as producer:
        for chunk in log.read({}, max_bytes=4 << 20):
            for numbers in kafka_record.cut(map(len, chunk.payloads)):
                record = kafka_record.encode([chunk.payloads[number] for number in numbers])
                producer.send(topic, record.value, key=record.key, headers=[*record.headers])


def consume(address: str, topic: str) -> Seconds:
    """Return how long kafka-python alone takes to read the whole topic, with the collector's settings."""
    consumer = KafkaConsumer(bootstrap_servers=address, **CONSUMER)
    try:
        partitions = [TopicPartition(topic, number) for number in range(PARTITIONS)]
        consumer.assign(partitions)
        consumer.seek_to_beginning()
        ends = consumer.end_offsets(partitions)
        began = time.perf_counter()
        size = 0
        while any(consumer.position(partition) < end for partition, end in ends.items()):
            for records in consumer.poll(timeout_ms=100).values():
                size += sum(len(record.value) for record in records)
        return Seconds.of(time.perf_counter() - began)
    finally:
        consumer.close()


def measure_rates(address: str, folder: Path, *, runs: int, events_per_run: int, rounds: int) -> None:
    """Print rates and their shares of the ceiling."""
    log = write_log(folder / "log", runs=runs, events_per_run=events_per_run)
    topic = f"rates-{os.getpid()}"
    make_topic(address, topic)
    copy_log(log, address, topic)
    rows = typed_rows(log)
    reader = KafkaReader({"bootstrap_servers": [address]}, topic)
    ways: dict[str, Callable[[Path], Seconds]] = {
        **ceilings(rows),
        "consumed": lambda _: consume(address, topic),
        "read": lambda _: read_through(reader),
        "parsed": lambda _: parse_through(reader),
        "rows": lambda path: take_in(reader, path, commit_rows),
        "projected": lambda path: take_in(reader, path, commit),
    }
    compare("from Kafka", ways, folder, events=rows.num_rows, rounds=rounds)
    reader.close()


@contextmanager
def broker(folder: Path) -> Iterator[str]:
    """Give the address of a broker: the one of ``KAFKA_BOOTSTRAP``, else one for this run."""
    services = Services(folder / "services", os.environ, print)
    try:
        yield services.start("kafka")
    finally:
        services.purge()


@contextmanager
def collector(home: Path, url: str) -> Iterator[None]:
    """Run a following collector."""
    command = [sys.executable, "-m", "enginetrail", "--home", str(home), "--log", url, "collect", "--follow"]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    try:
        yield
    finally:
        process.terminate()
        process.wait()


def main() -> None:
    """Measure rates and latency."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--events", type=int, default=500_000, help="of all runs together")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--rate", type=int, default=1_000, help="events per second, for latency")
    parser.add_argument("--seconds", type=float, default=20.0, help="how long, for latency")
    given = parser.parse_args()
    keep_freed()
    with tempfile.TemporaryDirectory() as name, broker(Path(name)) as address:
        shape: dict[str, Any] = {"runs": given.runs, "events_per_run": given.events // given.runs}
        measure_rates(address, Path(name), rounds=given.rounds, **shape)
        topic, home = f"latency-{os.getpid()}", Path(name) / "home"
        make_topic(address, topic)
        with collector(home, f"kafka://{address}/{topic}"):
            measure_latency(address, topic, home, rate=given.rate, seconds=given.seconds)


if __name__ == "__main__":
    main()
