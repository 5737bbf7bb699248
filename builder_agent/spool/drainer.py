"""The thread that drains a spool while something else runs, and ends within a bound that the caller gives.

Nothing waits for it but ``finish``. It is a daemon: a broker that does not answer holds no exit.
"""

import contextlib
import logging
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from build_events.errors import EngineTrailError
from builder_agent import forks
from builder_agent.spool.drain import SpoolDrain, Step, waiting_events
from builder_agent.spool.sink import Sink, SinkUnavailableError

INTERVAL_S = 0.05  # between two looks at the spool: what a record may wait for company
LISTING_SHARE = 20  # a look may take one part in so many of the time
RETRY_S = 1.0  # between attempts to reach a log that is away
STOP_GRACE_S = 0.25  # for the thread to see the bound and let go

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class DrainReport:
    """How a drain ended."""

    events: int  # acknowledged
    refused: int  # in dead letters: see ``dead_letters.dead_letters``
    waiting: int  # events that still stand in the spool
    reason: str = ""  # why, where something waits


class Drainer:
    """Drains ``folder`` into the sink from ``start`` to ``finish``."""

    def __init__(self, folder: Path, sink: Sink, *, run_first: str | None = None) -> None:
        self._folder = folder
        self._sink = sink
        self._drain = SpoolDrain(folder, sink, run_first=run_first)
        self._deadline: float | None = None  # CLOCK_MONOTONIC seconds, once the end is asked for
        self._wake = threading.Event()
        self._ended = threading.Event()
        self._events = self._refused = 0
        self._reason = ""
        self._dead = False  # this is a forked child
        self._thread = threading.Thread(target=self._run, name="enginetrail-drain", daemon=True)

    def start(self) -> None:
        """Start the thread."""
        forks.register(self)
        self._thread.start()

    def finish(self, timeout_s: float) -> DrainReport:
        """Drain what is left, for at most ``timeout_s``, and say what waits."""
        if not self._dead and self._thread.ident is not None:
            self._deadline = time.monotonic() + timeout_s
            self._wake.set()
            self._ended.wait(timeout_s + STOP_GRACE_S)
        waiting = 0
        with contextlib.suppress(OSError):
            waiting = waiting_events(self._folder)
        return DrainReport(self._events, self._refused, waiting, self._reason if waiting else "")

    def after_fork_in_child(self) -> None:
        """Drain nothing here: the thread and its connections are the parent's."""
        self._dead = True

    def _run(self) -> None:
        try:
            while not self._stopping() or not self._overdue():
                began = time.monotonic()
                last = self._stopping()  # before the look: what is appended until then is seen by it
                pause, left = self._step()
                if last and not left:
                    break
                look_s = time.monotonic() - began
                self._pause(max(pause, min(look_s * LISTING_SHARE, RETRY_S)))
        finally:
            try:
                self._sink.close()
            finally:
                self._ended.set()

    def _step(self) -> tuple[float, bool]:
        """Return how long to pause, and whether something is left to do."""
        try:
            step = self._drain.step(self._overdue)
        except SinkUnavailableError as error:
            self._reason = str(error)
            return RETRY_S, True
        except (EngineTrailError, OSError) as error:
            self._reason = f"spool {self._folder}: {error}"
            return RETRY_S, True
        except Exception as error:  # noqa: BLE001 # said aloud; a build does not depend on it
            _log.exception("draining %s failed; it is tried again", self._folder)
            self._reason = repr(error)
            return RETRY_S, True
        self._take(step)
        return INTERVAL_S, step.left

    def _take(self, step: Step) -> None:
        self._events += step.events
        self._refused += step.refused
        self._reason = "the log did not acknowledge them in time" if step.left else ""

    def _stopping(self) -> bool:
        return self._deadline is not None

    def _overdue(self) -> bool:
        deadline = self._deadline
        return self._dead or (deadline is not None and time.monotonic() >= deadline)

    def _pause(self, seconds: float) -> None:
        deadline = self._deadline
        if deadline is not None:
            seconds = min(seconds, max(deadline - time.monotonic(), 0), INTERVAL_S * 4)
        self._wake.wait(seconds)
        self._wake.clear()


def drain_all(
    folder: Path, sink: Sink, *, give_up: Callable[[], bool], on_step: Callable[[Step], None] = lambda _step: None
) -> DrainReport:
    """Drain a spool in this thread until nothing is left that could go, or ``give_up`` says so.

    A log that cannot be reached ends it at once. The sink stays open.

    Raises:
        OSError: the spool cannot be read, or its cursors not written.
    """
    drain = SpoolDrain(folder, sink)
    events = refused = 0
    reason = ""
    while not give_up():
        try:
            step = drain.step(give_up)
        except SinkUnavailableError as error:
            reason = str(error)
            break
        on_step(step)
        events, refused = events + step.events, refused + step.refused
        if not step.left or not (step.events or step.refused):
            break
    waiting = waiting_events(folder)
    return DrainReport(events, refused, waiting, reason if waiting else "")
