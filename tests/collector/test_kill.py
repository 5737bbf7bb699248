"""A collector killed at any moment loses nothing and stores nothing twice."""

import random
import time
from pathlib import Path

import pytest

from collector.access import STORE_FILE
from collector.collect import collect_once
from collector.store import Store
from tests.collector.processes import VIEWS, log_of, process
from tests.collector.scenes import whole_run
from tests.collector.stores import Rows, content
from tests.seeds import BASE, REPEAT


def home_with_runs(home: Path, *, runs: int, phases: int) -> Path:
    """Return a home whose log holds runs of about three events for each phase."""
    log = log_of(home)
    for number in range(runs):
        log.append(whole_run(f"run-{number}", phases=phases))
    return home


def stored(home: Path) -> dict[str, Rows]:
    """Return what the home's store holds."""
    with Store.open(home / STORE_FILE, log_identity=log_of(home).identity(), views=VIEWS) as store:
        return content(store.cursor())


@pytest.mark.fault
@pytest.mark.quiet
@pytest.mark.parametrize(
    ("command", "runs", "phases"),
    [
        ("collect-small", 40, 50),
        # More than a row group of DuckDB: such a commit writes into the file before it is one.
        ("collect", 1, 44_000),
    ],
)
def test_a_collector_killed_mid_commit_gives_the_tables_of_an_undisturbed_one(
    tmp_path: Path, runtime_dir: Path, command: str, runs: int, phases: int
) -> None:
    """SIGKILL at random moments while it commits; the next one goes on from the last commit."""
    print(f"seed {BASE}, {REPEAT} kills")  # noqa: T201 - to repeat a failure
    chance = random.Random(BASE)
    undisturbed = home_with_runs(tmp_path / "undisturbed", runs=runs, phases=phases)
    with process(command, undisturbed, tmp_path) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == "begin\n"
        began = time.monotonic()
        assert child.wait() == 0
        takes_s = time.monotonic() - began
    expected = stored(undisturbed)

    home = tmp_path / "killed"
    (home / "log").parent.mkdir()
    (undisturbed / "log").rename(home / "log")
    partial = 0
    for _ in range(REPEAT):
        for path in home.glob("store.duckdb*"):
            path.unlink()
        with process(command, home, tmp_path) as child:
            assert child.stdout is not None
            assert child.stdout.readline() == "begin\n"
            time.sleep(chance.uniform(0, takes_s))
            child.kill()
            partial += child.wait() != 0
        again = collect_once(home, log_of(home), VIEWS, runtime_dir=runtime_dir)
        assert again.duplicates == 0
        assert stored(home) == expected
    # A kill after the end shows nothing; by chance alone not all of them come that late.
    assert partial > 0, f"none of {REPEAT} kills came before the collector was done"
