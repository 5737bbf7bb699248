"""What every start does first: find runs that nobody saw the end of."""

from build_events.clock import system_clock
from builder_agent.recovery import recover
from enginetrail.home import Home


def recover_lost_runs(home: Home) -> None:
    """Declare abandoned runs of this home lost and quarantine what they left; never a live one."""
    recover(home.log_folder, clock=system_clock)
