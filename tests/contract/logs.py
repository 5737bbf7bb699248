"""The event logs that the contract suite runs over. A new adapter joins by one entry in ``LOGS``."""

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from build_events.kafka_settings import kafka_settings
from build_events.local_log import LocalLog
from build_events.log import EventReader, EventWriter, InMemoryEventLog
from builder_agent.kafka.log import KafkaLog
from collector.kafka.reader import KafkaReader
from tests.collector_kafka.topics import Topic, new_topic


class LogUnderTest(Protocol):
    """One empty log at first; every call opens it anew, as another process would."""

    def writer(self) -> EventWriter:
        """Return a writer to the log."""
        ...

    def reader(self) -> EventReader:
        """Return a reader of the log."""
        ...

    def close(self) -> None:
        """Let go of everything that was opened."""
        ...


@dataclass(frozen=True)
class Memory:
    """The in-memory log; it lives in one process, so opening gives the same object."""

    log: InMemoryEventLog

    def writer(self) -> EventWriter:
        """Return the log."""
        return self.log

    def reader(self) -> EventReader:
        """Return the log."""
        return self.log

    def close(self) -> None:
        """Nothing is open."""


@dataclass(frozen=True)
class Local:
    """The local log in a folder, with segments short enough that streams roll over."""

    folder: Path
    segment_bytes: int

    def writer(self) -> EventWriter:
        """Return a log that makes the folder where it is missing."""
        return LocalLog.create(self.folder, segment_bytes=self.segment_bytes)

    def reader(self) -> EventReader:
        """Return a log that was never written through."""
        return LocalLog(self.folder)

    def close(self) -> None:
        """Leave the streams as a killed writer does."""


@dataclass(frozen=True)
class Kafka:
    """A topic of a real broker, one event a record or batches as the agent sends them."""

    topic: Topic
    opened: list[KafkaLog | KafkaReader] = field(default_factory=list)

    def writer(self) -> EventWriter:
        """Return a log that writes to the topic without a spool."""
        log = KafkaLog(kafka_settings(self.topic.url, {}))
        self.opened.append(log)
        return log

    def reader(self) -> EventReader:
        """Return a reader with connections of its own."""
        reader = KafkaReader(self.topic.client, self.topic.name)
        self.opened.append(reader)
        return reader

    def close(self) -> None:
        """Hang up."""
        while self.opened:
            self.opened.pop().close()


KAFKA = "kafka"
_broker: list[str] = []  # its address, once a test needs it


def use_broker(address: str) -> None:
    """Say where the broker is that Kafka's logs are made on."""
    _broker.append(address)


LOGS: dict[str, Callable[[Path], LogUnderTest]] = {
    "memory": lambda _: Memory(InMemoryEventLog()),
    "local": lambda folder: Local(folder / "log", segment_bytes=64 << 20),
    "local, short segments": lambda folder: Local(folder / "log", segment_bytes=2_000),
    KAFKA: lambda _: Kafka(new_topic(_broker[-1])),
}
