"""How commands hand on what they appended: in the background while they work, then for a bounded time."""

import os

import click

from builder_agent.kafka.sink import KafkaSink
from builder_agent.spool.drainer import Drainer, DrainReport
from enginetrail.home import Home
from enginetrail.log_choice import SHORT_DRAIN_S, need_kafka


def start_draining(home: Home, *, run_first: str | None = None) -> Drainer | None:
    """Start to drain the home's spool; ``None`` where the log is the local one.

    Raises:
        click.UsageError: no Kafka client is installed.
    """
    if home.kafka is None:
        return None
    drainer = Drainer(home.log_folder, KafkaSink(need_kafka(home)), run_first=run_first)
    drainer.start()
    return drainer


def drain_briefly(home: Home) -> None:
    """Hand on what a short command appended, within its bound, and say what waits."""
    drainer = start_draining(home)
    if drainer is not None:
        tell(home, drainer.finish(SHORT_DRAIN_S))


def tell(home: Home, report: DrainReport) -> None:
    """Say on standard error what waits, and what the log refused."""
    if report.waiting:
        click.echo(
            f"enginetrail: {_events(report.waiting)} in {_shown(home)} ({report.reason}); "
            "`enginetrail relay` or the next start delivers them",
            err=True,
        )
    if report.refused:
        click.echo(
            f"enginetrail: the log refused {report.refused} events for their size or form; "
            f"they are kept in {_shown(home)}/deadletters",
            err=True,
        )


def _events(count: int) -> str:
    return "1 event waits" if count == 1 else f"{count} events wait"


def _shown(home: Home) -> str:
    return os.fspath(home.log_folder)
