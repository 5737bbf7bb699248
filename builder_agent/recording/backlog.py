"""Events that wait for their append: bounded, and progress is what gives way."""

from collections import deque
from typing import NamedTuple

from build_events.clock import Instant
from build_events.events import (
    Event,
    HeartbeatRecorded,
    PhaseFinished,
    PhaseProgressed,
    PhaseStarted,
    ProcessObserved,
)
from builder_agent.spool.quota import Pressure


class Waiting(NamedTuple):
    """An event without a number: numbers are given on the way to the log, so that drops leave no gap."""

    event: Event
    at: Instant
    span_id: str | None


class Backlog:
    """A queue of at most ``limit`` events, but for those that say how the run ends.

    When it is full, or the log behind it is, first progress, heartbeats and samples go, then phases;
    what the fold needs of the run itself always stays. ``dropped`` counts what went.
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._queue: deque[Waiting] = deque()
        self.dropped = 0

    def __len__(self) -> int:
        return len(self._queue)

    def add(self, waiting: Waiting, pressure: Pressure = "none") -> None:
        """Add an event at the end, or drop it or lesser ones. ``pressure`` is the log's."""
        if pressure != "none" and (
            _is_lesser(waiting.event) or (pressure == "overfull" and _is_of_a_phase(waiting.event))
        ):
            self.dropped += 1
            return
        if len(self._queue) >= self._limit:
            kept = [held for held in self._queue if not _is_lesser(held.event)]
            self.dropped += len(self._queue) - len(kept)
            self._queue = deque(kept)
            if _is_lesser(waiting.event) or (len(kept) >= self._limit and _is_of_a_phase(waiting.event)):
                self.dropped += 1
                return
        self._queue.append(waiting)

    def take(self, count: int) -> list[Waiting]:
        """Remove and return up to ``count`` events from the front."""
        return [self._queue.popleft() for _ in range(min(count, len(self._queue)))]


def _is_lesser(event: Event) -> bool:
    if isinstance(event, ProcessObserved):
        return event.moment == "during"
    return isinstance(event, (PhaseProgressed, HeartbeatRecorded))


def _is_of_a_phase(event: Event) -> bool:
    return isinstance(event, (PhaseStarted, PhaseFinished))
