"""``enginetrail deadletters``: records of the log that hold no event."""

from pathlib import Path
from typing import Any

import click

from analytics.views import view_sql
from build_events.log import EventReader
from builder_agent.spool.dead_letters import FOLDER, dead_letters, payload_of
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
SELECT 'log' AS kept_in, source, "offset", reason, run_id, route, stream_id, octet_length(payload) AS size_bytes,
  noted_at, payload
FROM base.dead_letters ORDER BY source, "offset"
"""


@click.group()
def deadletters() -> None:
    """Look at records of the log that hold no event, and try them again."""


@deadletters.command("list")
@click.option("--payload", "bytes_too", is_flag=True, help="Their bytes, too, in hexadecimal.")
@click.option("--format", "how", type=click.Choice(["table", "json", "csv"]), default="table", show_default=True)
@click.pass_obj
def list_(home: Home, *, bytes_too: bool, how: Format) -> None:
    """List dead letters: where each stands, why it is one, and what it counts against.

    Those of the log stand in the store, too; those of the spool are events that a Kafka log refused.
    """
    with open_store(home) as reader:
        table = reader.query(LIST)
        warn_if_stale(reader)
    rows = [*to_rows(table), *_refused(home)]
    columns = [name for name in table.column_names if bytes_too or name != "payload"]
    click.echo(render([{name: row[name] for name in columns} for row in rows], columns, how))


@deadletters.command("retry")
@click.pass_obj
def retry_(home: Home) -> None:
    """Read each dead letter's place in the log again; what this release can read is stored like any event.

    Events that the log refused, in the spool's dead letters, stay there: their runs stay incomplete.
    """
    log = open_log(home)
    done = RetryStats(0, 0, 0)
    for folder, source in _stores(home, log):
        one = _retry(folder, source)
        done = RetryStats(done.tried + one.tried, done.healed + one.healed, done.events + one.events)
    click.echo(f"{done.tried} dead letters tried, {done.healed} healed, {done.events} events stored")
    if refused := len(_refused(home)):
        click.echo(
            f"enginetrail: {refused} more were refused by the log for their size or form and stay in "
            f"{home.log_folder / FOLDER}, and their runs incomplete: this release does not send them again. "
            "See `enginetrail topics check`, and build again",
            err=True,
        )


def _refused(home: Home) -> list[dict[str, Any]]:
    """Return the dead letters of the home's spool as rows of the list."""
    if home.kafka is None:
        return []
    return [
        {
            "kept_in": "spool",
            "source": letter["source"],
            "offset": letter["offset"],
            "reason": letter["reason"],
            "run_id": letter.get("run"),
            "route": letter.get("route"),
            "stream_id": letter["stream"],
            "size_bytes": len(payload_of(letter)),
            "noted_at": None,
            "payload": payload_of(letter).hex(),
        }
        for letter in dead_letters(home.log_folder)
    ]


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
