"""Consumed records to chunks of the log port. A record is never cut apart: all its events share its offset."""

from collections.abc import Iterator, Sequence
from typing import Any

from build_events import kafka_record
from build_events.log import Chunk, Reject


def chunks(source: str, records: Sequence[Any], next_offset: int, *, max_bytes: int) -> Iterator[Chunk]:
    """Yield what consecutive records of a partition hold, about ``max_bytes`` a chunk at most.

    ``records`` are kafka-python's; ``next_offset`` is the consumer's position after all of them, which may be
    further than the last one: markers of transactions have offsets, too.
    """
    payloads: list[bytes] = []
    offsets: list[int] = []
    rejects: list[Reject] = []
    size = 0
    for record in records:
        found = kafka_record.decode(record.headers or (), record.value)
        added = sum(map(len, found.payloads)) + sum(len(bad.payload) for bad in found.bad)
        if size and size + added > max_bytes:
            yield Chunk(source, payloads, offsets, record.offset, rejects)
            payloads, offsets, rejects, size = [], [], [], 0
        payloads += found.payloads
        offsets += [record.offset] * len(found.payloads)
        size += added
        rejects += [
            Reject(record.offset, bad.payload, bad.reason, found.stream_id, found.run_id, found.route)
            for bad in found.bad
        ]
    yield Chunk(source, payloads, offsets, next_offset, rejects)
