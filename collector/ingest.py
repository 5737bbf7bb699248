"""The log into the store: one batch is committed while the next is parsed and the one after is read."""

import gc
import sys
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from types import TracebackType
from typing import Self

from build_events.clock import Clock, system_clock
from build_events.log import EventReader, Positions
from collector.ahead import ahead
from collector.batches import ParsedBatch, batches, parse
from collector.commit import CollectStats, commit
from collector.parsing import Parser
from collector.store import Store

BATCH_RECORDS = 25_000  # larger ones cost a little less CPU and leave the three threads waiting for each other
BATCH_BYTES = 64 << 20
CHUNK_BYTES = 4 << 20
_TURN_S = 0.0005  # Python's own is 0.005

Commit = Callable[[Store, ParsedBatch, int], CollectStats]


class Ingester:
    """Takes the log into a store, as often as it is called."""

    def __init__(
        self,
        log: EventReader,
        store: Store,
        *,
        clock: Clock = system_clock,
        batch_records: int = BATCH_RECORDS,
        parser: Parser | None = None,
        commit: Commit = commit,
    ) -> None:
        self._log = log
        self._store = store
        self._clock = clock
        self._batch_records = batch_records
        self._parser = parser or Parser()
        self._commit = commit
        self.positions = store.positions()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._parser.close()

    def ingest(
        self, *, stop: Callable[[], bool] = lambda: False, moved: Callable[[Positions], None] | None = None
    ) -> CollectStats:
        """Take in what stands in the log now; ``stop`` is asked between commits, ``moved`` told after each.

        Raises:
            StoreWriteError: a batch could not be written; what was committed before it stands.
            LogCorruptError: the log cannot be read.
        """
        done = CollectStats()
        chunks = self._log.read(self.positions, max_bytes=CHUNK_BYTES)
        cut = batches(chunks, max_records=self._batch_records, max_bytes=BATCH_BYTES)
        with three_threads(), closing(ahead(parse(batch, self._parser) for batch in ahead(cut))) as parsed:
            for batch in parsed:
                done += self._commit(self._store, batch, self._clock().wall_ns)
                self.positions = {**self.positions, **batch.positions}
                if moved is not None:
                    moved(self.positions)
                if stop():
                    break
        return done


@contextmanager
def three_threads() -> Iterator[None]:
    """Keep Python out of the way of the three threads.

    No looking for cycles: a batch makes many small values and no cycle, and looking costs a fifth. And threads take
    turns ten times as often: DuckDB asks for the interpreter's lock several times in a query, each time to wait for
    the reading thread to use up its turn (up to a tenth of the rate, measured).
    """
    was_on, turn_s = gc.isenabled(), sys.getswitchinterval()
    gc.disable()
    sys.setswitchinterval(min(turn_s, _TURN_S))
    try:
        yield
    finally:
        sys.setswitchinterval(turn_s)
        if was_on:
            gc.enable()
