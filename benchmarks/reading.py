"""What reading costs as history grows. Run: ``python -m benchmarks.reading [--events 10000000]``.

A home whose log holds one route of 100,000 events, taken in by the real collector; its rows are then copied
in the store under new ids until it holds a tenth of ``--events``, and all of them. At both sizes:

* ``accept view``: everything that the stuck-build test asks of one run and its retry chain;
* ``gate cold``: the store opened, the log looked at, the route judged and the decision made;
* ``gate warm``: the same again in an open store after three new events;
* ``gate all runs``: for a digest that nobody published, so that every run of the route counts.

Then whole commands, start of Python included: ``query`` of 80,000 rows in each format, and in a home of
many short runs ``runs`` and ``accept`` of 500. Medians, and the bars where there is one.
"""

import argparse
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from analytics import cbat, sbat
from analytics.decisions import decide
from analytics.gather import Query
from analytics.policy_file import load_policy
from analytics.views import view_sql
from benchmarks.written_log import run_events, write_log
from build_events import clock, ids
from build_events.envelope import StreamHeader
from build_events.events import ArtifactPublished, ErrorRecorded, Event, RunFinished
from build_events.local_log import LocalLog
from build_events.stream import EventStream
from collector import guard
from collector.ingest import Ingester
from collector.store import Store
from enginetrail.rows import to_rows

ROUTE = "resnet50/fp16/sm89"
ROUTE_EVENTS, ROUTE_RUNS = 100_000, 100
ROWS = 80_000
DIGEST, OTHER_DIGEST = "a" * 64, "b" * 64
COPY = """
INSERT INTO base.{table}
SELECT * EXCLUDE (range) REPLACE ({ids})
FROM (SELECT * FROM base.{table} WHERE run_id IN (SELECT run_id FROM base.runs WHERE route = ?)) CROSS JOIN range(?, ?)
"""
RENAMED = "md5({column} || range)::UUID::VARCHAR AS {column}"
COPIED = {
    "events": ("run_id", "stream_id"),
    "settled_phases": ("run_id",),
    "artifacts": ("run_id",),
    "streams": ("run_id", "stream_id"),
    "runs": ("run_id", "main_stream_id"),
}
COPIES_AT_ONCE = 10


def with_engine(run_id: str, count: int) -> Iterator[tuple[Event, int]]:
    """Yield events of a run that publishes an engine."""
    for event, phase_id in run_events(run_id, count - 1):
        if isinstance(event, RunFinished):
            yield ArtifactPublished(target="/models/engine.plan", sha256=DIGEST, size_bytes=1, by="build"), 0
            yield event.model_copy(update={"artifact_sha256": DIGEST}), phase_id
        else:
            yield event, phase_id


def fill(home: Path, first: int, last: int) -> None:
    """Copy the route's rows under new ids, as routes of their own, ``last - first`` times."""
    log = LocalLog.create(home / "log")
    with Store.open(home / "store.duckdb", log_identity=log.identity(), views=view_sql()) as store:
        for start in range(first, last, COPIES_AT_ONCE):
            with store.transaction() as db:
                for table, columns in COPIED.items():
                    renamed = [RENAMED.format(column=column) for column in columns]
                    if table == "runs":
                        renamed.append("route || '/' || range AS route")
                    statement = COPY.format(table=table, ids=", ".join(renamed))
                    db.execute(statement, [ROUTE, start, min(start + COPIES_AT_ONCE, last)])
        store.checkpoint()


@contextmanager
def opened(home: Path) -> Iterator[tuple[Query, Callable[[], object]]]:
    """Yield how to ask the home's store, and how to take in what is new in its log."""
    log = LocalLog.create(home / "log")
    with (
        Store.open(home / "store.duckdb", log_identity=log.identity(), views=view_sql()) as store,
        Ingester(log, store) as ingester,
    ):
        ingester.ingest()

        def query(sql: str, parameters: Sequence[object]) -> list[dict[str, Any]]:
            return to_rows(guard.run(store.cursor(), sql, parameters, guard.Limits()))

        yield query, ingester.ingest


def judge_route(query: Query, digest: str | None = None) -> None:
    """Judge the route and decide."""
    report = cbat.evaluate(query, ROUTE, load_policy(None), digest=digest, as_of_ns=clock.system_clock().wall_ns)
    decide(report)


def add_events(home: Path, run_id: str) -> None:
    """Append three events about a run of the route."""
    header = StreamHeader(
        stream_id=ids.random_id(), role="observer", run_id=run_id, source="benchmark", boot_id=ids.random_id()
    )
    fault = ErrorRecorded(component="agent", message="late news")
    EventStream(header, LocalLog.create(home / "log"), clock=clock.system_clock).close(fault, fault)


def measure_views(home: Path, rounds: int) -> None:
    """Print what judging costs in a home."""
    with opened(home) as (query, take_in):
        events = query("SELECT count(*) AS n FROM base.events", [])[0]["n"]
        newest = query("SELECT max_by(run_id, started_at) AS run_id FROM runs WHERE route = ?", [ROUTE])[0]["run_id"]
        copied = query("SELECT run_id FROM runs WHERE route <> ? ORDER BY run_id LIMIT 1", [ROUTE])[0]["run_id"]

        def warm() -> None:
            take_in()
            judge_route(query)

        where = f"{events:11,} events"
        rules = load_policy(None)
        report(where, "accept view", rounds, lambda: sbat.judge(query, [copied], rules, as_of_ns=0), bar_s=0.2)
        report(where, "gate warm", rounds, warm, before=lambda: add_events(home, newest), bar_s=0.05)
        report(where, "gate all runs", rounds, lambda: judge_route(query, OTHER_DIGEST))

    def cold() -> None:
        with opened(home) as (query, _):
            judge_route(query)

    report(where, "gate cold", rounds, cold, bar_s=1.0)


def measure_rows(home: Path, rounds: int) -> None:
    """Print what printing many rows costs."""
    sql = f"SELECT run_id, phase_id, name, started_at, duration_ms, status FROM phases LIMIT {ROWS}"  # noqa: S608 # ours
    for how in ("json", "csv", "table"):
        arguments = ("query", sql, "--format", how)
        report(f"{ROWS:,} rows", f"query {how}", rounds, partial(command, home, *arguments))


def measure_runs(home: Path, rounds: int, runs: int, judged: int) -> None:
    """Print what commands cost in a home of many short runs."""
    write_log(home / "log", runs=runs, events_per_run=30, events=with_engine)
    command(home, "collect")
    report(f"{runs:,} runs", "runs", rounds, lambda: command(home, "runs"))
    with opened(home) as (query, _):
        given = [row["run_id"] for row in query("SELECT run_id FROM runs ORDER BY run_id LIMIT ?", [judged])]
    accept = ("accept", "stuck-build", *given, "--format", "json")
    report(f"{judged:,} of them", "accept", 1, lambda: command(home, *accept))


def command(home: Path, *arguments: str) -> None:
    """Run a command, whose verdict may be any."""
    whole = [sys.executable, "-m", "enginetrail", "--home", str(home), *arguments]
    done = subprocess.run(whole, stdout=subprocess.DEVNULL, check=False)
    if done.returncode not in {0, 3, 4}:
        sys.exit(f"{arguments[0]} exited {done.returncode}")


def report(
    where: str,
    name: str,
    rounds: int,
    work: Callable[[], object],
    *,
    before: Callable[[], object] = lambda: None,
    bar_s: float | None = None,
) -> None:
    """Print the median and the worst of some rounds, in milliseconds."""
    took = []
    for _ in range(rounds):
        before()
        began = time.perf_counter()
        work()
        took.append(time.perf_counter() - began)
    bar = f"  (bar {bar_s * 1e3:.0f} ms)" if bar_s is not None else ""
    print(f"{where:18} {name:14} {statistics.median(took) * 1e3:8.0f} ms, worst {max(took) * 1e3:.0f}{bar}", flush=True)


def main() -> None:
    """Measure all of it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--events", type=int, default=1_000_000)
    parser.add_argument("--runs", type=int, default=3_000, help="runs of the home of short runs")
    parser.add_argument("--judged", type=int, default=500, help="of them, judged together")
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        home = Path(name) / "history"
        write_log(home / "log", runs=ROUTE_RUNS, events_per_run=ROUTE_EVENTS // ROUTE_RUNS, events=with_engine)
        command(home, "collect")
        copies = options.events // ROUTE_EVENTS - 1
        for first, last in ((0, copies // 10 + 1), (copies // 10 + 1, copies)):
            fill(home, first, last)
            measure_views(home, options.rounds)
        measure_rows(home, 1)
        measure_runs(Path(name) / "short", options.rounds, options.runs, options.judged)


if __name__ == "__main__":
    main()
