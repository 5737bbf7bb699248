"""One batch into the store: rows, positions, sequence ranges and the fold, in one transaction.

1. Load what the store knows of the touched streams.  2. Drop what is a duplicate.  3. Insert events and
dead letters.  4. Advance the fold; fold a run again from all its events where the news reach back to
what was settled.  5. Write the rows of touched runs.  6. Move the positions.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

import duckdb
import pyarrow as pa

from build_events.envelope import StreamHeader
from collector import fold_store, projection
from collector.arrivals import NewEvents, arrivals, new_events
from collector.batches import DeadLetter, ParsedBatch
from collector.event_rows import to_table
from collector.fold_store import Known
from collector.projection import Advanced, StreamFold
from collector.store import Store, insert


@dataclass(slots=True)
class CollectStats:
    """What collecting did."""

    records: int = 0  # read from the log
    events: int = 0  # new in the store
    duplicates: int = 0
    dead_letters: int = 0
    runs_folded_again: int = 0
    commits: int = 0

    def __add__(self, other: "CollectStats") -> "CollectStats":
        return CollectStats(*(getattr(self, name) + getattr(other, name) for name in self.__slots__))


def commit(
    store: Store,
    batch: ParsedBatch,
    noted_at_ns: int,
    *,
    first: Callable[[duckdb.DuckDBPyConnection], None] = lambda _: None,
) -> CollectStats:
    """Store a batch, read at ``noted_at_ns`` since 1970 UTC: all of it, or nothing.

    ``first`` writes in the same transaction, before the batch.

    Raises:
        StoreWriteError: it could not be written; the store must be closed, and holds what it held before.
    """
    arrived = arrivals(batch.parsed)
    counted = [letter for letter in batch.dead_letters if letter.counts]
    run_ids = {header.run_id for header in arrived if header.run_id} | {
        letter.run_id for letter in counted if letter.run_id
    }
    with store.transaction() as db:
        first(db)
        known = fold_store.load(db, arrived, run_ids)
        reread = _read_the_unreadable(db, known)
        new = new_events(batch.parsed, arrived, {header: item.state.seen for header, item in known.folds.items()})
        insert_events(db, new)
        _insert_dead_letters(db, batch.dead_letters, counted, noted_at_ns)
        advanced, folded_again = _advance(db, known.folds, new)
        advanced.settled += [row for row in reread.settled if row.run_id not in folded_again]
        folds = {**known.folds, **advanced.folds}
        changed = {header.stream_id for header in (*advanced.folds, *reread.folds)}
        touched = [item for item in folds.values() if item.state.header.run_id in run_ids]
        routes = [item for item in folds.values() if item.state.header.run_id is None]
        fold_store.write(
            db,
            store.schemas,
            states=projection.run_states(touched, _dead_letters_of(db, run_ids)),
            routes=projection.route_streams(routes),
            advanced=advanced,
            folds=[item for header, item in folds.items() if header.stream_id in changed],
        )
        move_positions(db, batch.positions)
    return CollectStats(
        records=batch.records,
        events=new.rows.num_rows + sum(map(len, new.decoded.values())),
        duplicates=new.duplicates,
        dead_letters=len(batch.dead_letters),
        runs_folded_again=len(folded_again),
        commits=1,
    )


def _read_the_unreadable(db: duckdb.DuckDBPyConnection, known: Known) -> Advanced:
    """Fold the streams again whose state another release wrote, and add them to ``known``."""
    if not known.unreadable:
        return Advanced()
    reread = fold_store.fold_again(
        db,
        run_ids=[run_id for _, run_id in known.unreadable if run_id is not None],
        stream_ids=[stream_id for stream_id, run_id in known.unreadable if run_id is None],
    )
    known.folds.update(reread.folds)
    return reread


def _advance(
    db: duckdb.DuckDBPyConnection, known: Mapping[StreamHeader, StreamFold], new: NewEvents
) -> tuple[Advanced, set[str]]:
    """Return the streams after their new events, and the runs that were folded again for it."""
    records = [item.record for items in new.decoded.values() for item in items]
    news = fold_store.gather(new.sequences, new.rows, records)
    again = {
        item.header.run_id
        for item in news
        if item.header.run_id is not None
        and item.header in known
        and projection.needs_all_events(known[item.header], item)
    }
    advanced = projection.advance(known, [item for item in news if item.header.run_id not in again])
    if again:
        whole = fold_store.fold_again(db, run_ids=again)
        advanced.folds.update(whole.folds)
        advanced.settled += whole.settled
    return advanced, again


def insert_events(db: duckdb.DuckDBPyConnection, new: NewEvents) -> None:
    """Insert the events of a batch that are new."""
    payload = pa.nulls(new.rows.num_rows, pa.string())  # of the types whose columns hold all
    insert(db, "events", new.rows.append_column("payload", payload))
    insert(db, "events", to_table((item.record, item.payload) for items in new.decoded.values() for item in items))


def _insert_dead_letters(
    db: duckdb.DuckDBPyConnection, letters: Sequence[DeadLetter], counted: Sequence[DeadLetter], noted_at_ns: int
) -> None:
    if not letters:
        return
    table = _letter_table(letters)
    noted_at = pa.array([noted_at_ns] * len(letters), pa.timestamp("ns"))
    insert(db, "dead_letters", table.append_column("noted_at", noted_at))
    counts = Counter((letter.run_id, letter.route, letter.stream_id) for letter in counted)
    for (run_id, route, stream_id), count in counts.items():
        db.execute(
            "MERGE INTO base.dead_letter_counts AS known "
            "USING (SELECT ? AS run_id, ? AS route, ? AS stream_id) AS new "
            "ON known.run_id IS NOT DISTINCT FROM new.run_id AND known.route IS NOT DISTINCT FROM new.route "
            "AND known.stream_id IS NOT DISTINCT FROM new.stream_id "
            "WHEN MATCHED THEN UPDATE SET count = known.count + ? "
            "WHEN NOT MATCHED THEN INSERT VALUES (new.run_id, new.route, new.stream_id, ?)",
            [run_id, route, stream_id, count, count],
        )


def _letter_table(letters: Sequence[DeadLetter]) -> pa.Table:
    return pa.table(
        {
            "source": pa.array([letter.source for letter in letters], pa.string()),
            "offset": pa.array([letter.offset for letter in letters], pa.int64()),
            "reason": pa.array([letter.reason for letter in letters], pa.string()),
            "payload": pa.array([letter.payload for letter in letters], pa.binary()),
            "stream_id": pa.array([letter.stream_id for letter in letters], pa.string()),
            "run_id": pa.array([letter.run_id for letter in letters], pa.string()),
            "route": pa.array([letter.route for letter in letters], pa.string()),
        }
    )


def _dead_letters_of(db: duckdb.DuckDBPyConnection, run_ids: Iterable[str]) -> dict[str, int]:
    found = db.execute(
        "SELECT run_id, sum(count)::BIGINT FROM base.dead_letter_counts "
        "WHERE run_id IN (SELECT unnest(?)) GROUP BY run_id",
        [list(run_ids)],
    ).fetchall()
    return dict(found)


def move_positions(db: duckdb.DuckDBPyConnection, positions: Mapping[str, int]) -> None:
    """Set where each source is to be read on."""
    db.execute(
        "INSERT OR REPLACE INTO base.positions SELECT unnest(?), unnest(?)",
        [list(positions), list(positions.values())],
    )
