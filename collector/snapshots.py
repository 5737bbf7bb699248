"""A copy of the store for readers that cannot reach its holder."""

import os
import subprocess
import sys
import time
from pathlib import Path

import duckdb

from collector.errors import SnapshotError
from collector.store import Store, connect, lock_settings, read_identity

SNAPSHOT_FILE = "snapshot.duckdb"


def publish(store: Store, home: Path) -> Path:
    """Replace the home's snapshot by a copy of what is committed; called by the thread that writes.

    A child process copies: a descriptor of the file closed in this process would drop its lock. The
    copy is not synced: a snapshot is for readers beside a living collector, and after a crash of the
    machine they read the store itself.

    Raises:
        StoreWriteError: the store could not be checkpointed.
        SnapshotError: the copy could not be made; an older snapshot stays.
    """
    store.checkpoint()
    target = home / SNAPSHOT_FILE
    temporary = home / f".{SNAPSHOT_FILE}.new"
    command = [
        sys.executable,
        "-I",
        "-S",
        str(Path(__file__).with_name("copy_file.py")),
        str(store.path),
        str(temporary),
    ]
    # In a session of its own, so that the Ctrl-C that ends the collector does not end its last snapshot.
    done = subprocess.run(command, capture_output=True, text=True, check=False, start_new_session=True)
    if done.returncode != 0:
        temporary.unlink(missing_ok=True)
        last_line = (done.stderr.strip().splitlines() or ["the copying process was killed"])[-1]
        msg = f"{target} could not be published: {last_line}. Readers keep the older one; make room in {home}."
        raise SnapshotError(msg)
    temporary.replace(target)
    return target


def confirm(home: Path) -> bool:
    """Say that the home's snapshot is still what the store holds; ``False`` where there is none."""
    try:
        os.utime(home / SNAPSHOT_FILE)
    except FileNotFoundError:
        return False
    return True


def age_s(home: Path) -> float | None:
    """Return seconds since the home's snapshot was what the store held; ``None`` where there is none."""
    try:
        return max(0.0, time.time() - (home / SNAPSHOT_FILE).stat().st_mtime)
    except FileNotFoundError:
        return None


def open_snapshot(home: Path, *, log_identity: str) -> duckdb.DuckDBPyConnection:
    """Return a read-only connection to the home's snapshot.

    Raises:
        StoreError: it is unreadable, of another release, or holds another log.
    """
    path = home / SNAPSHOT_FILE
    db = connect(path, read_only=True)
    try:
        read_identity(db, path, log_identity=log_identity)
        lock_settings(db)
    except BaseException:
        db.close()
        raise
    return db
