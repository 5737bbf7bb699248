"""What every start does first: find runs that nobody saw the end of."""

from build_events.clock import system_clock
from builder_agent.recovery import recover
from builder_agent.spool.drain import waiting_events
from enginetrail.draining import drain_briefly
from enginetrail.home import Home


def recover_lost_runs(home: Home) -> None:
    """Declare abandoned runs of this home lost, quarantine what they left, export them; never a live one."""
    lost = [run.records for run in recover(home.log_folder, clock=system_clock) if run.lost]
    if lost:
        from enginetrail.exporting import export_lost_runs  # noqa: PLC0415 # rarely needed

        export_lost_runs(home, lost)


def settle(home: Home) -> None:
    """Do what comes before reading the log: declare lost runs, and hand on what this home's spool still holds.

    A log that is away costs its short bound, and is said on standard error.
    """
    recover_lost_runs(home)
    if home.kafka is not None and waiting_events(home.log_folder):
        drain_briefly(home)
