"""``enginetrail collect --status``: how far the store is behind its log, and how its collectors do."""

import json
import time
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from analytics.views import view_sql
from build_events.errors import LogUnavailableError
from build_events.log import EventReader
from collector.access import open_reader
from collector.partitions import FOLDER, has_partitions, slug
from collector.status import CollectorStatus, StillLog, lag, read_status
from enginetrail.home import Home
from enginetrail.log_choice import open_log
from enginetrail.rows import plain_table
from enginetrail.store import Query, open_partitions, querying

POSITIONS = "SELECT source, next_offset FROM base.positions ORDER BY source"
FACTS = """
SELECT
    (SELECT count(*) FROM base.events) AS events,
    (SELECT count(*) FROM base.dead_letters) AS dead_letters,
    (SELECT max(time) FROM base.events) AS last_event_at
"""


def print_status(home: Home, how: str) -> None:
    """Print positions, lag, counts and collectors; takes in nothing."""
    status = _status(home)
    if how == "json":
        click.echo(json.dumps(status))
        return
    if status["sources"]:
        click.echo(plain_table(status["sources"], list(status["sources"][0])))
    for name in ("unit", "lag", "events", "events_per_s", "dead_letters", "last_event_at"):
        click.echo(f"{name:13} {'-' if status[name] is None else status[name]}")
    for item in status["collectors"]:
        state = "at the end of the log" if item["at_end"] else "behind, or the log is away"
        click.echo(f"collector     process {item['pid']}, {item['events_per_s']:g} events/s, {state}")
    if not status["collectors"]:
        click.echo("collector     none runs; `enginetrail collect --follow` starts one")


def alive(home: Home, within_s: float) -> bool:
    """Say whether collectors follow in this home and each wrote its status within ``within_s``; tell what is known.

    For probes: works while the log is away, which a collector outlives.
    """
    now = time.time()
    collectors = _collectors([home.folder, *sorted((home.folder / FOLDER).glob("*"))])
    for item in collectors:
        click.echo(f"collector process {item.pid}, {now - item.written_at:.0f} s since its last sign of life")
    if not collectors:
        click.echo("no collector runs in this home; `enginetrail collect --follow` starts one")
    return bool(collectors) and all(now - item.written_at <= within_s for item in collectors)


def _status(home: Home) -> dict[str, Any]:
    log = open_log(home)
    identity = log.identity()
    by_partition = home.kafka is not None and has_partitions(home.folder, identity)
    reader = (
        open_partitions(home, take_in=False)
        if by_partition
        else open_reader(home.folder, StillLog(log), view_sql(), runtime_dir=home.runtime_dir)
    )
    with reader as store:
        positions, facts = _stored(querying(store))
    ends = _ends(log)
    behind = lag(positions, ends or {})
    folders = sorted((home.folder / FOLDER).glob(f"{slug(identity)}.*")) if by_partition else [home.folder]
    collectors = _collectors(folders)
    return {
        "sources": [
            {
                "source": source,
                "position": positions.get(source, 0),
                "end": (ends or {}).get(source),
                "lag": behind.get(source, 0) if ends is not None else None,
            }
            for source in sorted({*positions, *(ends or {})})
        ],
        "unit": "records" if home.kafka else "bytes",
        "lag": sum(behind.values()) if ends is not None else None,
        "events": facts["events"],
        "events_per_s": sum(item.events_per_s for item in collectors) if collectors else None,
        "dead_letters": facts["dead_letters"],
        "last_event_at": facts["last_event_at"],
        "collectors": [asdict(item) for item in collectors],
    }


def _stored(query: Query) -> tuple[dict[str, int], dict[str, Any]]:
    positions = {row["source"]: row["next_offset"] for row in query(POSITIONS, [])}
    return positions, query(FACTS, [])[0]


def _ends(log: EventReader) -> dict[str, int] | None:
    try:
        return log.ends()
    except LogUnavailableError:
        return None


def _collectors(folders: list[Path]) -> list[CollectorStatus]:
    return [status for status in map(read_status, folders) if status is not None]
