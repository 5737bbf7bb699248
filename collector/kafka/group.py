"""Collecting by partition: as many stores as this member of the group has partitions, one thread for all."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from build_events.errors import LogUnavailableError
from build_events.log import EventReader
from collector import snapshots
from collector.access import STORE_FILE
from collector.commit import CollectStats
from collector.errors import SnapshotError, StoreWriteError
from collector.ingest import Ingester
from collector.kafka.membership import Membership
from collector.kafka.reader import KafkaReader
from collector.lock import StoreLock
from collector.partitions import partition_folder
from collector.steady import SteadyReader
from collector.store import Store

_POLL_MS = 50
_RETRY_S = 2.0  # after a store could not be opened or written
# A snapshot is what others see: as often as this, but for at most this share of the time.
_SNAPSHOT_S = 2.0
_SNAPSHOT_SHARE = 0.05


@dataclass(slots=True)
class PartitionStore:
    """The open store of one partition. Its lock is the fence: no other process can open it."""

    number: int
    folder: Path
    lock: StoreLock
    store: Store
    log: SteadyReader
    ingester: Ingester
    _published: object = None
    _published_at: float = 0.0
    _publishing_s: tuple[float, float] = (0.0, 0.0)  # how long the last one took, and the one before it

    @property
    def next_offset(self) -> int:
        """Where the partition is to be read on."""
        return max(self.ingester.positions.values(), default=0)

    def publish(self, on_snapshot: Callable[[Path], None], warn: Callable[[str], None], *, now: bool = False) -> None:
        """Publish a snapshot if something changed and it is time (or ``now``); one that failed is due again."""
        if self._published is self.ingester.positions:
            return
        # The quicker of the last two: a stalled disk says nothing about what the next one costs.
        due_s = max(_SNAPSHOT_S, min(self._publishing_s) / _SNAPSHOT_SHARE)
        began = time.monotonic()
        if not now and began - self._published_at < due_s:
            return
        try:
            on_snapshot(snapshots.publish(self.store, self.folder))
            self._published = self.ingester.positions
        except SnapshotError as error:
            warn(str(error))
        finally:
            self._published_at = time.monotonic()
            self._publishing_s = (self._published_at - began, self._publishing_s[0])

    def close(self) -> None:
        """Close the store, then let others have it."""
        try:
            self.ingester.__exit__(None, None, None)
            self.store.close()
        finally:
            self.lock.release()


@dataclass(slots=True)
class GroupCollector:
    """One member of a group of collectors. ``published`` is given each new snapshot.

    Where it raises SnapshotError, it is told, and given one again.
    """

    home: Path
    reader: KafkaReader
    member: Membership
    views: Sequence[str]
    warn: Callable[[str], None]
    watch: Callable[[PartitionStore], None] = lambda _: None
    published: Callable[[PartitionStore, Path], None] = lambda _, __: None
    stores: dict[int, PartitionStore] = field(default_factory=dict)
    _not_before: dict[int, float] = field(default_factory=dict)

    def follow(self, *, stop: Callable[[], bool], housekeeping: Callable[[], None]) -> CollectStats:
        """Take in this member's partitions as they grow, until ``stop()``.

        Raises:
            LogCorruptError: the topic was made anew, or lost what was read of it.
            StoreError: a store cannot be used, but for a lack of room, which is waited out.
        """
        done, kept_house = CollectStats(), 0.0
        try:
            while not stop():
                if time.monotonic() - kept_house >= 1.0:
                    housekeeping()
                    kept_house = time.monotonic()
                news = self._round(stop)
                done += news
        finally:
            self._close(set(self.stores))
            self.member.close()
        return done

    def _round(self, stop: Callable[[], bool]) -> CollectStats:
        mine = self._mine(wait_ms=_POLL_MS)
        self._close(set(self.stores) - mine)
        for number in sorted(mine - set(self.stores)):
            self._open(number)
        done = CollectStats()
        for number in sorted(self.stores):
            if stop():
                break
            done += self._ingest(self.stores[number], stop)
        self.member.show_lag({number: store.next_offset for number, store in self.stores.items()})
        return done

    def _ingest(self, store: PartitionStore, stop: Callable[[], bool]) -> CollectStats:
        """Take in what is new; left between two commits when the partition goes to another member."""
        try:
            news = store.ingester.ingest(stop=lambda: stop() or store.number not in self._mine())
            self.watch(store)
            self._publish(store)
        except StoreWriteError as error:
            self.warn(f"{error} Trying again every {_RETRY_S:g} s.")
            self._not_before[store.number] = time.monotonic() + _RETRY_S
            self.stores.pop(store.number).close()
            return CollectStats()
        return news

    def _publish(self, store: PartitionStore, *, now: bool = False) -> None:
        store.publish(partial(self.published, store), self.warn, now=now)

    def _mine(self, *, wait_ms: int = 0) -> frozenset[int]:
        try:
            return self.member.poll(wait_ms=wait_ms)
        except LogUnavailableError as error:
            self.warn(str(error))
            time.sleep(_RETRY_S)
            return frozenset(self.stores)

    def _open(self, number: int) -> None:
        """Open a partition's store if it is free; the member that had it may be at its last commit."""
        if time.monotonic() < self._not_before.get(number, 0.0):
            return
        try:
            source = self.reader.partition(number)
            folder = partition_folder(self.home, self.reader.identity(), number)
            identity = source.identity()
        except LogUnavailableError as error:
            self._not_before[number] = time.monotonic() + _RETRY_S
            self.warn(str(error))
            return
        lock = StoreLock.try_acquire(folder)
        if lock is None:
            return
        try:
            self.stores[number] = self._opened(number, lock, source, identity)
        except StoreWriteError as error:
            lock.release()
            self._not_before[number] = time.monotonic() + _RETRY_S
            self.warn(f"{error} Trying again every {_RETRY_S:g} s.")
        except BaseException:
            lock.release()
            raise

    def _opened(self, number: int, lock: StoreLock, source: EventReader, identity: str) -> PartitionStore:
        store = Store.open(lock.home / STORE_FILE, log_identity=identity, views=self.views)
        log = SteadyReader(source, self.warn)
        return PartitionStore(number, lock.home, lock, store, log, Ingester(log, store))

    def _close(self, numbers: set[int]) -> None:
        for number in numbers:
            store = self.stores.pop(number)
            try:
                self._publish(store, now=True)
            except StoreWriteError as error:
                self.warn(str(error))
            finally:
                store.close()
