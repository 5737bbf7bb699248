"""SIGTERM in the building process: the stream is flushed, and the process leaves at once."""

import os
import signal
import sys
import threading
import time
from queue import SimpleQueue
from types import FrameType

from build_events.clock import NS_PER_S
from builder_agent.session import RunSession
from builder_agent.supervised.ends import EXIT_STOPPED

_ZONE_POLL_S = 0.002
_FLUSH_SHARE = 0.8  # of the time that is left until SIGKILL


class Termination:
    """Leaves by ``os._exit`` on SIGTERM, after a no-cancel zone that is open; SIGKILL bounds the wait.

    The handler only wakes a thread: it may have interrupted anything.
    """

    def __init__(self, session: RunSession, *, grace_ns: int) -> None:
        self._session = session
        self._flush_s = grace_ns * _FLUSH_SHARE / NS_PER_S
        self._wake: SimpleQueue[None] = SimpleQueue()
        self._thread = threading.Thread(target=self._leave, name="termination", daemon=True)

    def install(self) -> None:
        """Take SIGTERM from now on; main thread only."""
        self._thread.start()
        signal.signal(signal.SIGTERM, self._handle)

    def _handle(self, _number: int, _frame: FrameType | None) -> None:
        self._wake.put(None)

    def _leave(self) -> None:
        self._wake.get()
        while self._session.cancel_state.open_zone is not None:
            time.sleep(_ZONE_POLL_S)
        self._session.delivery.flush(self._flush_s)
        sys.stderr.flush()
        os._exit(EXIT_STOPPED)
