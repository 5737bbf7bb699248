"""A disk without room: a clear error, nothing lost, and the next start goes on."""

import resource
import subprocess
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import pytest

from build_events.log import InMemoryEventLog
from collector import snapshots
from collector.access import STORE_FILE, open_reader
from collector.collect import CollectStats, OnSnapshot, Pace, collect_once, follow
from collector.errors import SnapshotError, StoreWriteError
from collector.ingest import Ingester
from collector.kafka.group import PartitionStore
from collector.lock import StoreLock
from collector.steady import SteadyReader
from collector.store import Store
from tests.collector.scenes import whole_run
from tests.collector.stores import content, payloads

MEBIBYTE = 1 << 20
LOG = InMemoryEventLog(
    "log-1", [line for number in range(40) for line in payloads(whole_run(f"run-{number}", phases=60))]
)
Release = Callable[[], object]
Disk = Callable[[Path], AbstractContextManager[Release]]


@contextmanager
def short_files(_: Path) -> Iterator[Release]:
    """Files of this process end at one mebibyte, until released."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (MEBIBYTE, before[1]))
    try:
        yield lambda: resource.setrlimit(resource.RLIMIT_FSIZE, before)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


@contextmanager
def small_disk(home: Path) -> Iterator[Release]:
    """A file system of one mebibyte; where this user cannot mount one, short files."""
    mount = ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(home)]
    if subprocess.run(mount, check=False, capture_output=True).returncode != 0:
        with short_files(home) as release:
            yield release
        return
    try:
        yield lambda: subprocess.run(["mount", "-o", "remount,size=200m", home], check=True)
    finally:
        subprocess.run(["umount", home], check=True)


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A home to be."""
    path = tmp_path / "home"
    path.mkdir()
    return path


@pytest.mark.parametrize("disk", [short_files, small_disk])
def test_a_full_disk_is_an_error_that_loses_nothing(disk: Disk, home: Path, tmp_path: Path, runtime_dir: Path) -> None:
    """The error says what to do; with room the same command takes in the whole log."""
    clean = tmp_path / "clean"
    collect_once(clean, LOG, [], runtime_dir=runtime_dir)
    with Store.open(clean / STORE_FILE, log_identity="log-1", views=[]) as store:
        expected = content(store.cursor())
    with disk(home) as release:
        for _ in range(2):
            with pytest.raises(StoreWriteError, match="make room on that file system"):
                collect_once(home, LOG, [], runtime_dir=runtime_dir)
        release()
        collect_once(home, LOG, [], runtime_dir=runtime_dir)
        with Store.open(home / STORE_FILE, log_identity="log-1", views=[]) as store:
            assert content(store.cursor()) == expected


def block_snapshots(home: Path) -> None:
    """Let the next snapshot fail: its copy would lie where there is no folder."""
    (home / f".{snapshots.SNAPSHOT_FILE}.new").symlink_to(home / "nowhere" / "at_all")


def test_a_snapshot_that_cannot_be_published_leaves_the_older_one(home: Path, runtime_dir: Path) -> None:
    """The error names the cause, and the next attempt is free of it."""
    collect_once(home, InMemoryEventLog("log-1"), [], runtime_dir=runtime_dir)
    with Store.open(home / STORE_FILE, log_identity="log-1", views=[]) as store:
        older = snapshots.publish(store, home).stat().st_ino
        block_snapshots(home)
        with pytest.raises(SnapshotError, match=r"could not be published: .*No such file"):
            snapshots.publish(store, home)
        assert (home / snapshots.SNAPSHOT_FILE).stat().st_ino == older
        assert snapshots.publish(store, home).stat().st_ino != older


def followed(
    home: Path, runtime_dir: Path, pace: Pace, *, rounds: int, on_snapshot: OnSnapshot | None = None
) -> tuple[CollectStats, list[str]]:
    """Follow the log for so many rounds; return what was done, and the warnings."""
    gone: list[int] = []
    warnings: list[str] = []
    done = follow(
        home,
        LOG,
        [],
        runtime_dir=runtime_dir,
        stop=lambda: len(gone) >= rounds,
        housekeeping=lambda: gone.append(1),
        warn=warnings.append,
        pace=pace,
        on_snapshot=on_snapshot,
    )
    return done, warnings


def test_a_follower_warns_of_a_snapshot_that_it_cannot_publish(home: Path, runtime_dir: Path) -> None:
    """Taking in the log matters more than a copy; without anybody to warn the collector ends."""
    block_snapshots(home)
    done, warnings = followed(home, runtime_dir, Pace(housekeeping_s=0.0), rounds=2)
    assert done.events == LOG.ends()[LOG.SOURCE]
    assert len(warnings) == 1
    block_snapshots(home)
    with pytest.raises(SnapshotError):
        follow(home, LOG, [], runtime_dir=runtime_dir, stop=lambda: True, housekeeping=lambda: None)


class _FailsOnce:
    """A place to publish to that has no room the first time."""

    def __init__(self) -> None:
        self.asked = 0

    def __call__(self, *_snapshot: object) -> None:
        self.asked += 1
        if self.asked == 1:
            msg = "no room"
            raise SnapshotError(msg)


def test_a_follower_publishes_again_what_it_could_not(home: Path, runtime_dir: Path) -> None:
    """Nothing new need come for it, and what was published is not published once more."""
    place = _FailsOnce()
    _, warnings = followed(home, runtime_dir, Pace(housekeeping_s=0.0, snapshot_s=0.0), rounds=5, on_snapshot=place)
    assert (place.asked, warnings) == (2, ["no room"])


def test_a_member_of_a_group_publishes_again_what_it_could_not(home: Path) -> None:
    """As a collector of the whole log does."""
    place, warnings = _FailsOnce(), list[str]()
    lock = StoreLock.try_acquire(home)
    assert lock is not None
    store = Store.open(home / STORE_FILE, log_identity=LOG.identity(), views=[])
    part = PartitionStore(0, home, lock, store, SteadyReader(LOG, warnings.append), Ingester(LOG, store))
    part.ingester.ingest()
    for _ in range(3):
        part.publish(place, warnings.append, now=True)
    part.close()
    assert (place.asked, warnings) == (2, ["no room"])


def test_a_reader_on_a_full_disk_still_reads(home: Path, runtime_dir: Path) -> None:
    """Only who must write fails for want of room."""
    collect_once(home, LOG, [], runtime_dir=runtime_dir)
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, limits[1]))
    try:
        with open_reader(home, LOG, [], runtime_dir=runtime_dir) as reader:
            assert reader.query("SELECT count(*)::INTEGER AS n FROM base.runs").to_pylist() == [{"n": 40}]
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    lock = StoreLock.try_acquire(home)
    assert lock is not None
    lock.release()
