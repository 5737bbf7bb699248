"""Spans on their way to their endpoint, in the background: nothing waits for them but ``finish``, and that briefly.

Two daemon threads: one makes spans and keeps the books, the other waits for the network. So whatever the
endpoint does, the books are right and the end comes in time.
"""

import contextlib
import logging
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from queue import Empty, SimpleQueue
from typing import Final, Protocol

from build_events.clock import NS_PER_S
from build_events.telemetry.span import Span
from builder_agent import forks
from builder_agent.telemetry.outbox import Answer, ExportReport, Outbox
from builder_agent.telemetry.settings import TelemetrySettings

GRACE_S: Final = 0.25  # for the threads to see the bound

_log = logging.getLogger(__name__)

MakeSpans = Callable[[], Iterable[Span]]


class _Endpoint(Protocol):
    def send(self, spans: Sequence[Span]) -> Answer:
        """Send them, and wait."""
        ...

    def close(self) -> None:
        """Close the connection."""
        ...


@dataclass(frozen=True, slots=True)
class _End:
    deadline_ns: int  # CLOCK_MONOTONIC
    final: MakeSpans


class SpanExport:
    """Exports from the first ``put`` to ``finish``. A forked child of the host exports nothing."""

    def __init__(self, settings: TelemetrySettings) -> None:
        """Start nothing, and import nothing heavy."""
        self._settings = settings
        self._inbox: SimpleQueue[MakeSpans | Answer | _End] = SimpleQueue()
        self._batches: SimpleQueue[Sequence[Span] | None] = SimpleQueue()
        self._outbox = Outbox()
        self._end: _End | None = None
        self._report: ExportReport | None = None
        self._ended = threading.Event()
        self._dead = False  # finished, or this is a forked child
        self._begun = False
        self._refusal: str | None = None  # why there are no threads, or no longer
        self._untaken = 0  # spans, without threads

    def put(self, make: MakeSpans) -> None:
        """Have spans made on the exporter's thread, and sent. Never waits. One thread calls this and ``finish``."""
        if self._dead:
            return
        if not self._begun:
            self._begin()
        if self._refusal is None:
            self._inbox.put(make)
        else:
            self._untaken += len(_made(make))

    def finish(self, timeout_s: float, final: MakeSpans = tuple) -> ExportReport | None:
        """Make the last spans, and say how it went, after ``timeout_s`` at most, and ``GRACE_S`` at least if need be.

        ``None`` where nothing was ever put.
        """
        if self._dead or not self._begun:
            return None
        if self._refusal is None:
            patience_s = max(timeout_s - GRACE_S, 0)
            self._inbox.put(_End(time.monotonic_ns() + round(patience_s * NS_PER_S), final))
            self._ended.wait(patience_s + GRACE_S)
        self._dead = True
        if self._refusal is not None:
            return self._without_threads(final)
        late = "the exporter's thread did not end in time"
        return self._report or ExportReport(
            exported=self._outbox.exported, dropped=max(len(self._outbox), 1), reason=late
        )

    def after_fork_in_child(self) -> None:
        """Export nothing here: threads and connections are the parent's."""
        self._dead = True

    def _begin(self) -> None:
        """Start the threads; where the process may have no more of them, the run is recorded all the same."""
        self._begun = True
        forks.register(self)
        try:
            threading.Thread(target=self._send_batches, name="enginetrail-export", daemon=True).start()
            threading.Thread(target=self._run, name="enginetrail-telemetry", daemon=True).start()
        except RuntimeError as error:
            self._refusal = f"{type(error).__name__}: {error}"
            self._batches.put(None)

    def _run(self) -> None:
        try:
            while not self._is_over():
                self._take_in()
                batch = self._outbox.next_batch(time.monotonic_ns())
                if batch:
                    self._batches.put(batch)
        except Exception as error:  # noqa: BLE001 # said aloud; a build does not depend on it
            _log.exception("exporting spans failed; the build goes on without them")
            self._refusal = f"{type(error).__name__}: {error}"
        finally:
            self._report = self._outbox.close()
            self._batches.put(None)
            self._ended.set()

    def _without_threads(self, final: MakeSpans) -> ExportReport:
        """Count what nobody took, the end of the run included: a drop is never silent."""
        known = self._report or ExportReport(exported=0, dropped=0, reason=None)
        left = self._untaken + len(_made(final))
        with contextlib.suppress(Empty):
            while True:
                item = self._inbox.get_nowait()
                left += len(_made(item)) if not isinstance(item, Answer | _End) else 0
        return ExportReport(exported=known.exported, dropped=known.dropped + left, reason=self._refusal)

    def _is_over(self) -> bool:
        if self._end is None:
            return False
        return not len(self._outbox) or time.monotonic_ns() >= self._end.deadline_ns

    def _take_in(self) -> None:
        with contextlib.suppress(Empty):
            self._take(self._inbox.get(timeout=self._patience_s()))
            while True:
                self._take(self._inbox.get_nowait())

    def _take(self, item: MakeSpans | Answer | _End) -> None:
        if isinstance(item, Answer):
            self._outbox.answered(item, time.monotonic_ns())
        elif isinstance(item, _End):
            self._end = item
            self._outbox.hurry()
            self._outbox.add_final(_made(item.final))
        else:
            self._outbox.add(_made(item))

    def _patience_s(self) -> float | None:
        """How long to wait for something to do, ``None`` without a limit."""
        end_ns = None if self._end is None else self._end.deadline_ns
        moments = [moment for moment in (self._outbox.due_ns, end_ns) if moment is not None]
        return max(min(moments) - time.monotonic_ns(), 0) / NS_PER_S if moments else None

    def _send_batches(self) -> None:
        """On the second thread: import and connect while the run begins, then send what comes."""
        endpoint: _Endpoint | None = None
        refusal = ""
        try:
            endpoint = self._connect()
        except Exception as error:  # noqa: BLE001 # the reason of every drop
            refusal = f"{type(error).__name__}: {error}"
        while (batch := self._batches.get()) is not None:
            self._inbox.put(_sent(endpoint, batch) if endpoint else Answer(refused=refusal, again=False))
        if endpoint is not None:
            with contextlib.suppress(Exception):  # nobody depends on it any more
                endpoint.close()

    def _connect(self) -> _Endpoint:
        from builder_agent.telemetry.endpoint import Endpoint  # noqa: PLC0415 # heavy, and only where asked for

        return Endpoint(self._settings)


def _sent(endpoint: _Endpoint, batch: Sequence[Span]) -> Answer:
    try:
        return endpoint.send(batch)
    except Exception as error:  # noqa: BLE001 # the reason, should nothing come of it
        return Answer(refused=f"{type(error).__name__}: {error}")


def _made(make: MakeSpans) -> list[Span]:
    try:
        return list(make())
    except Exception:  # noqa: BLE001 # one record that makes no span must not end the others
        _log.exception("a span could not be made; the build goes on without it")
        return []
