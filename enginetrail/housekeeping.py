"""What a following collector does beside reading: declare lost runs, and hand on what this home's spool holds."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from build_events.errors import EngineTrailError
from enginetrail.draining import start_draining, tell
from enginetrail.home import Home
from enginetrail.log_choice import SHORT_DRAIN_S
from enginetrail.recovery import recover_lost_runs


@contextmanager
def housekeeping(home: Home, warn: Callable[[str], None]) -> Iterator[Callable[[], None]]:
    """Give what is to be called every second; the spool is drained meanwhile, in a thread of its own.

    Nothing that goes wrong here ends its caller: it is said once until all is well again. A run that is found
    lost holds the caller up while its last spans are exported, 2 s at most.
    """
    drainer = start_draining(home)
    failing = False

    def keep() -> None:
        nonlocal failing
        try:
            recover_lost_runs(home)
        except (EngineTrailError, OSError) as error:
            if not failing:
                warn(f"{error} It is tried again every second.")
            failing = True
        else:
            failing = False

    try:
        yield keep
    finally:
        if drainer is not None:
            tell(home, drainer.finish(SHORT_DRAIN_S))
