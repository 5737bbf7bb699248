"""A topic written and read with kafka-python, as an application does."""

import itertools

from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer, TopicPartition

WAIT_MS = 20_000  # for one answer of a broker on a busy machine; none here takes a tenth of it


def write(address: str, topic: str, values: list[bytes]) -> None:
    """Create ``topic`` if it is not there, and return once the broker has acknowledged all values."""
    with KafkaAdminClient(bootstrap_servers=address) as admin:
        if topic not in admin.list_topics():
            admin.create_topics([topic], wait_for_metadata=True)
    with KafkaProducer(bootstrap_servers=address, acks="all") as producer:
        for sent in [producer.send(topic, value) for value in values]:
            sent.get(timeout=WAIT_MS / 1000)


def read(address: str, topic: str, count: int) -> list[bytes]:
    """Return the first ``count`` values of a topic; fewer if no more come in time."""
    consumer = KafkaConsumer(bootstrap_servers=address, consumer_timeout_ms=WAIT_MS, auto_offset_reset="earliest")
    try:
        consumer.assign([TopicPartition(topic, 0)])
        consumer.seek_to_beginning()
        return [record.value for record in itertools.islice(consumer, count)]
    finally:
        consumer.close()


def partitions(address: str, topic: str) -> set[int]:
    """Return the partitions that a client learns of a topic by asking for it; none if there is no such topic."""
    consumer = KafkaConsumer(bootstrap_servers=address)
    try:
        return set(consumer.partitions_for_topic(topic) or ())
    finally:
        consumer.close()
