"""The supervisor's signals: handlers that only note what came and when."""

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

from build_events.clock import Clock, Instant
from build_events.events import CancelSource

_SOURCES: dict[signal.Signals, CancelSource] = {
    signal.SIGINT: "ctrl_c",
    signal.SIGTERM: "service",
    signal.SIGHUP: "service",
}


@contextmanager
def signals_noted(note: Callable[[CancelSource, Instant], None], clock: Clock) -> Iterator[None]:
    """Call ``note`` with who asks and when, for every SIGINT, SIGTERM and SIGHUP while the body runs.

    Main thread only.
    ``note`` may interrupt itself: it must be re-entrant, like ``SimpleQueue.put``. A SIGHUP that is
    ignored stays ignored, which is what ``nohup`` is for; SIGINT never does, because shells ignore
    it in background jobs that scripts then interrupt on purpose.
    """

    def handle(number: int, _frame: FrameType | None) -> None:
        note(_SOURCES[signal.Signals(number)], clock())

    before = {}
    try:
        for number in _SOURCES:
            if number is signal.SIGHUP and signal.getsignal(number) is signal.SIG_IGN:
                continue
            before[number] = signal.signal(number, handle)
        yield
    finally:
        for number, handler in before.items():
            # None: the handler was not installed from Python and cannot be put back from it.
            signal.signal(number, signal.SIG_DFL if handler is None else handler)
