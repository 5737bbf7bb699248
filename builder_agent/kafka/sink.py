"""A Kafka topic as the sink of a spool: idempotent, acknowledged by all, one partition per key."""

import functools
import threading
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from build_events.kafka_client_log import failure_since
from build_events.kafka_record import KafkaRecord
from build_events.kafka_settings import KafkaSettings
from builder_agent import forks
from builder_agent.kafka.client import end_producer, make_producer
from builder_agent.spool.sink import Answer, SinkUnavailableError

if TYPE_CHECKING:
    from kafka import KafkaProducer

POLL_S = 0.05
UNKNOWN = Answer("unknown")
STORED = Answer("stored")


class KafkaSink:
    """Sends records to one topic. Connects with the first use and again after every failure."""

    def __init__(self, settings: KafkaSettings) -> None:
        self._settings = settings
        self._producer: KafkaProducer | None = None
        self._partitions = 0
        self._identity = ""
        self._made_at = 0.0  # CLOCK_MONOTONIC seconds
        forks.register(self)

    def identity(self) -> str:
        """Return cluster and topic id.

        Raises:
            SinkUnavailableError: no broker answers, or the topic is not there.
        """
        if self._producer is None:
            self._made_at = time.monotonic()
            self._producer = make_producer(self._settings)
        if not self._partitions:
            self._learn(self._producer)
        return self._identity

    def deliver(self, records: Sequence[KafkaRecord], give_up: Callable[[], bool]) -> list[Answer]:
        """Send the records in order; a failure ends the producer, so that nothing is sent behind it unseen."""
        self.identity()
        assert self._producer is not None
        changed = threading.Event()
        sent = [self._send(self._producer, record, changed) for record in records]
        while any(not isinstance(item, Answer) and not item.is_done for item in sent) and not give_up():
            changed.wait(POLL_S)
            changed.clear()
        answers = [item if isinstance(item, Answer) else _answer(item) for item in sent]
        if any(answer.state != "stored" for answer in answers):
            # A producer that split or failed a batch is in doubt about its sequence numbers, and so are we.
            self.close()
        return answers

    def close(self) -> None:
        """End the producer; what is not acknowledged fails."""
        producer, self._producer, self._partitions = self._producer, None, 0
        if producer is not None:
            end_producer(producer)

    def after_fork_in_child(self) -> None:
        """Leave the producer to the parent: its thread is not here."""
        if self._producer is not None:
            self._producer._closed = True  # noqa: SLF001 # its destructor would wait for that thread
            self._producer = None

    def _learn(self, producer: "KafkaProducer") -> None:
        from kafka.errors import KafkaError  # noqa: PLC0415 # the light install has none

        url, topic = self._settings.url, self._settings.topic
        try:
            partitions = producer.partitions_for(topic)
        except KafkaError as error:
            if producer._metadata.cluster_id is None:  # noqa: SLF001 # there is no public way
                why = failure_since(self._made_at) or _text(error)
                raise SinkUnavailableError(
                    f"{url}: no broker answers there ({why}); see the KAFKA_* settings"
                ) from error
            raise SinkUnavailableError(
                f"{url}: the cluster has no topic {topic!r} for us ({_text(error)}); see `enginetrail topics ensure`"
            ) from error
        cluster = producer._metadata  # noqa: SLF001 # there is no public way
        self._identity = f"kafka:{cluster.cluster_id}/{cluster.topic_id(topic)}"
        self._partitions = len(partitions)

    def _send(self, producer: "KafkaProducer", record: KafkaRecord, changed: threading.Event) -> Any:
        from kafka.errors import KafkaError  # noqa: PLC0415 # the light install has none

        try:
            future = producer.send(
                self._settings.topic,
                key=record.key,
                value=record.value,
                headers=list(record.headers),
                partition=partition_of(record.key, self._partitions),
            )
        except (KafkaError, ValueError) as error:
            return _failed(error)
        future.add_both(lambda _result: changed.set())
        return future


def _answer(future: Any) -> Answer:
    if not future.is_done:
        return UNKNOWN
    return _failed(future.exception) if future.failed() else STORED


def _failed(error: Exception) -> Answer:
    """Return ``refused`` for what the broker will never take: too long, or of a form it does not allow."""
    from kafka import errors  # noqa: PLC0415 # the light install has none

    final = (
        errors.MessageSizeTooLargeError,
        errors.RecordListTooLargeError,
        errors.InvalidRecordError,
        errors.InvalidTimestampError,
        errors.UnsupportedForMessageFormatError,
        errors.PolicyViolationError,
    )
    return Answer("refused" if isinstance(error, final) else "unknown", _text(error))


def _text(error: Exception) -> str:
    return f"{type(error).__name__}: {error.args[0]}" if error.args and error.args[0] else type(error).__name__


@functools.lru_cache(maxsize=1024)
def partition_of(key: bytes, partitions: int) -> int:
    """Return the partition of a key: what the Java client's default partitioner chooses."""
    from kafka.partitioner.default import murmur2  # noqa: PLC0415 # the light install has none

    return int(murmur2(key) & 0x7FFFFFFF) % partitions
