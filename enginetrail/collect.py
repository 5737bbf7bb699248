"""``enginetrail collect``: the event log into DuckDB."""

import signal
from pathlib import Path

import click

from analytics.views import view_sql
from build_events.log import EventReader
from collector.collect import collect_once, follow, replay
from collector.commit import CollectStats
from collector.errors import StoreExistsError
from enginetrail.home import Home
from enginetrail.log_choice import open_log
from enginetrail.recovery import recover_lost_runs

REPLAY_NAME = "store.replay.duckdb"


@click.command()
@click.option("--follow", "following", is_flag=True, help="Go on until SIGINT or SIGTERM, and answer queries.")
@click.option(
    "--replay",
    "target",
    type=click.Path(dir_okay=False, path_type=Path),
    is_flag=False,
    flag_value="",
    help=f"Read the whole log into a new store at this path (default: {REPLAY_NAME} in the home).",
)
@click.pass_obj
def collect(home: Home, *, following: bool, target: Path | None) -> None:
    """Take what is new in the log into the store, exactly once."""
    if following and target is not None:
        raise click.UsageError("--follow and --replay exclude each other")
    log = open_log(home)
    if target is not None:
        _replay(home, log, target)
    elif following:
        _follow(home, log)
    else:
        stats = collect_once(
            home.folder, log, view_sql(), runtime_dir=home.runtime_dir, before_ingest=lambda: recover_lost_runs(home)
        )
        _report(stats, home.folder / "store.duckdb")


def _replay(home: Home, log: EventReader, target: Path) -> None:
    path = target if target.name else home.folder / REPLAY_NAME
    if not target.name:
        path.unlink(missing_ok=True)  # the default name is ours, and its content comes from the log
    try:
        _report(replay(log, path, view_sql()), path)
    except StoreExistsError as error:
        raise click.UsageError(str(error)) from None


def _follow(home: Home, log: EventReader) -> None:
    stopping: list[int] = []
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda received, _frame: stopping.append(received))
    click.echo(f"following {home.kafka.url if home.kafka else home.log_folder}; stop with Ctrl-C", err=True)
    stats = follow(
        home.folder,
        log,
        view_sql(),
        runtime_dir=home.runtime_dir,
        stop=lambda: bool(stopping),
        housekeeping=lambda: recover_lost_runs(home),
        warn=lambda text: click.echo(f"enginetrail: {text}", err=True),
    )
    _report(stats, home.folder / "store.duckdb")


def _report(stats: CollectStats, path: Path) -> None:
    click.echo(
        f"{path}: {stats.events} events stored, {stats.duplicates} duplicates, {stats.dead_letters} dead letters"
    )
