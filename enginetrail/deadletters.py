"""``enginetrail deadletters``: records of the log that hold no event."""

from pathlib import Path

import click

from analytics.views import view_sql
from build_events.log import EventReader
from collector.access import STORE_FILE
from collector.errors import StoreBusyError
from collector.lock import StoreLock, read_holder
from collector.partitions import has_partitions, partition_folder
from collector.retry import RetryStats, retry
from collector.store import Store
from enginetrail.home import Home
from enginetrail.log_choice import open_log
from enginetrail.rows import Format, render, to_rows
from enginetrail.store import open_store, warn_if_stale

# Kafka: TOPIC/PARTITION and offset. Local log: a segment and a byte offset.
LIST = """
SELECT source, "offset", reason, run_id, route, stream_id, octet_length(payload) AS size_bytes, noted_at
FROM base.dead_letters ORDER BY source, "offset"
"""
WITH_BYTES = LIST.replace("noted_at\n", "noted_at, payload\n")


@click.group()
def deadletters() -> None:
    """Look at records of the log that hold no event, and try them again."""


@deadletters.command("list")
@click.option("--payload", "bytes_too", is_flag=True, help="Their bytes, too, in hexadecimal.")
@click.option("--format", "how", type=click.Choice(["table", "json", "csv"]), default="table", show_default=True)
@click.pass_obj
def list_(home: Home, *, bytes_too: bool, how: Format) -> None:
    """List dead letters: where each stands in the log, why it is one, and what it counts against."""
    with open_store(home) as reader:
        table = reader.query(WITH_BYTES if bytes_too else LIST)
        warn_if_stale(reader)
    click.echo(render(to_rows(table), table.column_names, how))


@deadletters.command("retry")
@click.pass_obj
def retry_(home: Home) -> None:
    """Read each dead letter's place in the log again; what this release can read is stored like any event."""
    log = open_log(home)
    done = RetryStats(0, 0, 0)
    for folder, source in _stores(home, log):
        one = _retry(folder, source)
        done = RetryStats(done.tried + one.tried, done.healed + one.healed, done.events + one.events)
    click.echo(f"{done.tried} dead letters tried, {done.healed} healed, {done.events} events stored")


def _stores(home: Home, log: EventReader) -> list[tuple[Path, EventReader]]:
    if home.kafka is None:
        return [(home.folder, log)]
    from collector.kafka.reader import KafkaReader  # noqa: PLC0415 # a chosen adapter

    if isinstance(log, KafkaReader) and has_partitions(home.folder, log.identity()):
        return [
            (partition_folder(home.folder, log.identity(), number), log.partition(number))
            for number in log.partitions()
        ]
    return [(home.folder, log)]


def _retry(folder: Path, log: EventReader) -> RetryStats:
    lock = StoreLock.try_acquire(folder)
    if lock is None:
        raise StoreBusyError(folder, read_holder(folder).pid, ": stop that collector, then retry")
    with lock, Store.open(folder / STORE_FILE, log_identity=log.identity(), views=view_sql()) as store:
        return retry(store, log)
