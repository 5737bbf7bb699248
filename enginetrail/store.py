"""The store as the commands use it: opened with our views, after the log was taken in."""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, closing
from typing import Any

import click

from analytics.views import view_sql
from collector.access import Reader, open_reader
from collector.partitions import has_partitions
from enginetrail.home import Home
from enginetrail.log_choice import need_kafka, open_log
from enginetrail.recovery import settle
from enginetrail.rows import to_rows
from enginetrail.run_ids import one_run

CATCH_UP_S = 5.0
Query = Callable[[str, Sequence[object]], list[dict[str, Any]]]

WHOLE = "SELECT run_id FROM runs WHERE run_id IN (SELECT unnest(?::VARCHAR[]))"
_TRACE = "SELECT trace_id FROM events WHERE run_id = ? AND stream_role = 'main' LIMIT 1"
# So many of each prefix as tell that it is ambiguous.
BEGUN = """
SELECT prefix, run_id
FROM (SELECT unnest(?::VARCHAR[]) AS prefix)
JOIN runs ON starts_with(run_id, prefix)
QUALIFY row_number() OVER (PARTITION BY prefix ORDER BY run_id) <= 4
ORDER BY prefix, run_id
"""


def open_store(home: Home) -> AbstractContextManager[Reader]:
    """Return a reader of the home's store that has seen the log as it stands now.

    Raises:
        EngineTrailError: another process holds the store and neither answers nor left a snapshot.
    """
    log = open_log(home)
    if home.kafka is not None and has_partitions(home.folder, log.identity()):
        settle(home)
        return open_partitions(home)
    return open_reader(
        home.folder,
        log,
        view_sql(),
        runtime_dir=home.runtime_dir,
        before_ingest=lambda: settle(home),
    )


def open_partitions(home: Home, *, take_in: bool = True) -> Reader:
    """Return a reader of the stores of all partitions as one.

    Raises:
        EngineTrailError: a partition is collected, but has published nothing yet.
    """
    from collector.kafka.reader import KafkaReader  # noqa: PLC0415 # a chosen adapter
    from collector.union import open_union  # noqa: PLC0415

    settings = need_kafka(home)
    with closing(KafkaReader(settings.client, settings.topic)) as log:
        return open_union(home.folder, log, view_sql(), take_in=take_in, wait_s=CATCH_UP_S if take_in else 0.0)


def querying(reader: Reader) -> Query:
    """Return the reader's query as rows of plain values."""

    def query(sql: str, parameters: Sequence[object]) -> list[dict[str, Any]]:
        return to_rows(reader.query(sql, parameters))

    return query


def warn_if_stale(reader: Reader) -> None:
    """Say on standard error when an answer does not cover the whole log."""
    if reader.snapshot_age_s is not None:
        click.echo(
            f"enginetrail: the collector does not answer; its snapshot is {reader.snapshot_age_s:.0f} s old", err=True
        )
    elif reader.behind:
        click.echo("enginetrail: the collector has not yet taken in the whole log; ask again in a moment", err=True)


def resolve_run(query: Query, prefix: str) -> str:
    """Return the one run id of the store that begins with ``prefix``.

    Raises:
        click.UsageError: no run, or several, begin with it.
    """
    return resolve_runs(query, [prefix])[0]


def resolve_runs(query: Query, prefixes: Sequence[str]) -> list[str]:
    """Return for each prefix the one run id of the store that begins with it, in two queries at most.

    Raises:
        click.UsageError: no run, or several, begin with one of them.
    """
    whole = {row["run_id"] for row in query(WHOLE, [list(prefixes)])}
    begun: dict[str, list[str]] = {}
    # Comparing every prefix with every run is for what no equality finds.
    parts = sorted(set(prefixes) - whole)
    for row in query(BEGUN, [parts]) if parts else []:
        begun.setdefault(row["prefix"], []).append(row["run_id"])
    return [prefix if prefix in whole else one_run(begun.get(prefix, []), prefix) for prefix in prefixes]


def trace_id_of(query: Query, run_id: str) -> str | None:
    """Return the trace of a run, ``None`` where it was recorded without one or its main stream has not come."""
    found = query(_TRACE, [run_id])
    return found[0]["trace_id"] if found else None
