"""A Kafka topic as an event log to read: sources are ``TOPIC/PARTITION``, positions are record offsets.

Partitions are assigned by hand and sought to the positions that the store holds; the broker keeps none.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from kafka import TopicPartition

from build_events.errors import LogCorruptError, LogUnavailableError
from build_events.log import Chunk, Positions
from collector.kafka.connection import Connection
from collector.kafka.errors import broker_errors
from collector.kafka.fetching import fetch

ANSWER_S = 10.0


class KafkaReader:
    """``EventReader`` over one topic. Connects at the first use, and anew after an outage. Not thread-safe."""

    def __init__(self, client: Mapping[str, Any], topic: str, *, answer_s: float = ANSWER_S) -> None:
        """Take kafka-python's settings (``bootstrap_servers``, security) and the topic's name.

        A broker that gives nothing of what it says it has for ``answer_s`` seconds counts as away.
        """
        self._client = client
        self.topic = topic
        self._answer_s = answer_s
        self._connection: Connection | None = None
        self._identity: str | None = None
        self.gaps: list[str] = []  # records that were gone when they were to be read, for people

    def close(self) -> None:
        """Hang up; a later call connects again."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def identity(self) -> str:
        """Return cluster id and topic id: the same for every opening, another for a topic made anew.

        Raises:
            LogUnavailableError: the broker does not answer, or has no such topic.
        """
        return self._connected().identity.text

    def partitions(self) -> range:
        """Return the numbers of the topic's partitions.

        Raises:
            LogUnavailableError: the broker does not answer, or has no such topic.
        """
        return range(self._connected().identity.partitions)

    def partition(self, number: int) -> "PartitionLog":
        """Return one partition as a log of its own."""
        return PartitionLog(self, number)

    def ends(self) -> dict[str, int]:
        """Return the offset after the last record of each partition that has any.

        Raises:
            LogUnavailableError: the broker does not answer.
        """
        return self.ends_of(self.partitions())

    def ends_of(self, numbers: Sequence[int]) -> dict[str, int]:
        """Return the ends of these partitions alone."""
        return {source_of(partition): end for partition, end in self._ends(numbers).items() if end}

    def read(self, after: Positions, *, max_bytes: int) -> Iterator[Chunk]:
        """Yield what stands after these positions, as far as the topic reaches at the first step.

        Records that are gone come as a reject with the reason ``offset_out_of_range``, and are in ``gaps``.

        Raises:
            LogUnavailableError: the broker does not answer (any more); what was yielded stands.
            LogCorruptError: the topic was made anew, or is shorter than what was read of it.
        """
        yield from self.read_partitions(self.partitions(), after, max_bytes=max_bytes)

    def read_partitions(self, numbers: Sequence[int], after: Positions, *, max_bytes: int) -> Iterator[Chunk]:
        """Yield what stands in these partitions alone; otherwise like ``read``."""
        targets: dict[TopicPartition, tuple[int, int]] = {}
        for partition, end in self._ends(numbers).items():
            start = after.get(source_of(partition), 0)
            if start > end:
                self._connected().check()  # the likelier reason
                raise LogCorruptError(
                    f"{source_of(partition)} ends at offset {end} but was read up to {start}: the topic lost records. "
                    "Restore it, or collect what is left of it with another home."
                )
            if start < end:
                targets[partition] = (start, end)
        try:
            yield from fetch(
                self._connected(), targets, max_bytes=max_bytes, answer_s=self._answer_s, lost=self.gaps.append
            )
        except LogUnavailableError:
            self.close()
            raise

    def _ends(self, numbers: Sequence[int]) -> dict[TopicPartition, int]:
        partitions = [TopicPartition(self.topic, number) for number in numbers]
        try:
            with broker_errors(f"asking for the ends of topic {self.topic}"):
                ends: dict[TopicPartition, int] = self._connected().consumer.end_offsets(
                    partitions, timeout_ms=self._answer_s * 1000
                )
        except LogUnavailableError:
            self.close()
            raise
        return ends

    def _connected(self) -> Connection:
        if self._connection is None:
            self._connection = Connection(self._client, self.topic)
            found = self._connection.identity.text
            if self._identity is not None and found != self._identity:
                self.close()
                raise LogCorruptError(
                    f"topic {self.topic} is no longer {self._identity} but {found}: it was deleted and made anew, or "
                    "the address leads to another cluster. Collect it with another home."
                )
            self._identity = found
        return self._connection


class PartitionLog:
    """``EventReader`` over one partition, on the connection of its topic's reader."""

    def __init__(self, reader: KafkaReader, number: int) -> None:
        self._reader = reader
        self._number = number

    def identity(self) -> str:
        """Return cluster id, topic id and partition."""
        return f"{self._reader.identity()}/{self._number}"

    def read(self, after: Positions, *, max_bytes: int) -> Iterator[Chunk]:
        """Yield what stands after the position; see ``KafkaReader.read``."""
        yield from self._reader.read_partitions([self._number], after, max_bytes=max_bytes)

    def ends(self) -> dict[str, int]:
        """Return the offset after the last record, nothing for an empty partition."""
        return self._reader.ends_of([self._number])


def source_of(partition: TopicPartition) -> str:
    """Return a partition's name in positions."""
    return f"{partition.topic}/{partition.partition}"
