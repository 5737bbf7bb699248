"""The main stream as the supervisor follows it: the fold so far, and what it needs to say and to sweep."""

import dataclasses
from collections.abc import Sequence
from pathlib import Path

from build_events import clock as clocks
from build_events.envelope import Recorded, StreamHeader
from build_events.events import RetryPlanned, RunStarted
from build_events.fold import advance
from build_events.local_log import SegmentTail
from build_events.state import StreamState
from builder_agent.supervised.control import BuildSpec


class MainStream:
    """Tails the building process's stream. One thread owns it."""

    def __init__(self, spec: BuildSpec) -> None:
        self._tail = SegmentTail(Path(spec.log_folder), spec.run_id, spec.main_stream_id)
        header = StreamHeader(
            stream_id=spec.main_stream_id, role="main", run_id=spec.run_id, source="", boot_id=clocks.boot_id()
        )
        self.state = StreamState(header=header)
        self.started = False  # run.started was seen: there is a run
        self.retry_planned = False

    def poll(self) -> list[Recorded]:
        """Return the new records, in order.

        Raises:
            OSError: the segment cannot be read.
        """
        records = self._tail.poll()
        if records:
            self._take(records)
        return records

    def close(self) -> None:
        """Close the segment."""
        self._tail.close()

    @property
    def last_sequence(self) -> int | None:
        """The highest sequence seen, ``None`` without any."""
        return self.state.next_sequence - 1 if self.state.seen else None

    @property
    def facts(self) -> Sequence[Recorded]:
        """The records that tell of the run's start, end and files."""
        return self.state.kept

    @property
    def open_phase(self) -> str | None:
        """The name of the innermost open phase, ``None`` outside of all phases."""
        open_phases = [phase for phase in self.state.phases.values() if phase.ended is None]
        return max(open_phases, key=lambda phase: phase.phase_id).name if open_phases else None

    def _take(self, records: list[Recorded]) -> None:
        if not self.state.seen:
            self.state = dataclasses.replace(self.state, header=records[0].stream)
        self.state = advance(self.state, records)
        self.started = self.started or any(isinstance(record.event, RunStarted) for record in records)
        self.retry_planned = self.retry_planned or any(isinstance(record.event, RetryPlanned) for record in records)
