"""Opening a store: whose it is, of which release, and what is said when it cannot be used."""

import json
import subprocess
import sys
from pathlib import Path

import duckdb
import pytest

from build_events.log import InMemoryEventLog
from collector.collect import replay
from collector.errors import (
    StoreBusyError,
    StoreCorruptError,
    StoreExistsError,
    StoreIdentityError,
    StoreVersionError,
    StoreWriteError,
)
from collector.ingest import Ingester
from collector.store import SCHEMA_VERSION, Store
from tests.collector.scenes import whole_run
from tests.collector.stores import content, payloads

VIEW = "CREATE VIEW runs AS SELECT run_id FROM base.runs"


def collect(path: Path, log: InMemoryEventLog, views: tuple[str, ...] = ()) -> None:
    """Take the log into the store at ``path``."""
    with Store.open(path, log_identity=log.identity(), views=views) as store, Ingester(log, store) as ingester:
        ingester.ingest()


@pytest.fixture
def log() -> InMemoryEventLog:
    """A log with one run."""
    return InMemoryEventLog("log-1", payloads(whole_run()))


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Where a store may lie: the name that it has in a home."""
    return tmp_path / "store.duckdb"


def test_a_store_refuses_another_log(path: Path, log: InMemoryEventLog) -> None:
    """Its positions mean nothing there; the error names both logs."""
    collect(path, log)
    with pytest.raises(StoreIdentityError, match="log log-1, not of log log-2"):
        collect(path, InMemoryEventLog("log-2"))


def test_a_store_of_another_release_is_refused(path: Path, log: InMemoryEventLog) -> None:
    """Tables of another version are never guessed at; the error says how to rebuild."""
    collect(path, log)
    with duckdb.connect(str(path)) as db:
        db.execute("UPDATE store.base.meta SET schema_version = 99")
    with pytest.raises(StoreVersionError, match=f"version 99.*version {SCHEMA_VERSION}.*collect --replay"):
        collect(path, log)


@pytest.mark.parametrize("damage", [b"no database at all", b"\x00" * 20_000])
def test_a_file_that_is_no_store_is_an_error_that_says_what_to_do(
    path: Path, log: InMemoryEventLog, damage: bytes
) -> None:
    """The log holds everything, so the way out is to move the file away or to replay."""
    path.write_bytes(damage)
    with pytest.raises(StoreCorruptError, match=r"move the file away.*collect --replay"):
        collect(path, log)
    assert path.read_bytes() == damage


def test_a_damaged_store_is_an_error_that_says_what_to_do(path: Path, log: InMemoryEventLog) -> None:
    """Bytes overwritten in the middle are noticed, not read as events."""
    collect(path, log)
    with path.open("r+b") as file:
        file.seek(4096)
        file.write(b"\xff" * 8192)
    with pytest.raises(StoreCorruptError, match="collect --replay"):
        collect(path, log)


def test_a_store_that_another_program_has_open_is_busy(path: Path, log: InMemoryEventLog) -> None:
    """DuckDB lets one process in; the error names the one that is inside."""
    collect(path, log)
    line = f"import duckdb, sys; db = duckdb.connect({str(path)!r}); print('open', flush=True); sys.stdin.read()"
    with subprocess.Popen(
        [sys.executable, "-c", line], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == "open\n"
        with pytest.raises(StoreBusyError, match=f"process {other.pid} holds the store: it has store.duckdb open"):
            collect(path, log)
        other.communicate("")
    collect(path, log)


def test_a_store_in_a_folder_that_is_not_there_is_an_error(tmp_path: Path, log: InMemoryEventLog) -> None:
    """A replay makes a file, no folders."""
    with pytest.raises(StoreWriteError, match="No such file or directory"):
        replay(log, tmp_path / "nowhere" / "store.duckdb", [])


def test_views_are_replaced_when_they_change(path: Path, log: InMemoryEventLog) -> None:
    """A new release's views take the place of all older ones."""
    collect(path, log, ("CREATE VIEW gone AS SELECT 1", VIEW))
    collect(path, log, (VIEW.replace("run_id", "run_id, route", 1),))
    with Store.open(path, log_identity="log-1", views=[VIEW.replace("run_id", "run_id, route", 1)]) as store:
        db = store.cursor()
        assert db.execute("FROM runs").fetchall() == [("run-1", "resnet50/fp16/sm89")]
        assert db.execute(
            "SELECT view_name FROM duckdb_views() WHERE schema_name = 'main' AND NOT internal"
        ).fetchall() == [("runs",)]


def test_a_fold_state_of_another_release_is_folded_again(path: Path, log: InMemoryEventLog) -> None:
    """The events are there, so an unreadable state costs one pass over its run and nothing else."""
    records = whole_run()
    first = InMemoryEventLog("log-1", payloads(records[:8]))
    collect(path, first)
    with duckdb.connect(str(path)) as db:
        [(state,)] = db.execute("SELECT state FROM store.base.fold_states").fetchall()
        other = json.dumps({**json.loads(state), "version": 0}).encode()
        db.execute("UPDATE store.base.fold_states SET state = ?", [other])
    # Delivered again from the start: the sequences seen must be known although the state is not.
    first.append(records)
    collect(path, first)
    clean = path.with_name("clean.duckdb")
    replay(log, clean, [])
    found = []
    for name in (path, clean):
        with Store.open(name, log_identity="log-1", views=[]) as store:
            found.append(content(store.cursor()))
    assert found[0] == found[1]


def test_a_replay_refuses_a_file_that_is_there(path: Path, log: InMemoryEventLog) -> None:
    """What stands at the path is not touched."""
    path.write_bytes(b"mine")
    with pytest.raises(StoreExistsError, match="exists already"):
        replay(log, path, [])
    assert path.read_bytes() == b"mine"


def test_a_replay_begins_anew_after_one_that_was_killed(path: Path, log: InMemoryEventLog) -> None:
    """Half a store never has the name of a whole one, and is no obstacle."""
    path.with_name(f".{path.name}.partial").write_bytes(b"half")
    assert replay(log, path, [VIEW]).events == len(whole_run())
    assert sorted(item.name for item in path.parent.iterdir()) == [path.name]
