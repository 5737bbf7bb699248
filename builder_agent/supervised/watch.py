"""The supervisor while the child lives: follows its stream, passes requests on, climbs the ladder."""

from collections.abc import Callable, Sequence

from build_events import ids
from build_events.clock import NS_PER_S, Clock, Instant
from build_events.envelope import Recorded
from build_events.events import CancelRequested, CancelSource, Event
from builder_agent.supervised.control import BuildSpec, CancelMessage
from builder_agent.supervised.feed import Feed
from builder_agent.supervised.ladder import Graces, History, Ladder, Request, ladder
from builder_agent.supervised.mailbox import Asked, Mailbox
from builder_agent.supervised.main_stream import MainStream
from builder_agent.supervised.observer import Observer
from builder_agent.supervised.process import ChildProcess, Exit


class Watch:
    """From the child's start to its exit. One thread owns it."""

    def __init__(
        self,
        spec: BuildSpec,
        *,
        main: MainStream,
        observer: Observer,
        feed: Feed,
        mailbox: Mailbox,
        graces: Graces,
        clock: Clock,
        on_durable: Callable[[Sequence[Recorded]], None],
    ) -> None:
        """``on_durable`` gets the records of the child's stream, and must not wait."""
        self._on_durable = on_durable
        self._main, self._observer, self._feed, self._mailbox = main, observer, feed, mailbox
        self._graces, self._clock = graces, clock
        self._history = History(command_started_ns=spec.command_started_monotonic_ns, deadline_ns=spec.deadline_ns)
        self._asked: dict[CancelSource, Asked] = {}  # the first of each source
        self._sent: dict[tuple[CancelSource, bool], CancelMessage] = {}  # by source and deadline, in this order
        self._unrecorded: list[CancelMessage] = []  # sent before the run had started
        self._said: set[str] = set()

    @property
    def first_request(self) -> CancelMessage | None:
        """The first request that was passed on, ``None`` without any."""
        return next(iter(self._sent.values()), None)

    def until_exit(self, child: ChildProcess, poll_ns: int) -> Exit:
        """Follow the child and return how it ended, its stream read to the end."""
        how: Exit | None = None
        while how is None:
            how = self._take_mail(poll_ns)
            now = self._clock()
            if how is None:
                self._schedule(child)  # before all that a slow disk holds up
            self._read()
            if how is None:
                self._climb(child, now)
        # What was asked before the exit counts, however late it was found. A deadline was only met, unless we killed.
        for request in self._steps().due(how.at.monotonic_ns):
            if not request.deadline or how.signals_sent:
                self._pass_on(request, None, how.at)
        return how

    def record(self, event: Event, at: Instant | None = None) -> Recorded:
        """Record an event in the observer stream, and show it; it is stored by the observer's next ``store``."""
        record = self._observer.record(event, at)
        self._feed.event(record)
        return record

    def _take_mail(self, timeout_ns: int) -> Exit | None:
        how = None
        for item in self._mailbox.take(timeout_ns):
            if isinstance(item, Exit):
                how = item
            else:
                self._asked.setdefault(item.source, item)
                self._history = self._history.after_request(item.source, item.at.monotonic_ns, self._graces)
        return how

    def _read(self) -> None:
        try:
            records = self._main.poll()
        except OSError as error:
            # The build does not depend on being seen, and the ladder not on seeing it.
            self._say_once(f"event log: {error.filename}: {error.strerror}. The build goes on unseen.")
            return
        self._on_durable(records)
        for record in records:
            self._feed.event(record)
        if self._main.started and self._unrecorded:
            for message in self._unrecorded:
                self._record_request(message)
            self._unrecorded.clear()
            self._observer.store()

    def _climb(self, child: ChildProcess, now: Instant) -> None:
        for request in self._steps().due(now.monotonic_ns):
            self._pass_on(request, child, now)
        self._schedule(child)
        if self._history.insisted_ns is not None:
            self._say_once(f"ending the build: SIGTERM now, SIGKILL in {_seconds(self._graces.kill_ns)}")

    def _schedule(self, child: ChildProcess) -> None:
        """Set when the child is signalled: SIGTERM never before the flag was sent, SIGKILL whatever else is late."""
        steps = self._steps()
        child.schedule(terminate_ns=steps.terminate_ns if self._sent else None, kill_ns=steps.kill_ns)

    def _steps(self) -> Ladder:
        return ladder(self._history, self._graces)

    def _pass_on(self, request: Request, child: ChildProcess | None, now: Instant) -> None:
        """Record a request durably, then send it down the pipe; once for each source. A deadline's time is ``now``."""
        key = (request.source, request.deadline)
        if key in self._sent:
            return
        asked = None if request.deadline else self._asked[request.source]
        at = asked.at if asked else now
        message = CancelMessage(
            request_id=ids.random_id(),
            source=request.source,
            reason=self._reason(request, asked),
            deadline=request.deadline,
            wall_ns=at.wall_ns,
            monotonic_ns=at.monotonic_ns,
        )
        self._sent[key] = message
        if self._main.started:
            self._record_request(message)
            self._observer.store()
        else:
            self._unrecorded.append(message)
        if child is not None:
            child.send(message)
            self._feed.message(self._what_happens_now(request))

    def _record_request(self, message: CancelMessage) -> None:
        event = CancelRequested(
            request_id=message.request_id, source=message.source, reason=message.reason, deadline=message.deadline
        )
        self.record(event, message.at)

    def _reason(self, request: Request, asked: Asked | None) -> str | None:
        if request.deadline:
            return f"deadline of {_seconds(self._history.deadline_ns or 0)} after the start of the command"
        return asked.reason if asked else None

    def _what_happens_now(self, request: Request) -> str:
        if not self._main.started:
            return "stopping before the build starts"
        phase = self._main.open_phase
        waiting = f"waiting for the builder's next checkpoint, {f'phase {phase}' if phase else 'no phase open'}"
        if request.source == "ctrl_c":
            return f"{waiting}; Ctrl-C again ends it now"
        kill_ns = self._steps().kill_ns
        if kill_ns is None:
            return waiting
        left = max(kill_ns - self._clock().monotonic_ns, 0)
        return f"{waiting}; SIGKILL in {_seconds(left)}"

    def _say_once(self, text: str) -> None:
        if text not in self._said:
            self._said.add(text)
            self._feed.message(text)


def _seconds(duration_ns: int) -> str:
    return f"{duration_ns / NS_PER_S:.3g} s"
