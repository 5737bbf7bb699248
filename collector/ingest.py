"""The log into the store: batches are committed together while the next ones are parsed and the one after is read."""

import gc
import sys
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from types import TracebackType
from typing import Self

from build_events.clock import Clock, system_clock
from build_events.log import Chunk, EventReader, Positions
from collector.ahead import ahead
from collector.batches import ParsedBatch, batches, parse
from collector.commit import CollectStats, commit
from collector.gathering import gathered
from collector.parsing import Parser
from collector.store import Store

_TURN_S = 0.0005  # Python's own is 0.005

Commit = Callable[[Store, ParsedBatch, int], CollectStats]


@dataclass(frozen=True, slots=True)
class Sizes:
    """How much is read, parsed and committed at once; each may go a chunk, or a batch, beyond."""

    chunk_bytes: int = 1 << 20  # read at once: what is made of it stays in the caches of a core
    batch_records: int = 40_960  # parsed at once: planning the SQL takes 10 ms
    batch_bytes: int = 40 << 20
    batch_s: float = 0.5
    # A row group of DuckDB's goes straight into its file, for half the CPU of fewer rows, which go to the WAL first.
    commit_records: int = 122_880
    commit_bytes: int = 128 << 20
    commit_s: float = 2.0  # of a log that has something all the time: what comes slowly is shown, too

    def batches_ahead(self) -> int:
        """Return how many batches are parsed while the last commit is written."""
        return -(-self.commit_records // self.batch_records)


_SIZES = Sizes()


class Ingester:
    """Takes the log into a store, as often as it is called."""

    def __init__(
        self,
        log: EventReader,
        store: Store,
        *,
        clock: Clock = system_clock,
        sizes: Sizes = _SIZES,
        parser: Parser | None = None,
        commit: Commit = commit,
    ) -> None:
        self._log = log
        self._store = store
        self._clock = clock
        self._sizes = sizes
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
        chunks = self._log.read(self.positions, max_bytes=self._sizes.chunk_bytes)
        with three_threads(), closing(parsed_ahead(chunks, self._parser, self._sizes)) as parsed:
            for batch in together(parsed, self._sizes):
                done += self._commit(self._store, batch, self._clock().wall_ns)
                self.positions = {**self.positions, **batch.positions}
                if moved is not None:
                    moved(self.positions)
                if stop():
                    break
        return done


def parsed_ahead(chunks: Iterator[Chunk], parser: Parser, sizes: Sizes) -> Generator[ParsedBatch, None, None]:
    """Yield the log's batches parsed: one thread reads, one parses, and the caller's has what they made before."""
    cut = batches(chunks, max_records=sizes.batch_records, max_bytes=sizes.batch_bytes, max_s=sizes.batch_s)
    with (
        closing(ahead(cut)) as read,
        closing(ahead((parse(batch, parser) for batch in read), at_most=sizes.batches_ahead())) as parsed,
    ):
        yield from parsed


def together(parsed: Iterable[ParsedBatch], sizes: Sizes) -> Iterator[ParsedBatch]:
    """Yield consecutive batches as one, cut at the size of a commit; all that came before an error, then the error."""

    def put(waiting: ParsedBatch | None, batch: ParsedBatch) -> ParsedBatch:
        return waiting + batch if waiting else batch

    def enough(waiting: ParsedBatch) -> bool:
        return waiting.records >= sizes.commit_records or waiting.size_bytes >= sizes.commit_bytes

    return gathered(parsed, put, enough=enough, max_s=sizes.commit_s)


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
