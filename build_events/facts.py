"""The kept facts of one run, from all its streams, in an order that does not depend on arrival."""

from collections.abc import Callable, Iterable, Sequence
from typing import Generic, NamedTuple, TypeVar

from build_events.envelope import Recorded
from build_events.events import Event
from build_events.state import StreamState

E_co = TypeVar("E_co", bound=Event, covariant=True)
E = TypeVar("E", bound=Event)


class Fact(NamedTuple, Generic[E_co]):
    """An event with the record that carries it."""

    record: Recorded
    event: E_co


class Facts:
    """Facts by type: those of the main stream first, then by stream id; within a stream by sequence."""

    def __init__(self, streams: Sequence[StreamState]) -> None:
        self.streams = sorted(streams, key=lambda state: (state.header.role != "main", state.header.stream_id))
        self.mains = [state for state in self.streams if state.header.role == "main"]

    def all(self, cls: type[E]) -> list[Fact[E]]:
        """Return every fact of a type."""
        return [
            Fact(record, record.event)
            for state in self.streams
            for record in state.kept
            if isinstance(record.event, cls)
        ]

    def first(self, cls: type[E]) -> Fact[E] | None:
        """Return the first fact of a type, or ``None``."""
        return next(iter(self.all(cls)), None)

    def own(self, cls: type[E]) -> Fact[E] | None:
        """Return the first fact of a type in the main stream: only the build's process may say it."""
        fact = self.first(cls)
        return fact if fact is not None and fact.record.stream.role == "main" else None


def earliest(facts: Iterable[Fact[E]]) -> Fact[E] | None:
    """Return the fact that happened first, ``None`` of none."""
    candidates = list({fact.record.stream.stream_id: fact for fact in sorted(facts, key=_place, reverse=True)}.values())
    return min(candidates, key=_clock_of(candidates), default=None)


def latest(facts: Iterable[Fact[E]]) -> Fact[E] | None:
    """Return the fact that happened last, ``None`` of none."""
    candidates = list({fact.record.stream.stream_id: fact for fact in sorted(facts, key=_place)}.values())
    return max(candidates, key=_clock_of(candidates), default=None)


def _place(fact: Fact[E]) -> tuple[str, int]:
    return fact.record.stream.stream_id, fact.record.sequence


def _clock_of(facts: Sequence[Fact[E]]) -> Callable[[Fact[E]], tuple[int, str, int]]:
    """Return what orders facts of different streams: sequences order only within one of them.

    The monotonic clock where all are of one boot, which no step of the wall clock can turn round.
    """
    one_boot = len({fact.record.stream.boot_id for fact in facts}) == 1
    return lambda fact: (fact.record.monotonic_ns if one_boot else fact.record.wall_ns, *_place(fact))


def elapsed_ns(start: Recorded, end: Recorded) -> int | None:
    """Return monotonic nanoseconds from one record to another, negative if it came before.

    ``None`` where the two were not recorded within one boot of one host.
    """
    if start.stream.boot_id != end.stream.boot_id:
        return None
    return end.monotonic_ns - start.monotonic_ns
