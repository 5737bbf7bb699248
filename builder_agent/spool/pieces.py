"""What a stream of the spool has to send: cut into records, each with the position behind it."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from build_events import kafka_record
from build_events.kafka_record import KafkaRecord
from build_events.local_log.cursor import Position
from build_events.local_log.listing import Segment
from build_events.local_log.segment_reader import chunks
from build_events.log import Chunk

CHUNK_BYTES = 1 << 20


@dataclass(frozen=True, slots=True)
class Item:
    """One event, or bytes that hold none."""

    source: str  # its segment
    offset: int
    payload: bytes
    defect: str | None = None  # why it cannot be sent


@dataclass(frozen=True, slots=True)
class Piece:
    """One record to send, or items that go to dead letters instead; both in the order of the stream."""

    items: Sequence[Item]
    end: Position  # once this piece is dealt with, the stream is drained up to here
    record: KafkaRecord | None

    @property
    def size(self) -> int:
        """Bytes that it holds in memory."""
        return sum(len(item.payload) for item in self.items)


def pieces(segments: Sequence[tuple[int, Segment]], start: Position) -> Iterator[Piece]:
    """Yield what stands in a stream's segments, given with their numbers in order, behind ``start``."""
    for number, segment in segments:
        if number < start.segment:
            continue
        begin = start.offset if number == start.segment else 0
        for chunk in chunks(segment, begin, max_bytes=CHUNK_BYTES):
            if chunk.rejects:
                # First, and without moving on: what comes behind them must not hide them.
                bad = [Item(chunk.source, reject.offset, reject.payload, reject.reason) for reject in chunk.rejects]
                yield Piece(bad, Position(number, begin), None)
            for part in kafka_record.cut(map(len, chunk.payloads)):
                yield from _of_part(chunk, number, part)
            if not chunk.payloads:
                yield Piece([], Position(number, chunk.next_offset), None)
            begin = chunk.next_offset


def _of_part(chunk: Chunk, number: int, part: range) -> Iterator[Piece]:
    payloads = chunk.payloads[part.start : part.stop]
    end = Position(number, chunk.offsets[part.stop] if part.stop < len(chunk.offsets) else chunk.next_offset)
    defect = "oversize" if len(payloads[0]) > kafka_record.MAX_EVENT_BYTES else None
    try:
        record = None if defect else kafka_record.encode(payloads)
    except (KeyError, TypeError, ValueError):
        # A line with a good checksum that is no event of ours. Its neighbours go without it.
        if len(part) > 1:
            for index in part:
                yield from _of_part(chunk, number, range(index, index + 1))
            return
        record, defect = None, "not_an_event"
    items = [Item(chunk.source, chunk.offsets[index], chunk.payloads[index], defect) for index in part]
    yield Piece(items, end, record)
