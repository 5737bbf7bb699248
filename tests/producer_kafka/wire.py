"""What stands in a topic, record by record, as kafka-python alone reads it."""

from collections.abc import Sequence
from dataclasses import dataclass

from kafka import KafkaConsumer, TopicPartition

from build_events import codec, kafka_record
from build_events.envelope import Recorded
from build_events.kafka_settings import KafkaSettings
from build_events.log import EventReader

BOUND_MS = 20_000


@dataclass(frozen=True)
class Wire:
    """One record of the topic."""

    partition: int
    offset: int
    key: bytes
    headers: list[tuple[str, bytes]]
    value: bytes

    @property
    def events(self) -> list[Recorded]:
        """Its events, each valid."""
        found = kafka_record.decode(self.headers, self.value)
        assert not found.bad
        return [codec.decode(payload) for payload in found.payloads]


def read_topic(settings: KafkaSettings) -> list[Wire]:
    """Return all records of the topic, partition by partition, in order."""
    consumer = KafkaConsumer(**settings.client, enable_auto_commit=False, auto_offset_reset="earliest")
    try:
        numbers = consumer.partitions_for_topic(settings.topic)
        partitions = [TopicPartition(settings.topic, number) for number in sorted(numbers)]
        consumer.assign(partitions)
        ends = consumer.end_offsets(partitions)
        consumer.seek_to_beginning()
        found: list[Wire] = []
        while any(consumer.position(partition) < ends[partition] for partition in partitions):
            batches = consumer.poll(timeout_ms=BOUND_MS)
            assert batches, "the broker gives nothing of what it says it has"
            for records in batches.values():
                found += [Wire(r.partition, r.offset, r.key, list(r.headers), r.value) for r in records]
        return sorted(found, key=lambda record: (record.partition, record.offset))
    finally:
        consumer.close()


def streams(records: Sequence[Wire]) -> dict[str, list[int]]:
    """Return the sequences of each stream in the order in which they stand in its partition."""
    found: dict[str, list[int]] = {}
    homes: dict[str, int] = {}
    for record in records:
        for event in record.events:
            found.setdefault(event.stream.stream_id, []).append(event.sequence)
            assert homes.setdefault(event.stream.subject, record.partition) == record.partition
    return found


def assert_whole_and_in_order(sequences: dict[str, list[int]]) -> int:
    """Check that every stream is there from 0 on without a gap, in order of first arrival; return the repetitions."""
    repeated = 0
    for stream_id, found in sequences.items():
        first = list(dict.fromkeys(found))
        assert first == list(range(len(first))), stream_id
        repeated += len(found) - len(first)
    return repeated


def read_all(reader: EventReader) -> list[Recorded]:
    """Return every event that a reader of the log port gives."""
    return [codec.decode(payload) for chunk in reader.read({}, max_bytes=1 << 20) for payload in chunk.payloads]
