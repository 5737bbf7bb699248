"""``collect``, ``query``, ``runs`` and ``show``."""

import csv
import io
import json
import signal
import time

import duckdb
import pytest

from tests.enginetrail.conftest import Build, Cli

RUN_COLUMNS = [
    "run_id", "route", "outcome", "retry_of", "started_at", "finished_at", "duration_ms", "complete", "artifact_digest",
]  # fmt: skip
PHASE_COLUMNS = [
    "run_id", "phase_id", "parent_id", "name", "started_at", "duration_ms", "steps_total", "steps_seen",
    "longest_gap_ms", "status",
]  # fmt: skip
CANCELLATION_COLUMNS = [
    "run_id", "source", "requested_at", "observed_ms", "returned_ms", "cleaned_ms", "exited_ms",
]  # fmt: skip


@pytest.mark.parametrize(
    ("view", "columns"),
    [("runs", RUN_COLUMNS), ("phases", PHASE_COLUMNS), ("cancellations", CANCELLATION_COLUMNS)],
)
def test_views_keep_the_columns_that_others_script_against(cli: Cli, view: str, columns: list[str]) -> None:
    """The named columns stand first and in this order, also in an empty home."""
    header = cli("query", f"SELECT * FROM {view}", "--format", "csv").stdout.strip().split(",")
    assert header[: len(columns)] == columns


def test_the_three_formats_say_the_same(cli: Cli, build: Build) -> None:
    """JSON is an array of objects alone on stdout, CSV has a header, the table is for people."""
    build()
    sql = "SELECT name, steps_seen FROM phases ORDER BY phase_id LIMIT 3"
    rows = json.loads(cli("query", sql, "--format", "json").stdout)
    table = list(csv.DictReader(io.StringIO(cli("query", sql, "--format", "csv").stdout)))
    assert [row["name"] for row in rows] == [
        "Building engine",
        "Cloning network graph",
        "Preparing graph for optimization",
    ]
    assert [(row["name"], int(row["steps_seen"])) for row in table] == [(r["name"], r["steps_seen"]) for r in rows]
    assert "Cloning network graph" in cli("query", sql).stdout
    assert json.loads(cli("query", "SELECT 1 AS one WHERE false", "--format", "json").stdout) == []


@pytest.mark.parametrize(
    "sql",
    [
        "DELETE FROM runs",
        "SELECT 1; SELECT 2",
        "CREATE TABLE t AS SELECT 1",
        "COPY (SELECT 1) TO 'out.csv'",
        "SELECT * FROM read_csv('/etc/passwd')",
        "ATTACH ':memory:' AS other",
        "this is no SQL",
        "SELECT no_such_column FROM runs",
    ],
)
def test_a_query_that_is_not_one_readable_select_is_refused(cli: Cli, sql: str) -> None:
    """What writes, is two statements or is no SQL exits 2, says why, and changes nothing."""
    process = cli("query", sql, code=2)
    assert process.stdout == ""
    assert process.stderr.strip()
    assert "Traceback" not in process.stderr
    assert not (cli.folder / "out.csv").exists()


def test_a_query_is_answered_by_a_following_collector(cli: Cli, build: Build) -> None:
    """Another process holds the store; a new build is seen without ``collect``."""
    follower = cli.start("collect", "--follow")
    try:
        deadline = time.monotonic() + 30
        while not (cli.home / "collector.json").exists() and time.monotonic() < deadline:
            time.sleep(0.02)
        run_id = build()["run_id"]
        assert [row["run_id"] for row in cli.query("SELECT run_id FROM runs")] == [run_id]
        assert follower.poll() is None
        busy = cli("collect", code=1)
        assert str(follower.pid) in busy.stderr
    finally:
        follower.send_signal(signal.SIGTERM)
        follower.communicate(timeout=30)
    assert follower.returncode == 0
    assert cli.query("SELECT count(*) AS n FROM runs") == [{"n": 1}]


def test_a_replayed_store_holds_the_same_events(cli: Cli, build: Build) -> None:
    """``collect --replay`` reads the whole log into a new store, and refuses a path that exists."""
    build()
    taken = cli("collect").stdout
    replayed = cli("collect", "--replay", "again.duckdb").stdout
    assert taken.split(":")[1].split()[0] == replayed.split(":")[1].split()[0]
    assert "again.duckdb" in cli("collect", "--replay", "again.duckdb", code=2).stderr
    cli("collect", "--replay")
    cli("collect", "--replay")
    assert (cli.home / "store.replay.duckdb").exists()


def test_show_prints_the_tree_and_knows_the_beginning_of_an_id(cli: Cli, build: Build) -> None:
    """Every phase stands in the tree; an unknown run is wrong usage."""
    run_id = build()["run_id"]
    shown = cli("show", run_id[:6]).stdout
    names = {row["name"] for row in cli.query("SELECT name FROM phases")}
    assert all(name in shown for name in names)
    assert run_id in shown
    assert "no run" in cli("show", "feedbeef", code=2).stderr
    assert run_id in cli("runs", "--route", "r/fp32/sm89").stdout
    assert run_id not in cli("runs", "--route", "another").stdout


def test_a_log_that_is_not_a_log_is_a_clear_error(cli: Cli, build: Build) -> None:
    """A home whose log lost its identity is refused by reading and by building, and nothing is deleted."""
    build()
    (cli.home / "log" / "identity.json").write_text("{", encoding="utf-8")
    before = sorted((cli.home / "log" / "runs").iterdir())
    for arguments in (("runs",), ("build", "model.onnx", "-o", "m.engine", "--route", "r")):
        process = cli(*arguments, code=1)
        assert "identity.json" in process.stderr
        assert "Traceback" not in process.stderr
    assert sorted((cli.home / "log" / "runs").iterdir()) == before


def test_a_damaged_event_is_a_dead_letter_and_the_run_is_not_complete(cli: Cli, build: Build) -> None:
    """One flipped byte in the middle of a segment costs one event, names its sequence, and loses nothing else."""
    run_id = build()["run_id"]
    segment = max((cli.home / "log" / "runs" / run_id).glob("*.jsonl"), key=lambda path: path.stat().st_size)
    content = bytearray(segment.read_bytes())
    middle = content.index(b"\n", len(content) // 2) + 100
    content[middle] ^= 1
    segment.write_bytes(content)
    (letter,) = cli.query("SELECT reason, run_id FROM dead_letters")
    assert letter == {"reason": "bad_checksum", "run_id": run_id}
    (run,) = cli.query("SELECT complete, outcome FROM runs")
    assert run == {"complete": False, "outcome": "completed"}
    assert "missing_sequences" in cli("show", run_id).stdout


def test_the_store_opens_in_any_duckdb(cli: Cli, build: Build) -> None:
    """Views and tables are plain names for other programs, whatever the file is called."""
    build()
    cli("collect")
    with duckdb.connect(str(cli.home / "store.duckdb"), read_only=True) as db:
        assert db.execute("SELECT outcome FROM runs").fetchall() == [("completed",)]
        assert db.execute("SELECT count(*) > 0 FROM phases").fetchall() == [(True,)]
        assert db.execute("SELECT count(*) FROM base.runs").fetchall() == [(1,)]
