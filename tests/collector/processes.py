"""Processes that hold, follow or query a home, for tests that need more than one or that kill them.

``python -m tests.collector.processes COMMAND HOME RUNTIME_DIR``
"""

import json
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from build_events.local_log import LocalLog
from collector.access import STORE_FILE, open_reader
from collector.collect import Pace, follow
from collector.ingest import Ingester, Sizes
from collector.lock import StoreLock, read_holder
from collector.store import Store

ROOT = Path(__file__).parents[2]
VIEWS = ("CREATE VIEW runs AS FROM base.runs", "CREATE VIEW events AS FROM base.events")
PATIENCE_S = 60.0


@contextmanager
def process(command: str, home: Path, runtime_dir: Path) -> Iterator["subprocess.Popen[str]"]:
    """Run a command of this module; it is killed and reaped at the end if it still runs."""
    line = [sys.executable, "-m", "tests.collector.processes", command, str(home), str(runtime_dir)]
    with subprocess.Popen(line, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as child:
        try:
            yield child
        finally:
            child.kill()


@contextmanager
def following(home: Path, runtime_dir: Path) -> Iterator["subprocess.Popen[str]"]:
    """Run a collector that follows the home's log, once it answers queries."""
    with process("follow", home, runtime_dir) as child:
        wait_until(lambda: read_holder(home).socket is not None)
        yield child


def ask(home: Path, runtime_dir: Path, sql: str) -> list[dict[str, object]]:
    """Return the answer of another process to a query."""
    with process("query", home, runtime_dir) as child:
        output, _ = child.communicate(sql, timeout=PATIENCE_S)
        return list(json.loads(output))


def wait_until(what: Callable[[], bool]) -> None:
    """Return once ``what()`` is true; fail after a minute."""
    deadline = time.monotonic() + PATIENCE_S
    while not what():
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.01)


def log_of(home: Path) -> LocalLog:
    """Return the home's log."""
    return LocalLog.create(home / "log")


def _say(what: object) -> None:
    sys.stdout.write(f"{what}\n")
    sys.stdout.flush()


def _follow(home: Path, runtime_dir: Path) -> None:
    """Follow until SIGTERM or SIGINT, with snapshots as often as something changed."""
    stopping: list[int] = []
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda received, _frame: stopping.append(received))
    pace = Pace(snapshot_s=0.1)
    follow(
        home,
        log_of(home),
        VIEWS,
        runtime_dir=runtime_dir,
        stop=lambda: bool(stopping),
        housekeeping=lambda: None,
        pace=pace,
    )


def _collect(home: Path, runtime_dir: Path, *, sizes: Sizes) -> None:
    """Take in the log; say when that begins."""
    del runtime_dir
    log = log_of(home)
    lock = StoreLock.try_acquire(home)
    assert lock is not None
    with lock, Store.open(home / STORE_FILE, log_identity=log.identity(), views=VIEWS) as store:
        _say("begin")
        with Ingester(log, store, sizes=sizes) as ingester:
            ingester.ingest()


def _query(home: Path, runtime_dir: Path) -> None:
    """Answer the query that stands on standard input."""
    with open_reader(home, log_of(home), VIEWS, runtime_dir=runtime_dir) as reader:
        _say(json.dumps(reader.query(sys.stdin.read()).to_pylist(), default=str))


if __name__ == "__main__":
    commands: dict[str, Callable[[Path, Path], None]] = {
        "follow": _follow,
        "collect": partial(_collect, sizes=Sizes()),
        "collect-small": partial(_collect, sizes=Sizes(chunk_bytes=32 << 10, batch_records=30, commit_records=100)),
        "query": _query,
    }
    commands[sys.argv[1]](Path(sys.argv[2]), Path(sys.argv[3]))
