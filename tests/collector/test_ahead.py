"""Working ahead and putting together: order, bounds, ends and errors."""

import itertools
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from typing_extensions import override

from build_events.errors import LogUnavailableError
from build_events.log import Chunk, InMemoryEventLog, Positions, Reject
from collector.ahead import ahead
from collector.batches import ParsedBatch, batches
from collector.event_rows import ROW_SCHEMA
from collector.ingest import Ingester, Sizes, together
from collector.parsing import Parsed
from collector.store import Store
from tests.collector.scenes import beat
from tests.waiting import until

WAIT_S = 10.0


class _Counter:
    """Items from 0, and how many were made."""

    def __init__(self, items: int, *, fails_at: int | None = None) -> None:
        self.made = 0
        self._items, self._fails_at = items, fails_at

    def made_are(self, number: int) -> bool:
        return self.made == number

    def __iter__(self) -> Iterator[int]:
        for item in range(self._items):
            if item == self._fails_at:
                msg = "no more"
                raise ValueError(msg)
            self.made += 1
            yield item


@pytest.mark.parametrize("at_most", [1, 3])
def test_no_more_is_made_ahead_than_asked_for(at_most: int) -> None:
    """While an item is used, exactly the next ones are made: what waits in memory is bounded."""
    items = _Counter(10)
    made_ahead = ahead(iter(items), at_most=at_most)
    for used in range(5):
        assert next(made_ahead) == used
        until(partial(items.made_are, used + 1 + at_most), within_s=WAIT_S)
    made_ahead.close()
    assert items.made == 5 + at_most


def test_items_come_in_order_and_then_their_error() -> None:
    """An error is raised where its item would have stood, and everything before it comes first."""
    made_ahead = ahead(iter(_Counter(10, fails_at=4)), at_most=3)
    assert list(itertools.islice(made_ahead, 4)) == [0, 1, 2, 3]
    with pytest.raises(ValueError, match="no more"):
        next(made_ahead)


def _batch(number: int, records: int) -> ParsedBatch:
    rows = pa.schema([ROW_SCHEMA.field("sequence")]).empty_table()
    return ParsedBatch(
        Parsed(rows, (), ()), (), {"source": number, f"source-{number % 2}": number}, records, records * 10
    )


@given(
    records=st.lists(st.integers(0, 40), max_size=20),
    most=st.integers(1, 100),
    most_bytes=st.integers(1, 1_000),
)
def test_batches_are_put_together_up_to_the_size_of_a_commit(records: list[int], most: int, most_bytes: int) -> None:
    """Nothing is left out, each but the last reaches a limit by its last batch, and positions are the newest."""
    sizes = Sizes(commit_records=most, commit_bytes=most_bytes, commit_s=3600)
    parts = [_batch(number, count) for number, count in enumerate(records)]
    found = list(together(parts, sizes))
    assert sum(batch.records for batch in found) == sum(records)
    assert sum(batch.size_bytes for batch in found) == 10 * sum(records)
    assert all(batch.records >= most or batch.size_bytes >= most_bytes for batch in found[:-1])
    positions: dict[str, int] = {}
    for batch in found:
        positions |= batch.positions
    assert positions == {source: offset for part in parts for source, offset in part.positions.items()}


class _BreakingLog(InMemoryEventLog):
    """A log that is away once it was read to its end."""

    @override
    def read(self, after: Positions, *, max_bytes: int) -> Iterator[Chunk]:
        yield from super().read(after, max_bytes=max_bytes)
        msg = "away"
        raise LogUnavailableError(msg)


def test_what_was_read_before_an_error_is_committed_before_it_is_raised() -> None:
    """A log that breaks off again and again is taken in nevertheless."""
    log = _BreakingLog()
    log.append([beat(number) for number in range(95)])
    sizes = Sizes(chunk_bytes=2_000, batch_records=10, commit_records=1_000)
    with Store.open(Path(":memory:"), log_identity=log.identity(), views=[]) as store:
        with Ingester(log, store, sizes=sizes) as ingester, pytest.raises(LogUnavailableError):
            ingester.ingest()
        assert store.cursor().sql("SELECT count(*) FROM base.events").fetchall() == [(95,)]
        assert store.positions() == log.ends()


def test_a_batch_is_cut_by_number_size_and_time() -> None:
    """Each limit alone ends a batch; payloads and rejects count for its size."""
    chunks = [Chunk("source", [b"{}"] * 5, range(5), 5, [Reject(4, b"x" * 90, "not_json")]) for _ in range(4)]
    wide = {"max_records": 1_000, "max_bytes": 1 << 20, "max_s": 3600.0}
    assert [batch.records for batch in batches(chunks, **wide)] == [24]  # type: ignore[arg-type]
    for limit in ({"max_records": 12}, {"max_bytes": 200}):
        assert [batch.records for batch in batches(chunks, **(wide | limit))] == [12, 12]  # type: ignore[arg-type]
    assert [batch.records for batch in batches(chunks, **(wide | {"max_s": 0.0}))] == [6, 6, 6, 6]  # type: ignore[arg-type]


def test_a_slow_log_is_committed_as_it_comes() -> None:
    """Once the time of a commit is over, what there is is committed."""
    parts = [_batch(number, 1) for number in range(3)]
    assert [batch.records for batch in together(parts, Sizes(commit_s=0.0))] == [1, 1, 1]
