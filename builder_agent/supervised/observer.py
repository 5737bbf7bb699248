"""The supervisor's own stream about the run: what it asked for, saw and did."""

from collections.abc import Callable, Sequence
from pathlib import Path

from build_events import clock as clocks
from build_events import ids
from build_events.clock import Clock, Instant
from build_events.envelope import Recorded, StreamHeader
from build_events.errors import EngineTrailError
from build_events.events import Event, StreamClosed
from build_events.fold import advance
from build_events.local_log import LocalLog
from build_events.run_rows import run_state
from build_events.state import RunState, StreamState
from builder_agent.supervised.control import BuildSpec

SOURCE = "enginetrail/supervisor"


class Observer:
    """An observer stream that outlives a log that fails: what could not be stored is tried again.

    One thread owns it. Nothing is written before the first ``record``.
    """

    def __init__(
        self,
        spec: BuildSpec,
        *,
        clock: Clock,
        on_failure: Callable[[str], None],
        on_durable: Callable[[Sequence[Recorded]], None],
    ) -> None:
        """``on_failure`` hears why a log fails; ``on_durable`` gets what it took."""
        self._log = LocalLog(Path(spec.log_folder))
        self._clock = clock
        self._on_failure, self._on_durable = on_failure, on_durable
        self._waiting: list[Recorded] = []
        self._records: list[Recorded] = []
        self._root_span = ids.span_id(spec.run_id, ids.ROOT_ORDINAL)
        self.header = StreamHeader(
            stream_id=ids.random_id(),
            role="observer",
            run_id=spec.run_id,
            trace_id=spec.trace_id,
            source=SOURCE,
            boot_id=clocks.boot_id(),
        )

    def record(self, event: Event, at: Instant | None = None) -> Recorded:
        """Number an event for the next ``store``. ``at`` is when it happened, now if not given."""
        moment = at or self._clock()
        record = Recorded(
            stream=self.header,
            sequence=len(self._records),
            wall_ns=moment.wall_ns,
            monotonic_ns=moment.monotonic_ns,
            span_id=self._root_span,
            event=event,
        )
        self._records.append(record)
        self._waiting.append(record)
        return record

    def store(self) -> bool:
        """Return whether everything recorded so far is durable now."""
        try:
            self._log.append(self._waiting)
        except (EngineTrailError, OSError) as error:
            self._on_failure(f"event log: {error}")
            return False
        self._on_durable(tuple(self._waiting))
        self._waiting.clear()
        return True

    def close(self) -> bool:
        """Store the rest with the stream's declared end; say whether it is durable.

        Where it is not, the next start finds the stream.
        """
        self.record(StreamClosed(events=len(self._records) + 1, dropped=0))
        stored = self.store()
        self._log.close()
        return stored

    def run_state(self, main: StreamState) -> RunState:
        """Return the run as its main stream and this one tell it, stored or not."""
        own = advance(StreamState(header=self.header), self._records)
        return run_state(main.header.run_id or "", [main, own], dead_letters=0)
