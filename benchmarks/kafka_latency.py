"""From the moment an event happens to the moment it can be asked for. Part of ``benchmarks/kafka.py``."""

import statistics
import tempfile
import threading
import time
from pathlib import Path

from kafka import KafkaProducer

from build_events import codec, ids, kafka_record
from build_events.clock import system_clock
from build_events.envelope import StreamHeader
from build_events.events import PhaseProgressed
from build_events.log import InMemoryEventLog
from build_events.stream import EventStream
from collector.client import HolderGoneError, RemoteAnswers
from collector.socket_path import socket_path

STREAMS = 10
FLUSH_S = 0.05  # as the agent delivers: a record of a stream's events every 50 ms
ASK_EVERY_S = 0.01
SEEN = "SELECT stream_id, max(sequence) FROM base.events GROUP BY stream_id"
START_S = 60.0


class PacedProducer:
    """Writes events of several runs at a steady rate, and notes when each happened."""

    def __init__(self, address: str, topic: str, rate: int, seconds: float) -> None:
        self._address, self._topic, self._rate, self._seconds = address, topic, rate, seconds
        self.happened: dict[tuple[str, int], float] = {}  # (stream, sequence) -> monotonic seconds
        self.thread = threading.Thread(target=self._run, name="producer")

    def _run(self) -> None:
        streams = [_stream(number) for number in range(STREAMS)]
        began = time.monotonic()
        written = 0
        with KafkaProducer(bootstrap_servers=self._address, acks="all", linger_ms=5) as producer:
            while (now := time.monotonic()) - began < self._seconds:
                flush = int((now - began) / FLUSH_S) + 1
                waiting: dict[int, list[bytes]] = {}
                while time.monotonic() < began + flush * FLUSH_S:
                    due = int((time.monotonic() - began) * self._rate)
                    for number in range(written, due):
                        record = streams[number % STREAMS].record(_EVENT)
                        self.happened[record.stream.stream_id, record.sequence] = time.monotonic()
                        waiting.setdefault(number % STREAMS, []).append(codec.encode(record))
                    written = max(written, due)
                    time.sleep(0.002)
                for payloads in waiting.values():
                    record_ = kafka_record.encode(payloads)
                    producer.send(self._topic, record_.value, key=record_.key, headers=[*record_.headers])


def measure_latency(address: str, topic: str, home: Path, *, rate: int, seconds: float) -> None:
    """Print percentiles of the time from an event to the first answer that holds it."""
    answers = _connected(home)
    producer = PacedProducer(address, topic, rate, seconds)
    producer.thread.start()
    latencies: list[float] = []
    seen: dict[str, int] = {}
    deadline = time.monotonic() + seconds + START_S
    while time.monotonic() < deadline:
        for stream_id, highest in zip(*answers.query(SEEN, ()).to_pydict().values(), strict=True):
            now = time.monotonic()
            news = range(seen.get(stream_id, -1) + 1, highest + 1)
            latencies += [now - producer.happened[stream_id, sequence] for sequence in news]
            seen[stream_id] = highest
        if not producer.thread.is_alive() and len(latencies) == len(producer.happened):
            break
        time.sleep(ASK_EVERY_S)
    producer.thread.join()
    answers.close()
    cuts = statistics.quantiles(latencies, n=100)
    print(
        f"event -> queryable at {rate} events/s, {len(latencies)} of {len(producer.happened)} events: "
        f"p50 {cuts[49] * 1e3:.0f} ms, p95 {cuts[94] * 1e3:.0f} ms, p99 {cuts[98] * 1e3:.0f} ms, "
        f"max {max(latencies) * 1e3:.0f} ms"
    )


_EVENT = PhaseProgressed(
    phase_id=1, name="phase", steps_total=10, steps_seen=1, thread_id=1, build_id="b", cancel_state="none",
    callbacks=1, longest_gap_ns=5,
)  # fmt: skip


def _stream(number: int) -> EventStream:
    run_id = ids.random_id()
    header = StreamHeader(
        stream_id=f"{run_id}-{number}", role="main", run_id=run_id, source="benchmark", boot_id="boot"
    )
    return EventStream(header, InMemoryEventLog(), clock=system_clock)


def _connected(home: Path) -> RemoteAnswers:
    socket = socket_path(home, Path(tempfile.gettempdir()))
    deadline = time.monotonic() + START_S
    while True:
        if socket.exists():
            try:
                return RemoteAnswers(socket, {}, START_S)
            except HolderGoneError:
                pass  # it is starting
        if time.monotonic() > deadline:
            msg = f"the collector does not answer at {socket}"
            raise TimeoutError(msg)
        time.sleep(0.05)
