"""A topic of a real broker, as producers fill it."""

import itertools
import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from kafka import KafkaAdminClient, KafkaProducer

from build_events import codec, kafka_record
from build_events.envelope import Recorded

_numbers = itertools.count(1)


@dataclass(frozen=True)
class Topic:
    """One topic with three partitions, unless told otherwise."""

    address: str
    name: str

    @property
    def client(self) -> dict[str, Any]:
        """The settings of a client."""
        return {"bootstrap_servers": [self.address], "api_version": (2, 8)}

    @property
    def url(self) -> str:
        """The log's address for the command."""
        return f"kafka://{self.address}/{self.name}"

    def make(self, *, partitions: int = 3, **configs: str) -> None:
        """Create the topic."""
        with KafkaAdminClient(bootstrap_servers=self.address) as admin:
            options = {"num_partitions": partitions, "replication_factor": 1, "configs": configs}
            admin.create_topics({self.name: options}, wait_for_metadata=True)

    def delete(self) -> None:
        """Delete the topic and wait until it is gone."""
        with KafkaAdminClient(bootstrap_servers=self.address) as admin:
            admin.delete_topics([self.name])
            while self.name in admin.list_topics():
                pass

    def forget(self, before: dict[int, int]) -> None:
        """Let the broker delete the records before these offsets, as a finite retention does."""
        from kafka import TopicPartition  # noqa: PLC0415 # beside its only use

        with KafkaAdminClient(bootstrap_servers=self.address) as admin:
            admin.delete_records({TopicPartition(self.name, number): offset for number, offset in before.items()})

    def send(self, records: Iterable[Recorded]) -> None:
        """Write records as the agent does: batches of one stream, keyed by subject."""
        self.send_parts([[*records]])

    def send_parts(self, parts: Iterable[Sequence[Recorded]]) -> None:
        """Write each part as the agent does, one after the other."""
        self.send_raw(record for part in parts for records in _by_stream(part) for record in packed(records))

    @contextmanager
    def producer(self) -> Iterator["Producer"]:
        """Give a producer that waits for nothing, and at its end for everything."""
        with KafkaProducer(**self.client, acks="all", reconnect_backoff_max_ms=500) as producer:
            yield Producer(self.name, producer)

    def send_raw(self, records: Iterable[kafka_record.KafkaRecord | tuple[bytes | None, bytes | None]]) -> None:
        """Write Kafka records, or (key, value) pairs without headers, and return when all are acknowledged."""
        with KafkaProducer(**self.client, acks="all", linger_ms=5) as producer:
            sent = []
            for record in records:
                if isinstance(record, kafka_record.KafkaRecord):
                    sent.append(producer.send(self.name, record.value, key=record.key, headers=[*record.headers]))
                else:
                    sent.append(producer.send(self.name, record[1], key=record[0]))
            for future in sent:
                future.get(timeout=30)


@dataclass(frozen=True)
class Producer:
    """A producer of one topic that outlives an outage."""

    topic: str
    producer: KafkaProducer

    def post(self, records: Sequence[Recorded]) -> None:
        """Send events of one stream without waiting."""
        for record in packed(records):
            self.producer.send(self.topic, record.value, key=record.key, headers=[*record.headers])


def new_topic(address: str, **options: Any) -> Topic:
    """Return a topic that no test had before."""
    topic = Topic(address, f"builds-{os.getpid()}-{next(_numbers)}")
    topic.make(**options)
    return topic


def packed(records: Sequence[Recorded]) -> Iterable[kafka_record.KafkaRecord]:
    """Yield the Kafka records of one stream's events."""
    payloads = [codec.encode(record) for record in records]
    for numbers in kafka_record.cut(map(len, payloads)):
        yield kafka_record.encode([payloads[number] for number in numbers])


def _by_stream(records: Iterable[Recorded]) -> Iterable[list[Recorded]]:
    streams: dict[str, list[Recorded]] = {}
    for record in records:
        streams.setdefault(record.stream.stream_id, []).append(record)
    return streams.values()
