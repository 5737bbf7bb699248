"""``enginetrail relay``: deliver what waits in a spool."""

import signal
import threading

import click

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
@click.pass_obj
def relay(home: Home, *, following: bool, timeout: float) -> int:
    """Deliver the events that wait in the home's spool to the Kafka log.

    Ends of runs that nobody saw are declared first. Exits 0 when nothing waits any more, 1 otherwise.
    """
    need_kafka(home)
    recover_lost_runs(home)
    report = _follow(home) if following else _once(home, timeout)
    click.echo(f"{report.events} events delivered, {report.refused} refused, {report.waiting} wait")
    tell(home, report)
    return EXIT_FAULT if report.waiting else 0


def _once(home: Home, timeout_s: float) -> DrainReport:
    drainer = start_draining(home)
    assert drainer is not None
    return drainer.finish(timeout_s)


def _follow(home: Home) -> DrainReport:
    stop = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda _number, _frame: stop.set())
    drainer = start_draining(home)
    assert drainer is not None
    click.echo(f"relaying {home.log_folder}; stop with Ctrl-C", err=True)
    while not stop.wait(HOUSEKEEPING_S):
        recover_lost_runs(home)
    return drainer.finish(SHORT_DRAIN_S)
