"""What the supervisor tells its caller, on a thread of its own.

A terminal that stands still (Ctrl-S, a full pipe) must not hold a deadline up, so the supervisor
itself never calls back.
"""

import threading
from collections.abc import Callable
from queue import SimpleQueue

from build_events.clock import NS_PER_S
from build_events.envelope import Recorded


class Feed:
    """Calls back with events, messages and printed lines, one after the other, in order.

    The first exception of a callback ends the calls; ``close`` raises it.
    """

    def __init__(
        self,
        on_event: Callable[[Recorded], None],
        on_message: Callable[[str], None],
        on_output: Callable[[str], None] = lambda _line: None,
    ) -> None:
        self._on_event = on_event
        self._on_message = on_message
        self._on_output = on_output
        self._calls: SimpleQueue[Callable[[], None] | None] = SimpleQueue()
        self._fault: BaseException | None = None
        # A daemon: a terminal that stands still must not hold the command's exit up either.
        self._thread = threading.Thread(target=self._run, name="supervisor-feed", daemon=True)
        self._thread.start()

    def event(self, record: Recorded) -> None:
        """Hand over an event; never waits."""
        self._calls.put(lambda: self._on_event(record))

    def message(self, text: str) -> None:
        """Hand over a sentence for a person; never waits."""
        self._calls.put(lambda: self._on_message(text))

    def output(self, line: str) -> None:
        """Hand over a line that the building process printed; never waits."""
        self._calls.put(lambda: self._on_output(line))

    def stop(self) -> None:
        """End the calls after those that wait."""
        self._calls.put(None)

    def close(self, timeout_ns: int) -> bool:
        """Say whether all was told within ``timeout_ns``; the rest is told later, if ever.

        Raises:
            BaseException: whatever a callback raised.
        """
        self.stop()
        self._thread.join(timeout_ns / NS_PER_S)
        if self._fault is not None:
            raise self._fault
        return not self._thread.is_alive()

    def _run(self) -> None:
        while (call := self._calls.get()) is not None:
            try:
                call()
            except BaseException as error:  # noqa: BLE001 # raised by close, when the build is over and recorded
                self._fault = error
                return
