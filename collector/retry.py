"""Dead letters read again from the log, by this release: what it can read now is stored like any event."""

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial

import duckdb
import pyarrow as pa

from build_events.clock import Clock, system_clock
from build_events.log import EventReader, Positions
from collector.batches import TORN_TAIL, ParsedBatch
from collector.commit import commit
from collector.parsing import Parsed, Parser
from collector.payloads import Payloads
from collector.store import Store

_LETTERS = (
    'SELECT source, "offset", payload, stream_id, run_id, route FROM base.dead_letters '
    'WHERE reason <> ? ORDER BY source, "offset"'
)


@dataclass(frozen=True, slots=True)
class RetryStats:
    """What a retry did."""

    tried: int
    healed: int  # dead letters that are none any more
    events: int  # new in the store by that


@dataclass(frozen=True, slots=True)
class _Letter:
    source: str
    offset: int
    payload: bytes
    stream_id: str | None
    run_id: str | None
    route: str | None


def retry(store: Store, log: EventReader, *, clock: Clock = system_clock) -> RetryStats:
    """Read every dead letter's place in the log again and store what is an event now.

    Raises:
        LogUnavailableError: the log does not answer.
        StoreWriteError: the store cannot be written; what was healed before stands.
    """
    letters = [_Letter(*row) for row in _fetched(store)]
    ends = log.ends()
    healed = events = 0
    parser = Parser()
    try:
        for (source, offset), group in itertools.groupby(letters, key=lambda letter: (letter.source, letter.offset)):
            parsed, still_bad = _read_again(log, ends, source, offset, parser)
            good = [letter for letter in group if letter.payload not in still_bad]
            if parsed is None or not good:
                continue
            batch = ParsedBatch(parsed, (), {}, records=0, size_bytes=0)
            events += commit(store, batch, noted_at_ns=clock().wall_ns, first=partial(_forget, letters=good)).events
            healed += len(good)
    finally:
        parser.close()
    return RetryStats(len(letters), healed, events)


def _fetched(store: Store) -> Iterator[tuple[str, int, bytes, str | None, str | None, str | None]]:
    cursor = store.cursor()
    try:
        yield from cursor.execute(_LETTERS, [TORN_TAIL]).fetchall()
    finally:
        cursor.close()


def _read_again(
    log: EventReader, ends: Positions, source: str, offset: int, parser: Parser
) -> tuple[Parsed | None, set[bytes]]:
    """Return what stands at a place now, and which bytes of it hold no event; ``None`` where nothing stands."""
    chunk = next((found for found in log.read({**ends, source: offset}, max_bytes=1) if found.source == source), None)
    if chunk is None:
        return None, set()
    payloads = [payload for payload, at in zip(chunk.payloads, chunk.offsets, strict=True) if at == offset]
    still_bad = {reject.payload for reject in chunk.rejects if reject.offset == offset}
    if not payloads:
        return None, still_bad
    parsed = parser.parse(Payloads(payloads))
    return Parsed(parsed.rows, parsed.decoded, ()), still_bad | {payloads[index] for index, _ in parsed.bad}


def _forget(db: duckdb.DuckDBPyConnection, letters: Sequence[_Letter]) -> None:
    names = ("source", "offset", "payload", "stream_id", "run_id", "route")
    types = (pa.string(), pa.int64(), pa.binary(), pa.string(), pa.string(), pa.string())
    columns = {
        name: pa.array([getattr(letter, name) for letter in letters], kind)
        for name, kind in zip(names, types, strict=True)
    }
    db.register("healed", pa.table(columns))
    try:
        db.execute(
            "DELETE FROM base.dead_letters AS letter USING healed WHERE letter.source = healed.source "
            'AND letter."offset" = healed."offset" AND letter.payload = healed.payload'
        )
        db.execute(
            "MERGE INTO base.dead_letter_counts AS known "
            "USING (SELECT run_id, route, stream_id, count(*) AS count FROM healed GROUP BY ALL) AS gone "
            "ON known.run_id IS NOT DISTINCT FROM gone.run_id AND known.route IS NOT DISTINCT FROM gone.route "
            "AND known.stream_id IS NOT DISTINCT FROM gone.stream_id "
            "WHEN MATCHED AND known.count <= gone.count THEN DELETE "
            "WHEN MATCHED THEN UPDATE SET count = known.count - gone.count"
        )
    finally:
        db.unregister("healed")
