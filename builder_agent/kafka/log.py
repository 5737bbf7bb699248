"""Kafka as a log that is written to directly, without a spool between."""

import time
from collections.abc import Sequence

from build_events import codec, kafka_record
from build_events.envelope import Recorded
from build_events.errors import LogUnavailableError
from build_events.kafka_record import KafkaRecord
from build_events.kafka_settings import KafkaSettings
from builder_agent.kafka.sink import KafkaSink
from builder_agent.spool.sink import SinkUnavailableError

APPEND_TIMEOUT_S = 30.0


class KafkaLog:
    """``EventWriter`` over a topic. One thread uses it; close it at the end."""

    def __init__(self, settings: KafkaSettings, *, timeout_s: float = APPEND_TIMEOUT_S) -> None:
        self._sink = KafkaSink(settings)
        self._url = settings.url
        self._timeout_s = timeout_s

    def append(self, records: Sequence[Recorded]) -> None:
        """Return once every replica that must has all of them; each stream's events in order.

        To repeat a failed append is safe: what was stored twice is a duplicate by stream and sequence.

        Raises:
            EventTooLargeError: an event is too long; nothing was stored.
            LogUnavailableError: not all were stored within the time, or the broker refused one for good.
        """
        deadline = time.monotonic() + self._timeout_s
        try:
            self._sink.identity()
            answers = self._sink.deliver(_records(records), lambda: time.monotonic() >= deadline)
        except SinkUnavailableError as error:
            raise LogUnavailableError(str(error)) from error
        failed = [answer for answer in answers if answer.state != "stored"]
        if failed:
            why = failed[0].reason or f"no acknowledgement within {self._timeout_s:.0f} s"
            raise LogUnavailableError(f"{self._url}: {why}; append the same again")

    def close(self) -> None:
        """Let go of the connection."""
        self._sink.close()


def _records(records: Sequence[Recorded]) -> list[KafkaRecord]:
    streams: dict[str, list[bytes]] = {}
    for record in records:
        streams.setdefault(record.stream.stream_id, []).append(codec.encode_for_log(record))
    return [
        kafka_record.encode([payloads[index] for index in part])
        for payloads in streams.values()
        for part in kafka_record.cut(map(len, payloads))
    ]
