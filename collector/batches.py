"""The log cut into batches, batches parsed and put together: everything of a commit that needs no store."""

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from operator import itemgetter

import pyarrow as pa
from pydantic_core import from_json

from build_events.log import Chunk, Positions, Reject
from collector.gathering import gathered
from collector.parsing import Parsed, Parser
from collector.payloads import Payloads

TORN_TAIL = "torn_tail"  # bytes that were never acknowledged: no event is missing by them


@dataclass(frozen=True, slots=True)
class DeadLetter:
    """Bytes of the log that hold no event of the contract, and where they stand."""

    source: str
    offset: int
    reason: str
    payload: bytes
    stream_id: str | None = None  # whose completeness it counts against, where known
    run_id: str | None = None
    route: str | None = None

    @property
    def counts(self) -> bool:
        """An event may be missing because of it."""
        return self.reason != TORN_TAIL


@dataclass(slots=True)
class Batch:
    """Consecutive chunks of the log, to be parsed together."""

    chunks: list[tuple[int, Chunk]] = field(default_factory=list)  # without payloads; where theirs begin
    payloads: Payloads = field(default_factory=Payloads)
    records: int = 0
    size_bytes: int = 0  # of payloads and rejects

    def add(self, chunk: Chunk) -> None:
        """Add a chunk."""
        self.chunks.append((self.payloads.count, replace(chunk, payloads=())))
        self.records += len(chunk.payloads) + len(chunk.rejects)
        self.size_bytes += self.payloads.add(chunk.payloads) + sum(len(reject.payload) for reject in chunk.rejects)


@dataclass(frozen=True, slots=True)
class ParsedBatch:
    """A batch as it will be stored, alone or put together with the ones after it."""

    parsed: Parsed
    dead_letters: Sequence[DeadLetter]
    positions: Positions  # of each source in it, after it
    records: int
    size_bytes: int

    def __add__(self, after: "ParsedBatch") -> "ParsedBatch":
        return ParsedBatch(
            parsed=Parsed(
                pa.concat_tables([self.parsed.rows, after.parsed.rows]),
                [*self.parsed.decoded, *after.parsed.decoded],
                (),  # dead letters by now
            ),
            dead_letters=[*self.dead_letters, *after.dead_letters],
            positions={**self.positions, **after.positions},
            records=self.records + after.records,
            size_bytes=self.size_bytes + after.size_bytes,
        )


def batches(chunks: Iterable[Chunk], *, max_records: int, max_bytes: int, max_s: float) -> Iterator[Batch]:
    """Yield batches that reach one of the limits, and what is left at the end, or before an error."""

    def put(batch: Batch | None, chunk: Chunk) -> Batch:
        batch = batch or Batch()
        batch.add(chunk)
        return batch

    def enough(batch: Batch) -> bool:
        return batch.records >= max_records or batch.size_bytes >= max_bytes

    return gathered(chunks, put, enough=enough, max_s=max_s)


def parse(batch: Batch, parser: Parser) -> ParsedBatch:
    """Return the batch parsed."""
    parsed = parser.parse(batch.payloads)
    dead = [_rejected(chunk.source, reject) for _, chunk in batch.chunks for reject in chunk.rejects]
    for index, reason in parsed.bad:
        first, chunk = batch.chunks[bisect_right(batch.chunks, index, key=itemgetter(0)) - 1]
        dead.append(_poisoned(chunk, chunk.offsets[index - first], batch.payloads[index], reason))
    return ParsedBatch(
        parsed=parsed,
        dead_letters=dead,
        positions={chunk.source: chunk.next_offset for _, chunk in batch.chunks},
        records=batch.records,
        size_bytes=batch.size_bytes,
    )


def _rejected(source: str, reject: Reject) -> DeadLetter:
    return DeadLetter(
        source, reject.offset, reject.reason, reject.payload, reject.stream_id, reject.run_id, reject.route
    )


def _poisoned(chunk: Chunk, offset: int, payload: bytes, reason: str) -> DeadLetter:
    """Return the dead letter of a record that breaks the contract: whose it is tells its place, else itself."""
    if chunk.stream_id is not None:
        return DeadLetter(chunk.source, offset, reason, payload, chunk.stream_id, chunk.run_id, chunk.route)
    try:
        document = from_json(payload)
    except ValueError:
        document = None
    said = document if isinstance(document, dict) else {}

    def text(name: str) -> str | None:
        value = said.get(name)
        return value if isinstance(value, str) and value else None

    return DeadLetter(chunk.source, offset, reason, payload, text("streamid"), text("runid"), text("route"))
