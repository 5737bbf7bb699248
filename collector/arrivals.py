"""Which events of a batch are new: by each stream's sequence ranges, so at a cost that history does not raise."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from build_events import ranges
from build_events.envelope import StreamHeader
from build_events.state import Ranges
from collector.event_rows import streams
from collector.parsing import Decoded, Parsed


class Stretch(NamedTuple):
    """Rows of one stream with consecutive sequences, as they follow each other in the table."""

    low: int
    high: int  # exclusive
    first_row: int


@dataclass(slots=True)
class StreamArrivals:
    """What a batch holds of one stream, duplicates included."""

    stretches: list[Stretch] = field(default_factory=list)
    decoded: list[Decoded] = field(default_factory=list)

    @property
    def count(self) -> int:
        """How many events arrived."""
        return sum(stretch.high - stretch.low for stretch in self.stretches) + len(self.decoded)

    @property
    def sequences(self) -> Ranges:
        """Which sequences arrived."""
        pieces = [(stretch.low, stretch.high) for stretch in self.stretches]
        pieces += [(item.record.sequence, item.record.sequence + 1) for item in self.decoded]
        return ranges.union(tuple(pieces[:1]), tuple(pieces[1:]))


@dataclass(slots=True)
class NewEvents:
    """The events of a batch that the store has not seen."""

    rows: pa.Table
    decoded: dict[StreamHeader, list[Decoded]] = field(default_factory=dict)
    sequences: dict[StreamHeader, Ranges] = field(default_factory=dict)  # only streams with something new
    duplicates: int = 0


def arrivals(parsed: Parsed) -> dict[StreamHeader, StreamArrivals]:
    """Return what arrived of each stream."""
    found: dict[StreamHeader, StreamArrivals] = {}
    for header, stretch in _stretches(parsed.rows):
        found.setdefault(header, StreamArrivals()).stretches.append(stretch)
    for item in parsed.decoded:
        found.setdefault(item.record.stream, StreamArrivals()).decoded.append(item)
    return found


def new_events(
    parsed: Parsed, arrived: Mapping[StreamHeader, StreamArrivals], seen: Mapping[StreamHeader, Ranges]
) -> NewEvents:
    """Return what is new, given the sequences already seen of each stream."""
    new = NewEvents(parsed.rows)
    duplicate_rows: list[int] = []
    for header, stream in arrived.items():
        before, came = seen.get(header, ()), stream.sequences
        added = ranges.size(ranges.union(before, came)) - ranges.size(before)
        decoded = stream.decoded
        if added < stream.count:
            new.duplicates += stream.count - added
            came, decoded = _without_duplicates(stream, before, duplicate_rows)
        if added:
            new.sequences[header], new.decoded[header] = came, decoded
    if duplicate_rows:
        dropped = pa.array(duplicate_rows, pa.int64())
        numbers = pa.array(range(parsed.rows.num_rows), pa.int64())
        new.rows = parsed.rows.filter(pc.invert(pc.is_in(numbers, value_set=dropped)))
    return new


def _stretches(rows: pa.Table) -> Iterator[tuple[StreamHeader, Stretch]]:
    sequences = rows.column("sequence").combine_chunks().cast(pa.int64())
    jumped = pc.indices_nonzero(pc.not_equal(sequences[1:], pc.add(sequences[:-1], 1)))
    for header, start, stop in streams(rows, pc.add(jumped, 1).to_pylist()):
        low = sequences[start].as_py()
        yield header, Stretch(low, low + stop - start, start)


def _without_duplicates(
    stream: StreamArrivals, before: Ranges, duplicate_rows: list[int]
) -> tuple[Ranges, list[Decoded]]:
    """Return the new sequences and decoded events, and add the rows of the rest to ``duplicate_rows``.

    Of several records with one sequence the first is kept: they are one event, delivered again.
    """
    taken: set[int] = set()

    def is_new(sequence: int) -> bool:
        if sequence in taken or ranges.contains(before, sequence):
            return False
        taken.add(sequence)
        return True

    for low, high, first_row in stream.stretches:
        duplicate_rows += [first_row + sequence - low for sequence in range(low, high) if not is_new(sequence)]
    decoded = [item for item in stream.decoded if is_new(item.record.sequence)]
    return ranges.of(taken), decoded
