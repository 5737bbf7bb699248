"""From raw callbacks to phase events: pure, no clock, no I/O.

TensorRT's contract is looser than it reads, so everything measured is allowed: names that repeat,
steps of a parent while its child is open, a child that finishes after its parent's last step, a
parent that finishes first, declared steps that never come, no callback at all.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Final, NamedTuple, TypedDict

from build_events.events import (
    CancelObserved,
    CancelState,
    ErrorRecorded,
    Event,
    PhaseFinished,
    PhaseProgressed,
    PhaseStarted,
)
from builder_agent.texts import NAME_BYTES, cut

START: Final = "S"
STEP: Final = "U"
FINISH: Final = "F"

# kind, monotonic ns, thread, requested, observed, phase name, then by kind: steps declared and the
# parent's name; the step and, for the first False, the id of the request that it obeys; 0 and None.
# A plain tuple: it is made inside the callback, whose budget is 2 microseconds.
Raw = tuple[str, int, int, bool, bool, str, int, str | None]
_LISTED_UNKNOWN = 100  # names of phases that were never open, so that a stream of them stays short


class PhaseFact(NamedTuple):
    """An event, when it happened, and the ordinal of the phase it belongs to (0 = the run)."""

    event: Event
    at_ns: int  # monotonic
    ordinal: int


class _Moment(NamedTuple):
    at_ns: int
    thread_id: int
    level: CancelState


@dataclass(slots=True)
class _Open:
    """One phase instance that has not finished."""

    phase_id: int
    parent_id: int | None
    name: str
    steps_total: int
    thread_id: int
    started_ns: int
    steps_seen: int = 0
    longest_gap_ns: int = 0
    pending: int = 0  # steps that no event stands for yet
    last_step_ns: int = 0
    told_ns: int | None = None  # when the last progress event was made

    def count(self, step: int, at_ns: int) -> None:
        self.steps_seen = max(self.steps_seen, step + 1)
        self.pending += 1
        self.last_step_ns = at_ns


@dataclass(slots=True)
class PhaseTracker:
    """The phases of one run. One thread feeds it; ids are ordinals from 1."""

    build_id: str
    progress_interval_ns: int
    last_callback_ns: int | None = None
    _count: int = 0
    _open: list[_Open] = field(default_factory=list)  # in the order they started
    _unwinding: bool = False  # an error was recorded and nothing but finishes came since
    _observed: bool = False
    _unknown: set[str] = field(default_factory=set)

    def feed(self, raw: Raw) -> Iterable[PhaseFact]:
        """Return the events that a callback leads to; any callback is allowed at any time."""
        kind, at_ns, thread_id, requested, observed, name, number, extra = raw
        last, self.last_callback_ns = self.last_callback_ns, at_ns
        if last is not None and self._open:
            innermost = self._open[-1]
            innermost.longest_gap_ns = max(innermost.longest_gap_ns, at_ns - last)
            # Nearly all callbacks end here: a step of the innermost phase, which was told of not long ago.
            if (
                kind == STEP
                and extra is None
                and innermost.told_ns is not None
                and at_ns - innermost.told_ns < self.progress_interval_ns
                and innermost.name == name
                and innermost.thread_id == thread_id
            ):
                self._unwinding = False
                innermost.count(number, at_ns)
                return ()
        now = _Moment(at_ns, thread_id, cancel_level(requested=requested, observed=observed))
        if kind == START:
            return (self._start(name, extra, number, now),)
        if kind == STEP:
            return self._step(name, number, extra, now)
        return self._finish(name, now)

    def note_error(self) -> None:
        """Record that the builder reported an error: what finishes now without further work is unwinding."""
        self._unwinding = True

    def overdue(self, now_ns: int, level: CancelState) -> Iterator[PhaseFact]:
        """Yield progress that waits longer than the interval, so that a silent phase shows its last step."""
        for phase in self._open:
            if phase.pending and phase.told_ns is not None and now_ns - phase.told_ns >= self.progress_interval_ns:
                yield self._progress(phase, level)

    @property
    def innermost_id(self) -> int | None:
        """The phase that started last and is still open."""
        return self._open[-1].phase_id if self._open else None

    @property
    def phases_started(self) -> int:
        """How many phases the builder started so far."""
        return self._count

    def _start(self, name: str, parent: str | None, total: int, now: _Moment) -> PhaseFact:
        self._unwinding = False
        self._count += 1
        above = self._find(parent, now.thread_id) if parent is not None else None
        phase = _Open(self._count, above.phase_id if above else None, name, max(total, 0), now.thread_id, now.at_ns)
        self._open.append(phase)
        return PhaseFact(PhaseStarted(**_common(phase, self.build_id, now.level)), now.at_ns, phase.phase_id)

    def _step(self, name: str, step: int, request_id: str | None, now: _Moment) -> Iterator[PhaseFact]:
        self._unwinding = False
        phase = self._find(name, now.thread_id)
        if phase is None:
            yield from self._unknown_phase("step_complete", name, now.at_ns)
        else:
            phase.count(step, now.at_ns)
            if phase.told_ns is None or now.at_ns - phase.told_ns >= self.progress_interval_ns:
                yield self._progress(phase, now.level)
        if request_id is not None and not self._observed:
            self._observed = True
            number = phase.phase_id if phase else None
            yield PhaseFact(CancelObserved(request_id=request_id, phase_id=number), now.at_ns, number or 0)

    def _finish(self, name: str, now: _Moment) -> Iterator[PhaseFact]:
        phase = self._find(name, now.thread_id)
        if phase is None:
            yield from self._unknown_phase("phase_finish", name, now.at_ns)
            return
        if phase.pending:
            yield self._progress(phase, now.level)
        self._open.remove(phase)
        for above in self._open:
            if above.phase_id == phase.parent_id:
                above.longest_gap_ns = max(above.longest_gap_ns, phase.longest_gap_ns)
        event = PhaseFinished(
            **_common(phase, self.build_id, now.level),
            duration_ns=max(now.at_ns - phase.started_ns, 0),
            longest_gap_ns=phase.longest_gap_ns,
            after_error=self._unwinding,
        )
        yield PhaseFact(event, now.at_ns, phase.phase_id)

    def _progress(self, phase: _Open, level: CancelState) -> PhaseFact:
        event = PhaseProgressed(
            **_common(phase, self.build_id, level), callbacks=phase.pending, longest_gap_ns=phase.longest_gap_ns
        )
        phase.pending = 0
        phase.told_ns = phase.last_step_ns
        return PhaseFact(event, phase.last_step_ns, phase.phase_id)

    def _find(self, name: str, thread_id: int) -> _Open | None:
        """Return the newest open phase of this name, of this thread if there is one."""
        same_name = [phase for phase in self._open if phase.name == name]
        same_thread = [phase for phase in same_name if phase.thread_id == thread_id]
        candidates = same_thread or same_name
        return candidates[-1] if candidates else None

    def _unknown_phase(self, callback: str, name: str, at_ns: int) -> Iterator[PhaseFact]:
        if name not in self._unknown and len(self._unknown) < _LISTED_UNKNOWN:
            self._unknown.add(name)
            message = f"{callback} named {cut(name, NAME_BYTES)!r}, which is not open"
            yield PhaseFact(ErrorRecorded(component="monitor", code="unknown_phase", message=message), at_ns, 0)


def cancel_level(*, requested: bool, observed: bool) -> CancelState:
    """Return the cancel state that an event carries."""
    if observed:
        return "observed"
    return "requested" if requested else "none"


class _Common(TypedDict):
    phase_id: int
    parent_id: int | None
    name: str
    steps_total: int
    steps_seen: int
    thread_id: int
    build_id: str
    cancel_state: CancelState


def _common(phase: _Open, build_id: str, level: CancelState) -> _Common:
    return {
        "phase_id": phase.phase_id,
        "parent_id": phase.parent_id,
        "name": cut(phase.name, NAME_BYTES),
        "steps_total": phase.steps_total,
        "steps_seen": phase.steps_seen,
        "thread_id": phase.thread_id,
        "build_id": build_id,
        "cancel_state": level,
    }
