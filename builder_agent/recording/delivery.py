"""From the build to the log: one thread per run that nothing in the build ever waits for.

The monitor appends tuples to ``inbox`` and everybody else posts events to it; the thread turns them
into numbered events and appends them in batches. Promises:

* An event waits at most ``batch_interval_ns`` for its append while the log works.
* A log that fails is tried again while the build goes on; meanwhile events wait in bounded memory,
  progress is dropped first, and ``stream.closed`` declares every drop.
* The end of a run takes at most ``close_timeout_ns``; then the agent says what it could not write.
* A forked child of the host writes nothing.

The thread is a daemon: a log that hangs must not hold the host's exit.
"""

import contextlib
import logging
import threading
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from queue import Empty, SimpleQueue

from build_events import ids
from build_events.clock import NS_PER_S, Clock, Instant
from build_events.events import CancelState, ErrorRecorded, Event, HeartbeatRecorded, ProcessObserved
from build_events.log import EventWriter
from build_events.stream import EventStream
from builder_agent import forks
from builder_agent.recording.monitor import CallbackFault
from builder_agent.recording.outlet import Outlet
from builder_agent.recording.phases import PhaseFact, PhaseTracker, Raw
from builder_agent.settings import DeliverySettings
from builder_agent.spool.quota import Pressure
from builder_agent.texts import cut

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class CloseReport:
    """How the stream's end went."""

    written: bool  # stream.closed is durable
    waiting: int  # events that were not written in time
    dropped: int  # events and steps dropped over the whole run, as stream.closed declares


@dataclass(frozen=True, slots=True)
class _Posted:
    event: Event
    at: Instant


@dataclass(frozen=True, slots=True)
class _Barrier:
    """Answered with True once everything posted before it is durable, with False when the log fails."""

    reply: SimpleQueue[bool]
    deadline_ns: int | None = None  # set on the last one: it closes the stream, and this is its bound


Item = Raw | CallbackFault | _Posted | _Barrier


class Delivery:
    """The run's main stream on its way to the log.

    ``inbox`` takes raw callbacks (append only). ``post`` takes events from any thread and from
    signal handlers.
    """

    def __init__(
        self,
        stream: EventStream,
        writer: EventWriter,
        *,
        clock: Clock,
        tracker: PhaseTracker,
        sample: Callable[[], ProcessObserved],
        cancel_level: Callable[[], CancelState],
        lost_callbacks: Callable[[], int],
        settings: DeliverySettings,
        on_closed: Callable[[], None] = lambda: None,
        pressure: Callable[[], Pressure] = lambda: "none",
    ) -> None:
        """Do nothing yet.

        ``sample`` observes the process while the build runs; ``lost_callbacks`` counts steps that the
        monitor could not hand over; ``on_closed`` runs on the thread when it ends; ``pressure`` says
        how full the log is.
        """
        self.inbox: deque[Item] = deque()
        self._wake: SimpleQueue[None] = SimpleQueue()
        self._clock, self._tracker, self._settings = clock, tracker, settings
        self._sample, self._cancel_level, self._lost_callbacks = sample, cancel_level, lost_callbacks
        self._on_closed = on_closed
        self._outlet = Outlet(stream, writer, settings, pressure)
        self._run_id = stream.header.run_id or ""
        self._root_span = ids.span_id(self._run_id, ids.ROOT_ORDINAL)
        self._barriers: list[_Barrier] = []
        self._closing_ns: int | None = None  # the bound of the stream's end, once it is asked for
        self._untranslated = 0
        self._untold: set[str] = set()  # kinds of regular events that failed, each recorded once
        self._dead = False  # nothing is taken any more: closed, given up, or this is a forked child
        self._heartbeat_at_ns = self._sample_at_ns = 0
        self._thread = threading.Thread(target=self._run, name="enginetrail-delivery", daemon=True)

    def start(self, first: Event, at: Instant) -> None:
        """Start the thread; ``first`` opens the stream, before all that was posted already."""
        forks.register(self)
        self.inbox.appendleft(_Posted(first, at))
        self._heartbeat_at_ns = at.monotonic_ns + self._settings.heartbeat_interval_ns
        self._sample_at_ns = at.monotonic_ns + self._settings.process_interval_ns
        self._thread.start()

    def post(self, event: Event, at: Instant | None = None) -> None:
        """Hand over an event that happened at ``at``, now if not given. Re-entrant; never waits."""
        if not self._dead:
            self.inbox.append(_Posted(event, at or self._clock()))

    def flush(self, timeout_s: float) -> bool:
        """Return True once everything posted before is durable, False after ``timeout_s`` or when the log fails."""
        return self._await(_Barrier(SimpleQueue()), timeout_s)

    def close(self, *final: Event) -> CloseReport:
        """Write the rest, ``final`` and ``stream.closed``, and end the thread: all within the bound."""
        for event in final:
            self.post(event)
        bound_ns = self._settings.close_timeout_ns
        barrier = _Barrier(SimpleQueue(), deadline_ns=self._clock().monotonic_ns + bound_ns)
        written = self._await(barrier, bound_ns / NS_PER_S)
        self._dead = True
        waiting = 0 if written else self._outlet.waiting + len(self.inbox)
        if waiting:
            _log.warning("run %s: %d events were not written within %.1f s", self._run_id, waiting, bound_ns / NS_PER_S)
        return CloseReport(written=written, waiting=waiting, dropped=self._outlet.dropped + self._lost())

    def after_fork_in_child(self) -> None:
        """Write nothing here: the stream is the parent's."""
        self._dead = True

    def _await(self, barrier: _Barrier, timeout_s: float) -> bool:
        if self._dead:
            return False
        self.inbox.append(barrier)
        self._wake.put(None)
        try:
            return barrier.reply.get(timeout=timeout_s)
        except Empty:
            return False

    def _run(self) -> None:
        try:
            while not self._dead:
                self._sleep()
                self._take_in()
                if self._closing_ns is None:
                    self._tell_regularly()
                self._write()
        except Exception:  # noqa: BLE001 # said aloud; the build does not depend on it
            _log.exception("run %s: event delivery failed; the build goes on without it", self._run_id)
        finally:
            self._dead = True
            self._answer(stored=False)
            self._on_closed()

    def _sleep(self) -> None:
        """Wait for a barrier, or until what lies in the inbox is due: posts and callbacks wake nobody."""
        with contextlib.suppress(Empty):
            self._wake.get(timeout=self._settings.batch_interval_ns / NS_PER_S)

    def _take_in(self) -> None:
        now = self._clock()
        for _ in range(len(self.inbox)):
            item = self.inbox.popleft()
            try:
                self._translate(item, now)
            except Exception:  # noqa: BLE001 # one callback that makes no event must not end the stream
                self._untranslated += 1
                _log.exception("run %s: dropped %r, which makes no event", self._run_id, item)
            if self._closing_ns is not None:
                return

    def _translate(self, item: Item, now: Instant) -> None:
        if isinstance(item, tuple):
            for fact in self._tracker.feed(item):
                self._add_fact(fact, now)
        elif isinstance(item, _Posted):
            if isinstance(item.event, ErrorRecorded) and item.event.component == "builder":
                self._tracker.note_error()
            self._outlet.add(item.event, item.at, self._root_span)
        elif isinstance(item, CallbackFault):
            self._add_fact(PhaseFact(item.event, item.at_ns, ids.ROOT_ORDINAL), now)
        else:
            self._barriers.append(item)
            self._closing_ns = item.deadline_ns

    def _tell_regularly(self) -> None:
        now = self._clock()
        self._attempt("progress", self._tell_overdue, now)
        if now.monotonic_ns >= self._heartbeat_at_ns:
            self._heartbeat_at_ns = now.monotonic_ns + self._settings.heartbeat_interval_ns
            self._attempt("heartbeat", self._tell_heartbeat, now)
        if now.monotonic_ns >= self._sample_at_ns:
            self._sample_at_ns = now.monotonic_ns + self._settings.process_interval_ns
            self._attempt("process", self._tell_sample, now)

    def _attempt(self, what: str, tell: Callable[[Instant], None], now: Instant) -> None:
        """Tell, and record a failure once: what cannot be observed must not end the stream."""
        try:
            tell(now)
        except Exception as error:  # noqa: BLE001 # recorded and said; the stream and the build go on
            if what in self._untold:
                return
            self._untold.add(what)
            message = f"{what}: {type(error).__name__}: {error}"
            _log.warning("run %s: telemetry is incomplete, the build goes on: %s", self._run_id, message)
            fault = ErrorRecorded(component="agent", code="telemetry", message=cut(message))
            self._outlet.add(fault, now, self._root_span)

    def _tell_overdue(self, now: Instant) -> None:
        for fact in self._tracker.overdue(now.monotonic_ns, self._cancel_level()):
            self._add_fact(fact, now)

    def _tell_heartbeat(self, now: Instant) -> None:
        last_ns = self._tracker.last_callback_ns
        beat = HeartbeatRecorded(
            open_phase_id=self._tracker.innermost_id,
            since_callback_ns=None if last_ns is None else max(now.monotonic_ns - last_ns, 0),
            cancel_state=self._cancel_level(),
        )
        self._outlet.add(beat, now, self._root_span)

    def _tell_sample(self, now: Instant) -> None:
        self._outlet.add(self._sample(), now, self._root_span)

    def _add_fact(self, fact: PhaseFact, now: Instant) -> None:
        # The callbacks read one clock only, for their budget's sake.
        at = Instant(now.wall_ns - now.monotonic_ns + fact.at_ns, fact.at_ns)
        self._outlet.add(fact.event, at, ids.span_id(self._run_id, fact.ordinal))

    def _write(self) -> None:
        now = self._clock()
        if self._closing_ns is None:
            stored = self._outlet.pump(now.monotonic_ns)
        else:
            stored = self._outlet.close(now, self._root_span, lost_callbacks=self._lost())
            if not stored and now.monotonic_ns < self._closing_ns:
                return
            self._dead = True
        self._answer(stored=stored)

    def _answer(self, *, stored: bool) -> None:
        for barrier in self._barriers:
            barrier.reply.put(stored)
        self._barriers.clear()

    def _lost(self) -> int:
        return self._lost_callbacks() + self._untranslated
