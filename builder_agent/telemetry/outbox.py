"""Spans that wait for their endpoint: bounded, and every one that gives way is counted. No I/O, no clock."""

from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from build_events.clock import NS_PER_MS, NS_PER_S
from build_events.telemetry import names
from build_events.telemetry.span import Span

LIMIT: Final = 8192  # spans
BATCH: Final = 512  # spans of one request
RETRY_NS: Final = NS_PER_S  # between two attempts while the run goes on
LAST_RETRY_NS: Final = 200 * NS_PER_MS  # the same, once the run has ended


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What came of one request."""

    refused: str | None = None  # why; null = the endpoint acknowledged it
    again: bool = True  # the same spans may be accepted later
    rejected: int = 0  # spans of an acknowledged request that the endpoint did not take


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportReport:
    """What reached the endpoint until its time was up."""

    exported: int  # acknowledged
    dropped: int
    reason: str | None  # why something was dropped


class Outbox:
    """A queue with one batch in flight. One thread owns it.

    A batch that was refused is sent again as it was: what an endpoint took without our hearing of it,
    it gets once more byte for byte, which backends store or show once.
    """

    def __init__(self) -> None:
        self._waiting: deque[Span] = deque()
        self._batch: Sequence[Span] = ()
        self._in_flight = False
        self._due_ns = 0
        self._exported = self._dropped = 0
        self._reason: str | None = None
        self.ending = False  # the run is over: attempts come closer together

    def __len__(self) -> int:
        return len(self._waiting) + len(self._batch)

    @property
    def exported(self) -> int:
        """How many spans the endpoint has acknowledged."""
        return self._exported

    def add(self, spans: Iterable[Span]) -> None:
        """Take spans of a run that goes on. When there is no room, slices give way first, the oldest first."""
        for span in spans:
            if len(self) >= LIMIT and not self._make_room(span):
                self._drop(1, f"more than {LIMIT} spans waited")
            else:
                self._waiting.append(span)

    def add_final(self, spans: Iterable[Span]) -> None:
        """Take the spans that end a run: without a limit, for they are all here already."""
        self._waiting.extend(spans)

    @property
    def due_ns(self) -> int | None:
        """When the next attempt is due, on the clock of ``answered``; ``None`` while there is none to make."""
        return self._due_ns if len(self) and not self._in_flight else None

    def next_batch(self, now_ns: int) -> Sequence[Span]:
        """Return what is to be sent now, nothing if it is not time. It is in flight until ``answered``."""
        if self.due_ns is None or now_ns < self.due_ns:
            return ()
        if not self._batch:
            self._batch = [self._waiting.popleft() for _ in range(min(BATCH, len(self._waiting)))]
        self._in_flight = True
        return self._batch

    def answered(self, answer: Answer, now_ns: int) -> None:
        """Take what came of the batch in flight."""
        self._in_flight = False
        if answer.refused is not None and answer.again:
            self._reason = answer.refused
            self._due_ns = now_ns + (LAST_RETRY_NS if self.ending else RETRY_NS)
            return
        count, self._batch = len(self._batch), ()
        if answer.refused is not None:
            self._drop(count, answer.refused)
            return
        rejected = min(answer.rejected, count)
        self._exported += count - rejected
        if rejected:
            self._drop(rejected, "the endpoint rejected them")

    def hurry(self) -> None:
        """The run is over: try at once what waits for another attempt."""
        self.ending = True
        self._due_ns = 0

    def close(self) -> ExportReport:
        """Drop what is left, and return how it went."""
        if len(self):
            why = self._reason or "no answer"
            self._drop(len(self), f"{why}, when the time was up")
            self._waiting.clear()
            self._batch = ()
        return ExportReport(
            exported=self._exported, dropped=self._dropped, reason=self._reason if self._dropped else None
        )

    def _make_room(self, span: Span) -> bool:
        if _is_slice(span):
            return False
        index = next((index for index, held in enumerate(self._waiting) if _is_slice(held)), None)
        if index is None:
            return False
        del self._waiting[index]
        self._drop(1, f"more than {LIMIT} spans waited")
        return True

    def _drop(self, count: int, reason: str) -> None:
        self._dropped += count
        self._reason = reason


def _is_slice(span: Span) -> bool:
    return span.attributes.get(names.SPAN_KIND) == "slice"
