"""``enginetrail relay``: deliver what waits in a spool."""

import signal
import threading

import click

from build_events.errors import LogUnavailableError
from builder_agent.spool.drainer import DrainReport
from enginetrail.cli import EXIT_FAULT
from enginetrail.draining import start_draining, tell
from enginetrail.home import Home
from enginetrail.log_choice import SHORT_DRAIN_S, need_kafka
from enginetrail.recovery import recover_lost_runs

HOUSEKEEPING_S = 5.0


@click.command()
@click.option("--follow", "following", is_flag=True, help="Go on until SIGINT or SIGTERM, as a side-car.")
@click.option(
    "--timeout",
    type=click.FloatRange(min=0),
    default=60.0,
    show_default=True,
    help="Seconds to try for, without --follow.",
)
@click.option(
    "--drain",
    type=click.FloatRange(min=0),
    default=SHORT_DRAIN_S,
    show_default=True,
    help="With --follow: seconds to go on for after SIGINT or SIGTERM.",
)
@click.pass_obj
def relay(home: Home, *, following: bool, timeout: float, drain: float) -> int:
    """Deliver the events that wait in the home's spool to the Kafka log.

    Ends of runs that nobody saw are declared first, and once more when --follow ends. Exits 0 when
    nothing waits any more, 1 otherwise.
    """
    need_kafka(home)
    blocked = _declare(home)
    report = _follow(home, drain) if following else _once(home, timeout)
    if blocked and not following and (still := _declare(home)) is None:
        # Room was made: what could not be declared before goes, too.
        report = _add(report, _once(home, timeout))
    elif blocked and not following:
        click.echo(f"enginetrail: {still}", err=True)
    click.echo(f"{report.events} events delivered, {report.refused} refused, {report.waiting} wait")
    tell(home, report)
    return EXIT_FAULT if report.waiting else 0


def _declare(home: Home) -> str | None:
    """Declare what runs were lost; return what kept the log from taking it, e.g. a disk that a drain will free."""
    try:
        recover_lost_runs(home)
    except LogUnavailableError as error:
        return str(error)
    return None


def _add(first: DrainReport, second: DrainReport) -> DrainReport:
    return DrainReport(first.events + second.events, first.refused + second.refused, second.waiting, second.reason)


def _once(home: Home, timeout_s: float) -> DrainReport:
    drainer = start_draining(home)
    assert drainer is not None
    return drainer.finish(timeout_s)


def _follow(home: Home, drain_s: float) -> DrainReport:
    stop = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda _number, _frame: stop.set())
    drainer = start_draining(home)
    assert drainer is not None
    click.echo(f"relaying {home.log_folder}; stop with Ctrl-C", err=True)
    while not stop.wait(HOUSEKEEPING_S):
        _declare(home)
    _declare(home)  # a side-car is told to stop when its build is gone, killed perhaps
    return drainer.finish(drain_s)
