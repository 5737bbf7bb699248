"""Partitions read from where the store stands to where they end, in chunks."""

import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from kafka import TopicPartition
from kafka.errors import LogTruncationError, OffsetOutOfRangeError

from build_events.errors import LogCorruptError, LogUnavailableError
from build_events.log import Chunk, Reject
from collector.kafka import records
from collector.kafka.connection import Connection
from collector.kafka.errors import broker_errors

GONE = "offset_out_of_range"
_POLL_MS = 100


def fetch(
    connection: Connection,
    targets: Mapping[TopicPartition, tuple[int, int]],
    *,
    max_bytes: int,
    answer_s: float,
    lost: Callable[[str], None],
) -> Iterator[Chunk]:
    """Yield each partition's records from its first offset to its last, both as given in ``targets``.

    Records that are no longer there are told to ``lost`` and yielded as a reject of their whole range.

    Raises:
        LogUnavailableError: no record came for ``answer_s`` seconds.
        LogCorruptError: the topic was made anew meanwhile, or shortened.
    """
    consumer = connection.consumer
    at = {partition: start for partition, (start, _) in targets.items()}
    _stand(connection, at)
    heard = time.monotonic()
    while at:
        fetched, gone = _poll(connection)
        if fetched or gone:
            connection.check()  # after the fetch: a topic id is never given twice, so this came from our topic
        for partition, start in gone.items():
            yield _skipped(connection, partition, start, lost)
        for partition, start in list(at.items()):
            position = consumer.position(partition)
            if position != start:  # also where only markers of transactions stood
                heard = time.monotonic()
                at[partition] = position
                if partition not in gone:
                    name, found = f"{partition.topic}/{partition.partition}", fetched.get(partition, ())
                    yield from records.chunks(name, found, position, max_bytes=max_bytes)
            if position >= targets[partition][1]:
                consumer.pause(partition)
                del at[partition]
        if time.monotonic() - heard > answer_s:
            raise LogUnavailableError(
                f"topic {connection.topic}: the broker sent nothing for {answer_s:g} s of what it has. What was read "
                "before stands; try again when the broker answers."
            )


def _stand(connection: Connection, at: Mapping[TopicPartition, int]) -> None:
    """Let exactly these partitions be fetched, from these offsets."""
    consumer = connection.consumer
    consumer.pause(*consumer.assignment())
    for partition, start in at.items():
        if consumer.position(partition) != start:
            consumer.seek(partition, start)
        consumer.resume(partition)


def _poll(connection: Connection) -> tuple[dict[TopicPartition, list[Any]], dict[TopicPartition, int]]:
    """Return records, and the offsets at which there are none any more."""
    with broker_errors(f"reading topic {connection.topic}"):
        try:
            return connection.consumer.poll(timeout_ms=_POLL_MS), {}
        except OffsetOutOfRangeError as error:
            return {}, dict(error.args[0])
        except LogTruncationError as error:
            raise LogCorruptError(
                f"topic {connection.topic} was shortened behind what was read of it: {error}. Restore it, or collect "
                "what is left of it with another home."
            ) from error


def _skipped(connection: Connection, partition: TopicPartition, start: int, lost: Callable[[str], None]) -> Chunk:
    """Go on at the first record that is left, and return the gap before it."""
    with broker_errors(f"asking for the beginning of topic {connection.topic}"):
        first = connection.consumer.beginning_offsets([partition])[partition]
    name = f"{partition.topic}/{partition.partition}"
    if first <= start:
        raise LogCorruptError(f"{name}: the broker refuses offset {start}, but has offset {first}. Repair the topic.")
    connection.consumer.seek(partition, first)
    lost(
        f"{name}: records {start} to {first - 1} are gone from the topic, before they were collected. The gap is among "
        "the dead letters; see `enginetrail topics check` for the topic's retention."
    )
    return Chunk(name, [], [], first, [Reject(start, b"", f"{GONE}: records {start} to {first - 1}")])
