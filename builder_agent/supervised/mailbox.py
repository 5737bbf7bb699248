"""What wakes the supervisor: requests from signals and other threads, and the child's exit."""

from dataclasses import dataclass
from queue import Empty, SimpleQueue

from build_events.clock import NS_PER_S, Clock, Instant
from build_events.events import CancelSource
from builder_agent.supervised.process import Exit
from builder_agent.texts import NAME_BYTES, cut


@dataclass(frozen=True, slots=True)
class Asked:
    """Somebody wants the build to end."""

    source: CancelSource
    at: Instant
    reason: str | None = None


class Mailbox:
    """Taken from by the supervisor's thread only; put into from anywhere, signal handlers included."""

    def __init__(self, *, clock: Clock) -> None:
        self._clock = clock
        self._items: SimpleQueue[Asked | Exit] = SimpleQueue()

    def request_cancel(self, source: CancelSource, *, reason: str | None = None, at: Instant | None = None) -> None:
        """Ask the build to stop. Re-entrant; never waits."""
        self._items.put(Asked(source, at or self._clock(), None if reason is None else cut(reason, NAME_BYTES)))

    def report_exit(self, how: Exit) -> None:
        """Say that the child is gone."""
        self._items.put(how)

    def take(self, timeout_ns: int) -> list[Asked | Exit]:
        """Return all that lies there, after at most ``timeout_ns``; empty where nothing came."""
        items = []
        try:
            items.append(self._items.get(timeout=timeout_ns / NS_PER_S))
            # A flood of signals must not hold the supervisor here.
            items.extend(self._items.get_nowait() for _ in range(self._items.qsize()))
        except Empty:
            pass
        return items
