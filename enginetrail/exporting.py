"""How the commands export. Imported where something is: most builds export nothing, and start the sooner."""

from collections.abc import Callable, Sequence

import click

from build_events.clock import system_clock
from build_events.envelope import Recorded
from build_events.errors import LogUnavailableError
from build_events.log import EventWriter
from build_events.telemetry import metrics
from build_events.telemetry.measurements import Measurement
from builder_agent.spool.drain import waiting_events
from builder_agent.telemetry.lost_runs import export_ended, export_lost
from builder_agent.telemetry.run_telemetry import RunTelemetry
from enginetrail.home import Home
from enginetrail.telemetry import chosen_telemetry


def run_telemetry(home: Home) -> RunTelemetry:
    """Return what exports one run of this process."""
    return RunTelemetry(chosen_telemetry(), observe=lambda: spool_depth(home))


def spool_depth(home: Home) -> list[Measurement]:
    """Return how many events wait in the home's spool; nothing where the log is the local one."""
    return [] if home.kafka is None else [Measurement(metrics.SPOOL_WAITING, waiting_events(home.log_folder))]


def export_lost_runs(home: Home, runs: Sequence[Sequence[Recorded]]) -> None:
    """Export the runs that this command has declared lost, given with their records, within one short bound."""
    spooled = home.kafka is not None
    try:
        ends = export_lost(runs, chosen_telemetry(), home.log_folder, clock=system_clock, spooled=spooled)
    except LogUnavailableError as error:  # the runs' ends do stand in the log
        click.echo(f"enginetrail: what was exported of lost runs could not be recorded: {error}", err=True)
        return
    for end in ends:
        if end.shortfall is not None:
            click.echo(f"enginetrail: run {end.header.run_id}: {end.shortfall}", err=True)


def export_fenced_runs(log: EventWriter, runs: Sequence[Sequence[Recorded]], warn: Callable[[str], None]) -> None:
    """Export the runs that this collector has fenced, given with their records, within one short bound.

    Raises:
        LogUnavailableError: the log did not take what was exported.
    """
    for end in export_ended(runs, chosen_telemetry(), log, clock=system_clock):
        if end.shortfall is not None:
            warn(f"run {end.header.run_id}: {end.shortfall}")
