"""The spool of a run that is observed inside its host's process: written and drained by threads of the agent."""

import atexit
import logging
import os
import threading
from collections.abc import Sequence
from pathlib import Path

from build_events.envelope import Recorded
from build_events.local_log import LocalLog
from builder_agent.spool.drainer import STOP_GRACE_S, Drainer
from builder_agent.spool.sink import Sink

_log = logging.getLogger(__name__)


class SpooledLog:
    """``EventWriter`` for one run. The delivery thread owns it; the first append opens spool and drain.

    ``close`` waits for the log behind the spool at most ``exit_s``, on the delivery thread: the host is
    held only at its own exit, and only as long (and for the moment that the thread takes to say so).
    """

    def __init__(self, folder: Path, sink: Sink, run_id: str, *, exit_s: float) -> None:
        self.folder = folder
        self._run_id = run_id
        self._exit_s = exit_s
        self._drainer = Drainer(folder, sink, run_first=run_id)
        self._log: LocalLog | None = None
        self._owner = os.getpid()
        self._drained = threading.Event()

    def append(self, records: Sequence[Recorded]) -> None:
        """Return once the records are durable in the spool.

        Raises:
            LogUnavailableError: not all were stored.
        """
        if self._log is None:
            self._log = LocalLog.create(self.folder)
            self._drainer.start()
            atexit.register(self._wait)
        self._log.append(records)

    def close(self) -> None:
        """Give up the stream if it is still open, drain for the time there is, and say what waits."""
        if self._log is None:
            return
        self._log.close()
        report = self._drainer.finish(self._exit_s)
        if report.waiting:
            _log.warning(
                "run %s: %d events wait in %s: %s; the next run or `enginetrail relay` delivers them",
                self._run_id, report.waiting, self.folder, report.reason,
            )  # fmt: skip
        self._drained.set()
        atexit.unregister(self._wait)

    def _wait(self) -> None:
        if os.getpid() == self._owner:  # a forked child inherits the exit handler, not the threads
            self._drained.wait(self._exit_s + 2 * STOP_GRACE_S)
