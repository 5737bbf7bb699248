"""The one cancel state of a run: first request wins, from any thread and from signal handlers.

The request path is re-entrant: a plain attribute holds the flag, the winner is chosen by the one
atomic ``dict.setdefault``, and facts leave through ``post``, which must be as safe (``Delivery.post``
is: ``deque.append`` and ``SimpleQueue.put``). No Lock, Condition or ``Event.set`` stands in it: two
quick signals deadlock ``threading.Event.set`` (measured).
"""

import itertools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from build_events import ids
from build_events.clock import Clock, Instant
from build_events.events import (
    CancelDeferred,
    CancelObserved,
    CancelRequested,
    CancelSignalled,
    CancelSource,
    Event,
)
from build_events.events import CancelState as CancelLevel
from builder_agent.texts import NAME_BYTES, cut

# A burst of signals is one wish: after so many requests the rest are counted and told in one event.
LISTED_REQUESTS = 64

Post = Callable[[Event, Instant], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class CancelRequest:
    """Who asked, why, and when a process of this host learned of it."""

    request_id: str
    source: CancelSource
    reason: str | None
    deadline: bool  # the request is the run's own deadline
    at: Instant


class CancelState:
    """Shared by the monitor (reads), every source (requests) and no-cancel zones (defer).

    The attributes are plain and only ever change once, because the callbacks read them without a
    lock; times ``*_ns`` are monotonic.
    """

    def __init__(self, *, clock: Clock, post: Post) -> None:
        self._clock = clock
        self._post = post
        self._first: dict[str, CancelRequest] = {}
        self._signals: dict[str, object] = {}
        self._zones: list[str] = []
        self._count = itertools.count(1)
        self._requests = 0
        self.requested = False  # somebody asked; the flag may wait for the end of a zone
        self.flag = False  # step_complete returns its negation
        self.signalled_ns: int | None = None  # when the flag became visible
        self.observed_ns: int | None = None  # the first False, set by the monitor

    @property
    def winner(self) -> CancelRequest | None:
        """The first request, or ``None``: it alone names the source of the cancellation."""
        return self._first.get("winner")

    @property
    def level(self) -> CancelLevel:
        """``none``, ``requested`` or ``observed``."""
        if self.observed_ns is not None:
            return "observed"
        return "requested" if self.requested else "none"

    def request(
        self,
        source: CancelSource,
        *,
        reason: str | None = None,
        deadline: bool = False,
        request_id: str | None = None,
        at: Instant | None = None,
        announce: bool = True,
    ) -> CancelRequest:
        """Ask the run to stop and return the request that won. Never waits; repeat at will.

        ``announce=False``: another process has already written ``cancel.requested`` with this
        ``request_id`` (the supervisor), so only the signalling is recorded here. ``at`` is when that
        process learned of it, now if not given.
        """
        asked = CancelRequest(
            request_id=request_id or ids.random_id(),
            source=source,
            reason=None if reason is None else cut(reason, NAME_BYTES),
            deadline=deadline,
            at=at or self._clock(),
        )
        winner = self._first.setdefault("winner", asked)
        self.requested = True
        self._requests = next(self._count)
        if announce and self._requests <= LISTED_REQUESTS:
            event = CancelRequested(request_id=asked.request_id, source=source, reason=asked.reason, deadline=deadline)
            self._post(event, asked.at)
        # The winner is set before the zones are read, and the end of a zone reads them the other way
        # round: one of the two always sees the other, so no request is left waiting.
        zones = self._zones[-1:]
        if not zones:
            self._signal(winner)
        elif winner is asked:
            self._post(CancelDeferred(request_id=asked.request_id, zone=zones[0]), asked.at)
        return winner

    def observe(self) -> None:
        """Record that the run acted on the request outside the builder; the monitor does its own recording."""
        winner = self.winner
        if winner is not None and self.observed_ns is None:
            at = self._clock()
            self.observed_ns = at.monotonic_ns
            self._post(CancelObserved(request_id=winner.request_id), at)

    @contextmanager
    def zone(self, name: str) -> Iterator[None]:
        """Hold back the flag while the body runs; a first request made meanwhile is recorded as deferred."""
        self._zones.append(name)
        try:
            yield
        finally:
            self._zones.remove(name)
            winner = self.winner
            if winner is not None and not self._zones:
                self._signal(winner)

    @property
    def open_zone(self) -> str | None:
        """The innermost no-cancel zone that is open, ``None`` outside of all."""
        zones = self._zones[-1:]
        return zones[0] if zones else None

    @property
    def unlisted_requests(self) -> int:
        """How many requests came after the listed ones."""
        return max(self._requests - LISTED_REQUESTS, 0)

    def _signal(self, winner: CancelRequest) -> None:
        token = object()
        if self._signals.setdefault("token", token) is token:
            at = self._clock()
            self.signalled_ns = at.monotonic_ns
            self.flag = True
            self._post(CancelSignalled(request_id=winner.request_id), at)
