"""``enginetrail collect``: the event log into DuckDB."""

from pathlib import Path

import click

from analytics.views import view_sql
from build_events.log import EventReader
from collector.collect import collect_once, replay
from collector.commit import CollectStats
from collector.errors import StoreExistsError
from collector.memory import keep_freed
from collector.partitions import has_partitions
from collector.publish import ALL
from enginetrail.cli import EXIT_FAULT
from enginetrail.collector_status import alive, print_status
from enginetrail.following import follow_group, follow_whole, publisher, warn
from enginetrail.home import Home
from enginetrail.log_choice import open_log
from enginetrail.recovery import settle

REPLAY_NAME = "store.replay.duckdb"
EXIT_GAP = 1


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
@click.option("--group", metavar="NAME", help="With --follow and a Kafka log: share its partitions with this group.")
@click.option(
    "--publish",
    type=click.Path(file_okay=False, path_type=Path),
    help="Write each snapshot as Parquet into this folder, too, for readers on other hosts.",
)
@click.option("--status", "status", is_flag=True, help="Only say how far the store is: lag, rate, dead letters.")
@click.option(
    "--alive",
    "alive_s",
    metavar="SECONDS",
    type=click.FloatRange(min=0, min_open=True),
    help="Only say whether a following collector gave a sign of life within SECONDS; asks neither log nor store.",
)
@click.option("--format", "how", type=click.Choice(["table", "json"]), default="table", help="Of --status.")
@click.pass_obj
def collect(
    home: Home,
    *,
    following: bool,
    target: Path | None,
    group: str | None,
    publish: Path | None,
    status: bool,
    alive_s: float | None,
    how: str,
) -> int:
    """Take what is new in the log into the store, exactly once.

    Exits 1 if records were gone from the log before they could be read; the gap is among the dead letters.
    With --alive, exits 1 if no collector of this home follows, or one is stuck.
    """
    _check_usage(following=following, target=target, group=group, only_looks=status or alive_s is not None)
    if alive_s is not None:
        return 0 if alive(home, alive_s) else EXIT_FAULT
    if status:
        print_status(home, how)
        return 0
    keep_freed()
    if group is not None:
        stats, has_gaps = follow_group(home, group, publish)
        _report(stats, home.folder / "partitions")
        return EXIT_GAP if has_gaps else 0
    log = open_log(home)
    if target is not None:
        _replay(home, log, target)
        return _gaps(log)
    if home.kafka is not None and has_partitions(home.folder, log.identity()):
        raise click.UsageError("this home collects by partition: give --follow --group NAME, or another --home")
    if following:
        stats = follow_whole(home, log, publish)
    else:
        stats = collect_once(
            home.folder,
            log,
            view_sql(),
            runtime_dir=home.runtime_dir,
            before_ingest=lambda: settle(home),
            on_snapshot=publisher(log.identity(), publish, ALL) if publish else None,
        )
    _report(stats, home.folder / "store.duckdb")
    return _gaps(log)


def _check_usage(*, following: bool, target: Path | None, group: str | None, only_looks: bool) -> None:
    if following and target is not None:
        raise click.UsageError("--follow and --replay exclude each other")
    if group is not None and not following:
        raise click.UsageError("--group needs --follow: a member that leaves gives its partitions back")
    if only_looks and (following or target is not None):
        raise click.UsageError("--status and --alive only look; give them alone")


def _replay(home: Home, log: EventReader, target: Path) -> None:
    path = target if target.name else home.folder / REPLAY_NAME
    if not target.name:
        path.unlink(missing_ok=True)  # the default name is ours, and its content comes from the log
    try:
        _report(replay(log, path, view_sql()), path)
    except StoreExistsError as error:
        raise click.UsageError(str(error)) from None


def _gaps(log: EventReader) -> int:
    """Say what was gone from the log; return the exit code."""
    gaps: list[str] = getattr(log, "gaps", [])
    for gap in gaps:
        warn(gap)
    return EXIT_GAP if gaps else 0


def _report(stats: CollectStats, path: Path) -> None:
    click.echo(
        f"{path}: {stats.events} events stored, {stats.duplicates} duplicates, {stats.dead_letters} dead letters"
    )
