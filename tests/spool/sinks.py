"""A sink in memory that does what a topic does, and fails where it is told to."""

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from build_events import codec, kafka_record
from build_events.envelope import Recorded
from build_events.kafka_record import KafkaRecord
from builder_agent.spool.sink import Answer, SinkUnavailableError


@dataclass
class MemorySink:
    """``Sink`` over a list. ``away``: not reachable; ``silent``: takes records and never answers."""

    log_id: str = "memory/1"
    away: bool = False
    silent: bool = False
    refuses: Callable[[KafkaRecord], bool] = lambda _record: False
    fails_at: Callable[[int], bool] = lambda _number: False  # of the deliveries, counted from 0
    stored: list[KafkaRecord] = field(default_factory=list)
    deliveries: int = 0
    longest_delivery: int = 0  # bytes
    closed: bool = False

    def identity(self) -> str:
        """Return the identity given at construction, or fail while away."""
        if self.away:
            raise SinkUnavailableError("memory is away")
        return self.log_id

    def deliver(self, records: Sequence[KafkaRecord], give_up: Callable[[], bool]) -> list[Answer]:
        """Store the records up to the first failure."""
        number, self.deliveries = self.deliveries, self.deliveries + 1
        self.longest_delivery = max(self.longest_delivery, sum(len(record.value) for record in records))
        if self.silent:
            nothing = threading.Event()
            while not give_up():
                nothing.wait(0.01)
        answers = []
        for index, record in enumerate(records):
            if self.silent or (self.fails_at(number) and index >= len(records) // 2):
                answers.append(Answer("unknown"))
            elif self.refuses(record):
                answers.append(Answer("refused", "MessageSizeTooLargeError"))
            else:
                self.stored.append(record)
                answers.append(Answer("stored"))
        return answers

    def close(self) -> None:
        """Note it."""
        self.closed = True

    @property
    def records(self) -> list[Recorded]:
        """What was stored, decoded, in order."""
        payloads = [kafka_record.decode(record.headers, record.value).payloads for record in self.stored]
        return [codec.decode(payload) for found in payloads for payload in found]
