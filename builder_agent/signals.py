"""SIGINT and SIGTERM as cancellation requests, for a host that asks for it: chained, main thread only."""

import signal
import threading
from collections.abc import Callable
from types import FrameType
from typing import Any

from build_events.events import CancelSource
from builder_agent.errors import UsageError

_SOURCES: dict[signal.Signals, CancelSource] = {signal.SIGINT: "ctrl_c", signal.SIGTERM: "service"}


class SignalHandlers:
    """Handlers that request a cancellation and then do what the host's own would do.

    A Python handler of the host is called at once. What the default would do (``KeyboardInterrupt``,
    the end of the process) waits until the run has ended, see ``deferred``. A signal that the host
    ignores stays ignored.
    """

    def __init__(self, request: Callable[[CancelSource], object]) -> None:
        self._request = request
        self._previous: dict[signal.Signals, Any] = {}
        self.deferred: set[signal.Signals] = set()  # signals whose default action is still to come

    def install(self) -> None:
        """Install the handlers.

        Raises:
            UsageError: this is not the main thread, the only one that can.
        """
        if threading.current_thread() is not threading.main_thread():
            raise UsageError("signals=True works in the main thread only: call run.cancel from your own handler")
        for number in _SOURCES:
            previous = signal.getsignal(number)
            # None: a handler that was not installed from Python, which could not be put back.
            if previous not in (signal.SIG_IGN, None):
                self._previous[number] = previous
                signal.signal(number, self._handle)

    def restore(self) -> None:
        """Put back what was there, except where somebody put another handler on top of ours."""
        for number, previous in self._previous.items():
            if signal.getsignal(number) == self._handle:
                signal.signal(number, previous)
        self._previous.clear()

    def _handle(self, number: int, frame: FrameType | None) -> None:
        which = signal.Signals(number)
        self._request(_SOURCES[which])
        previous = self._previous.get(which)
        if callable(previous) and previous is not signal.default_int_handler:
            previous(number, frame)
        else:
            self.deferred.add(which)
