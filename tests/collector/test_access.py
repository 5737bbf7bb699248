"""Reading a home's store, whoever holds it."""

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import duckdb
import pytest

from build_events.log import InMemoryEventLog
from collector import client, snapshots
from collector.access import STORE_FILE, Reader, open_reader
from collector.client import HolderGoneError, RemoteAnswers
from collector.collect import collect_once
from collector.errors import QueryLimitError, QueryRefusedError, SocketError, StoreBusyError
from collector.guard import Limits
from collector.lock import StoreLock, read_holder
from collector.server import Progress, serving
from collector.socket_path import make_folder, socket_path
from collector.store import Store
from tests.collector.processes import VIEWS, ask, following, log_of, wait_until
from tests.collector.scenes import whole_run
from tests.collector.test_guard import is_locked

COUNT = "SELECT count(*)::INTEGER AS n FROM events"
RUN = whole_run()
NUMBER = len(RUN)


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A home whose log holds one run."""
    log_of(tmp_path / "home").append(RUN)
    return tmp_path / "home"


@contextmanager
def held(home: Path) -> Iterator[Store]:
    """Hold the home's store without answering anybody."""
    lock = StoreLock.try_acquire(home)
    assert lock is not None
    with lock, Store.open(home / STORE_FILE, log_identity=log_of(home).identity(), views=VIEWS) as store:
        yield store


def test_a_reader_that_finds_no_collector_takes_in_the_log(home: Path, runtime_dir: Path) -> None:
    """It calls back before it reads the log, sees all of it, and leaves the store to the next."""
    called: list[int] = []
    for _ in range(2):
        with open_reader(
            home, log_of(home), VIEWS, runtime_dir=runtime_dir, before_ingest=lambda: called.append(1)
        ) as reader:
            assert reader.query(COUNT).to_pylist() == [{"n": NUMBER}]
            assert not reader.behind
            assert reader.snapshot_age_s is None
    assert called == [1, 1]


def test_what_before_ingest_writes_is_seen(home: Path, runtime_dir: Path) -> None:
    """A recovery appends to the log, and the same reader reads it back."""
    log = log_of(home)

    def recover() -> None:
        log.append(whole_run("run-2"))

    with open_reader(home, log, VIEWS, runtime_dir=runtime_dir, before_ingest=recover) as reader:
        assert reader.query(COUNT).to_pylist() == [{"n": 2 * NUMBER}]


def test_another_process_queries_while_the_collector_follows(home: Path, runtime_dir: Path) -> None:
    """The answer holds what stood in the log when it was asked."""
    with following(home, runtime_dir) as collector:
        assert ask(home, runtime_dir, COUNT) == [{"n": NUMBER}]
        log_of(home).append(whole_run("run-2"))
        assert ask(home, runtime_dir, COUNT) == [{"n": 2 * NUMBER}]
        with open_reader(home, log_of(home), VIEWS, runtime_dir=runtime_dir) as reader:
            assert reader.query("SELECT ?::INTEGER AS n, ? AS t", [1, "x"]).to_pylist() == [{"n": 1, "t": "x"}]
            assert not reader.behind
            for sql in ("DELETE FROM base.events", "SELECT 1; SELECT 2", "COMMIT", "FROM read_csv('/etc/passwd')"):
                with pytest.raises(QueryRefusedError):
                    reader.query(sql)
            assert reader.query(COUNT).to_pylist() == [{"n": 2 * NUMBER}]
        assert collector.poll() is None


def test_a_remote_answer_has_the_types_of_a_local_one(home: Path, runtime_dir: Path) -> None:
    """Who answers changes no type and no value."""
    sql = "SELECT *, 1::HUGEINT AS huge, [1, 2] AS list, {'a': 1} AS struct FROM base.events ORDER BY sequence"
    with open_reader(home, log_of(home), VIEWS, runtime_dir=runtime_dir) as reader:
        local = reader.query(sql)
    with following(home, runtime_dir), open_reader(home, log_of(home), VIEWS, runtime_dir=runtime_dir) as reader:
        assert reader.query(sql).equals(local, check_metadata=True)


def test_a_second_collector_is_refused_and_told_who_holds_the_store(home: Path, runtime_dir: Path) -> None:
    """The error names the holder's process."""
    with (
        following(home, runtime_dir) as collector,
        pytest.raises(StoreBusyError, match=f"process {collector.pid} holds the store"),
    ):
        collect_once(home, log_of(home), VIEWS, runtime_dir=runtime_dir)


def test_a_collector_that_is_told_to_stop_leaves_everything_in_order(home: Path, runtime_dir: Path) -> None:
    """Exit 0, no socket, a snapshot that holds all, and a reader that was open goes on by itself."""
    with following(home, runtime_dir) as collector:
        with open_reader(home, log_of(home), VIEWS, runtime_dir=runtime_dir) as reader:
            assert reader.query(COUNT).to_pylist() == [{"n": NUMBER}]
            collector.send_signal(signal.SIGTERM)
            assert reader.query(COUNT).to_pylist() == [{"n": NUMBER}]
        assert collector.wait() == 0
    assert read_holder(home).pid is None
    assert not socket_path(home, runtime_dir).exists()
    db = snapshots.open_snapshot(home, log_identity=log_of(home).identity())
    assert db.execute(COUNT).fetchall() == [(NUMBER,)]
    db.close()


def test_a_killed_collector_leaves_nothing_that_stops_the_next(home: Path, runtime_dir: Path) -> None:
    """Its socket and its file about itself remain and mislead nobody."""
    with following(home, runtime_dir) as collector:
        collector.kill()
        collector.wait()
        assert socket_path(home, runtime_dir).exists()
    assert ask(home, runtime_dir, COUNT) == [{"n": NUMBER}]
    with following(home, runtime_dir):
        assert ask(home, runtime_dir, COUNT) == [{"n": NUMBER}]


def test_publishing_snapshots_keeps_the_lock(home: Path, runtime_dir: Path) -> None:
    """Neither our lock nor DuckDB's own is lost, however often the file is copied."""
    with following(home, runtime_dir) as collector:
        inodes = set()
        for number in range(2, 5):
            log_of(home).append(whole_run(f"run-{number}"))
            assert ask(home, runtime_dir, COUNT) == [{"n": number * NUMBER}]
            wait_until(lambda: snapshot_count(home) == number * NUMBER)  # noqa: B023 - called at once
            inodes.add((home / snapshots.SNAPSHOT_FILE).stat().st_ino)
            assert is_locked(home / STORE_FILE)
            assert StoreLock.try_acquire(home) is None
        assert len(inodes) > 1
        assert collector.poll() is None


def snapshot_count(home: Path) -> int:
    """Return how many events the home's snapshot holds."""
    with duckdb.connect(str(home / snapshots.SNAPSHOT_FILE), read_only=True) as db:
        [(count,)] = db.execute(COUNT).fetchall()
        return int(count)


def test_an_answer_that_cannot_reach_the_logs_end_says_so(home: Path, runtime_dir: Path) -> None:
    """The holder waits two seconds for what the asker saw, and then answers with what there is."""
    lock = StoreLock.try_acquire(home)
    assert lock is not None
    socket = socket_path(home, runtime_dir)
    make_folder(socket)
    with (
        lock,
        Store.open(home / STORE_FILE, log_identity=log_of(home).identity(), views=VIEWS) as store,
        serving(socket, store.cursor, Progress({})),
    ):
        lock.announce(socket)
        with open_reader(home, log_of(home), VIEWS, runtime_dir=runtime_dir) as reader:
            assert reader.query(COUNT).to_pylist() == [{"n": 0}]
            assert reader.behind
            assert reader.snapshot_age_s is None


def test_without_an_answer_the_snapshot_is_read_with_its_age(home: Path, runtime_dir: Path) -> None:
    """The reader says how old it is, and that it lacks what came after."""
    collect_once(home, log_of(home), VIEWS, runtime_dir=runtime_dir)
    with held(home) as store:
        snapshots.publish(store, home)
        log_of(home).append(whole_run("run-2"))
        with open_reader(home, log_of(home), VIEWS, runtime_dir=runtime_dir) as reader:
            assert reader.query(COUNT).to_pylist() == [{"n": NUMBER}]
            assert reader.snapshot_age_s is not None
            assert 0 <= reader.snapshot_age_s < 60
            assert reader.behind
            with pytest.raises(QueryRefusedError):
                reader.query("INSERT INTO base.positions VALUES ('x', 1)")


def test_without_an_answer_and_without_a_snapshot_the_error_names_the_holder(home: Path, runtime_dir: Path) -> None:
    """There is nothing to read, and the error says who to look at."""
    with (
        held(home),
        pytest.raises(StoreBusyError, match=f"process {os.getpid()} holds the store and answers no queries"),
    ):
        open_reader(home, log_of(home), VIEWS, runtime_dir=runtime_dir)


def test_a_query_without_an_answer_in_time_is_not_asked_again(
    home: Path, runtime_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The holder is there and says nothing: that is no reason to look for another."""
    monkeypatch.setattr(client, "_GRACE_S", 0.2)
    with (
        following(home, runtime_dir) as collector,
        open_reader(home, log_of(home), VIEWS, runtime_dir=runtime_dir, limits=Limits(seconds=0.1)) as reader,
    ):
        collector.send_signal(signal.SIGSTOP)
        with pytest.raises(QueryLimitError, match="no answer within"):
            reader.query(COUNT)
        collector.send_signal(signal.SIGCONT)
        assert reader.query(COUNT).to_pylist() == [{"n": NUMBER}]


def test_a_query_that_outlives_its_holders_ends(home: Path, runtime_dir: Path) -> None:
    """It may be what they die of: it is not put to one after the other for ever."""
    opened = 0
    socket = socket_path(home, runtime_dir)
    make_folder(socket)
    with held(home) as store:

        def open_answers() -> RemoteAnswers:
            nonlocal opened
            opened += 1
            with serving(socket, store.cursor, Progress({})):
                return RemoteAnswers(socket, {}, 1.0)

        with Reader(open_answers(), open_answers) as reader, pytest.raises(HolderGoneError):
            reader.query(COUNT)
    assert opened == 3


def test_a_value_that_cannot_travel_is_refused_everywhere(home: Path, runtime_dir: Path) -> None:
    """A query that works while nobody follows works when somebody does."""
    with (
        open_reader(home, log_of(home), VIEWS, runtime_dir=runtime_dir) as reader,
        pytest.raises(QueryRefusedError, match="parameter"),
    ):
        reader.query("SELECT ?", [object()])


@pytest.mark.parametrize("mode", [0o755, 0o770])
def test_a_socket_folder_open_to_others_is_refused(home: Path, runtime_dir: Path, mode: int) -> None:
    """Who can enter it could ask, or pose as the collector."""
    folder = socket_path(home, runtime_dir).parent
    folder.mkdir()
    folder.chmod(mode)
    with pytest.raises(SocketError, match="mode 0700"):
        collect_once(home, log_of(home), VIEWS, runtime_dir=runtime_dir)


def test_a_socket_folder_that_is_a_link_is_refused(home: Path, runtime_dir: Path, tmp_path: Path) -> None:
    """Somebody else may have put it there."""
    (tmp_path / "elsewhere").mkdir(mode=0o700)
    socket_path(home, runtime_dir).parent.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(SocketError, match="mode 0700"):
        collect_once(home, log_of(home), VIEWS, runtime_dir=runtime_dir)


def test_a_socket_path_that_is_too_long_is_refused(home: Path, tmp_path: Path) -> None:
    """The kernel's limit is 107 bytes; the error says which setting shortens it."""
    long = tmp_path / ("x" * 100)
    long.mkdir()
    with pytest.raises(SocketError, match="XDG_RUNTIME_DIR"):
        collect_once(home, log_of(home), VIEWS, runtime_dir=long)


def test_a_forked_child_does_not_keep_the_lock(home: Path) -> None:
    """A flock belongs to the open file, which a child shares: it must not outlive its owner there."""
    lock = StoreLock.try_acquire(home)
    assert lock is not None
    ready, say_ready = os.pipe()
    hold, let_go = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(let_go)
        os.write(say_ready, b".")
        os.read(hold, 1)  # until the parent closes its end
        os._exit(0)
    os.read(ready, 1)
    os.close(lock._descriptor)  # as the kernel does when a process is killed
    again = StoreLock.try_acquire(home)
    os.close(let_go)
    os.waitpid(child, 0)
    for descriptor in (ready, say_ready, hold):
        os.close(descriptor)
    assert again is not None
    again.release()


def test_a_collector_waits_for_a_command_that_has_the_store_for_a_moment(tmp_path: Path, runtime_dir: Path) -> None:
    """A short holder delays ``collect``; it does not fail it."""
    lock = StoreLock.try_acquire(tmp_path)
    assert lock is not None
    releasing = threading.Timer(0.5, lock.release)
    releasing.start()
    stats = collect_once(tmp_path, InMemoryEventLog(), (), runtime_dir=runtime_dir)
    releasing.join()
    assert stats.events == 0
