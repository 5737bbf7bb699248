"""Collecting: once, for as long as somebody wants it, or the whole log again into a new store."""

import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from build_events.log import EventReader, Positions
from collector import snapshots
from collector.access import STORE_FILE
from collector.commit import CollectStats
from collector.errors import SnapshotError, StoreBusyError, StoreExistsError
from collector.guard import Limits
from collector.ingest import Ingester
from collector.lock import StoreLock, read_holder
from collector.server import Progress, serving
from collector.socket_path import make_folder, socket_path
from collector.store import Store

__all__ = ["CollectStats", "Pace", "collect_once", "follow", "replay"]


OnSnapshot = Callable[[Path, Positions], None]


_WAIT_FOR_S = 5.0  # for a holder that answers no queries: a command that is done in a moment
_LOOK_EVERY_S = 0.01  # short, or a busy script's commands would always be there first


@dataclass(frozen=True, slots=True)
class Pace:
    """How often a following collector does what. All in seconds."""

    poll_s: float = 0.1  # between two looks at the log; a waiting query shortens it
    poll_share: float = 0.2  # of a core at most spent on looking at a log that has nothing new
    housekeeping_s: float = 1.0
    snapshot_s: float = 60.0


def collect_once(
    home: Path,
    log: EventReader,
    views: Sequence[str],
    *,
    runtime_dir: Path,
    before_ingest: Callable[[], None] = lambda: None,
    on_snapshot: OnSnapshot | None = None,
) -> CollectStats:
    """Take in what stands in the log now, answering queries meanwhile.

    ``before_ingest`` runs while the store is held, before the log is read. ``runtime_dir`` is where the
    query socket lies: the user's runtime folder, or the temporary one. Where there is an ``on_snapshot``, a
    snapshot is published for it at the end.

    Raises:
        StoreBusyError: another process holds the store; it takes in the log.
        StoreError: the store cannot be used or written; the message says why and what to do.
    """
    with _holding(home, log, views, runtime_dir) as held:
        before_ingest()
        done = held.ingest(lambda: False)
        if on_snapshot is not None:
            held.on_snapshot = on_snapshot
            held.publish(None)
        return done


def follow(
    home: Path,
    log: EventReader,
    views: Sequence[str],
    *,
    runtime_dir: Path,
    stop: Callable[[], bool],
    housekeeping: Callable[[], None],
    warn: Callable[[str], None] | None = None,
    pace: Pace | None = None,
    watch: Callable[[Store], None] | None = None,
    on_snapshot: OnSnapshot | None = None,
) -> CollectStats:
    """Take in the log as it grows and answer queries, until ``stop()``.

    ``housekeeping`` runs at the start and every second, in this thread, between commits. A snapshot is
    published at the start, every minute when something changed, and at the end; one that cannot be goes
    to ``warn``, and ends the collector where there is no ``warn``. ``watch`` is shown the store after each
    look at the log, in this thread; ``on_snapshot`` is given each new snapshot and its positions.

    Raises:
        StoreBusyError: another process holds the store.
        StoreError: the store cannot be used or written; what was committed stands.
    """
    chosen = pace or Pace()
    with _holding(home, log, views, runtime_dir) as held:
        held.on_snapshot = on_snapshot
        done = _follow(held, chosen, stop, housekeeping, warn, watch=watch or (lambda _: None))
        held.publish(warn)
        return done


def replay(log: EventReader, path: Path, views: Sequence[str]) -> CollectStats:
    """Take the whole log into a new store at ``path``. Writes nothing to the log.

    The file has its name only when it is complete.

    Raises:
        StoreExistsError: there is a file at ``path`` already.
        StoreError: the new store cannot be written.
    """
    if path.exists():
        raise StoreExistsError(path)
    partial = path.with_name(f".{path.name}.partial")
    for leftover in (partial, partial.with_name(f"{partial.name}.wal")):
        leftover.unlink(missing_ok=True)
    with Store.open(partial, log_identity=log.identity(), views=views) as store, Ingester(log, store) as ingester:
        done = ingester.ingest()
    try:
        os.link(partial, path)  # unlike a rename, never over a file that came meanwhile
    except FileExistsError:
        raise StoreExistsError(path) from None
    partial.unlink()
    return done


class _Held:
    """The store while this process holds it and answers queries."""

    def __init__(self, home: Path, store: Store, ingester: Ingester, progress: Progress) -> None:
        self._home = home
        self.store = store
        self._ingester = ingester
        self._published: object = None
        self.on_snapshot: OnSnapshot | None = None
        self.progress = progress

    def ingest(self, stop: Callable[[], bool]) -> CollectStats:
        return self._ingester.ingest(stop=stop, moved=self.progress.move)

    def publish(self, warn: Callable[[str], None] | None) -> None:
        """Publish a snapshot if anything was committed since the last one."""
        if self._published is self._ingester.positions and snapshots.confirm(self._home):
            return
        try:
            path = snapshots.publish(self.store, self._home)
            if self.on_snapshot is not None:
                self.on_snapshot(path, self._ingester.positions)
        except SnapshotError as error:
            if warn is None:
                raise
            warn(str(error))
            return
        self._published = self._ingester.positions


def _follow(
    held: _Held,
    pace: Pace,
    stop: Callable[[], bool],
    housekeeping: Callable[[], None],
    warn: Callable[[str], None] | None,
    *,
    watch: Callable[[Store], None],
) -> CollectStats:
    housekeeping()
    done = held.ingest(stop)
    watch(held.store)
    held.publish(warn)
    kept_house = published = time.monotonic()
    while not stop():
        began = time.monotonic()
        if began - kept_house >= pace.housekeeping_s:
            housekeeping()
            kept_house = began
        held.progress.wanted.clear()
        looking, busy = time.monotonic(), time.thread_time()
        news = held.ingest(stop)
        looked_s, busy_s = time.monotonic() - looking, time.thread_time() - busy
        done += news
        watch(held.store)
        if looking - published >= pace.snapshot_s:
            held.publish(warn)
            published = looking
        # Not of the time: what waits five seconds for a log that is away would then stay away for twenty more.
        idle_s = busy_s * (1 / pace.poll_share - 1) if news.records == 0 else 0.0
        held.progress.wanted.wait(max(pace.poll_s - looked_s, idle_s))
    return done


def _acquire(home: Path) -> StoreLock:
    """Take the store's lock; a command that holds it for its answer is waited for, a collector is not."""
    deadline = time.monotonic() + _WAIT_FOR_S
    while (lock := StoreLock.try_acquire(home)) is None:
        holder = read_holder(home)
        if holder.socket is not None or time.monotonic() > deadline:
            advice = ": it takes in the log, and answers `enginetrail query`. Stop it to collect from here"
            raise StoreBusyError(home, holder.pid, advice)
        time.sleep(_LOOK_EVERY_S)
    return lock


@contextmanager
def _holding(home: Path, log: EventReader, views: Sequence[str], runtime_dir: Path) -> Iterator[_Held]:
    with (
        _acquire(home) as lock,
        Store.open(home / STORE_FILE, log_identity=log.identity(), views=views) as store,
        Ingester(log, store) as ingester,
    ):
        socket = socket_path(home, runtime_dir)
        make_folder(socket)
        progress = Progress(ingester.positions)
        with serving(socket, store.cursor, progress, Limits()):
            lock.announce(socket)
            yield _Held(home, store, ingester, progress)
            lock.announce(None)
