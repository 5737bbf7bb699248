"""What the fold knows: the state of a stream, and the rows that a run's streams come to.

Rows are the grain of the collector's fold tables and of the SQL views. Times ``*_at_ns`` are wall
clock nanoseconds since 1970 UTC, for people; every duration is monotonic nanoseconds.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from build_events.envelope import Recorded, StreamHeader, StreamRole
from build_events.events import CancelSource, Outcome, RetryPolicy

Ranges = tuple[tuple[int, int], ...]  # half-open, ascending, never touching
PhaseStatus = Literal["open", "finished", "cancelled", "failed", "killed", "crashed", "oom_killed", "lost"]


@dataclass(frozen=True, slots=True, kw_only=True)
class PhaseState:
    """One phase instance, merged from its events in whatever order they came."""

    phase_id: int
    name: str
    parent_id: int | None
    steps_total: int
    steps_seen: int = 0
    longest_gap_ns: int | None = None
    started_at_ns: int | None = None  # null while only later events of the phase are known
    duration_ns: int | None = None  # set by the finish
    ended: Literal["finished", "cancelled", "failed"] | None = None

    @property
    def settled(self) -> bool:
        """Start and finish are both known: no event of the contract changes it any more."""
        return self.started_at_ns is not None and self.ended is not None


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamState:
    """The fold of one stream."""

    header: StreamHeader
    seen: Ranges = ()
    phases: Mapping[int, PhaseState] = field(default_factory=dict)  # by phase id
    kept: tuple[Recorded, ...] = ()  # the facts that the run's rows are made of, by sequence

    @property
    def next_sequence(self) -> int:
        """One more than the highest sequence seen."""
        return self.seen[-1][1] if self.seen else 0


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamRow:
    """One stream. Grain: stream_id."""

    stream_id: str
    role: StreamRole
    run_id: str | None
    route: str | None
    events: int  # distinct sequences seen
    highest_sequence: int | None
    declared_events: int | None  # by stream.closed, or process.exited for a main stream; null = no end declared
    dropped: int | None  # null while not closed
    missing: Ranges  # sequences below the declared or highest one that are not in the log

    @property
    def complete(self) -> bool:
        """Everything up to the declared end is there and nothing was dropped."""
        return self.declared_events is not None and not self.missing and not self.dropped


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRow:
    """One build attempt. Grain: run_id."""

    run_id: str
    route: str | None
    mode: Literal["embedded", "supervised"] | None
    outcome: Outcome | None  # null while open
    late_outcome: Outcome | None  # of a fenced run: what its processes said after all; counts for nothing
    retry_of: str | None
    retry_policy: RetryPolicy | None
    started_at_ns: int | None
    finished_at_ns: int | None  # null while open, and for a lost run
    duration_ns: int | None
    complete: bool  # contiguous to the declared end, no drops, no dead letters, not lost
    artifact_sha256: str | None  # of the artifact that stands at the target and that gates may judge
    error_type: str | None
    error_message: str | None
    main_stream_id: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class PhaseRow:
    """One phase instance. Grain: (run_id, phase_id)."""

    run_id: str
    phase_id: int
    parent_id: int | None
    name: str
    started_at_ns: int | None
    duration_ns: int | None  # null until finished
    steps_total: int
    steps_seen: int
    longest_gap_ns: int | None
    status: PhaseStatus


@dataclass(frozen=True, slots=True, kw_only=True)
class CancellationRow:
    """The winning cancellation request of a run. Grain: run_id.

    Legs are nanoseconds since the request, null where never reached, 0 where already past.
    """

    run_id: str
    request_id: str
    source: CancelSource
    deadline: bool
    requested_at_ns: int
    signalled_ns: int | None
    observed_ns: int | None
    observed_phase_id: int | None
    returned_ns: int | None
    cleaned_ns: int | None
    exited_ns: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ArtifactRow:
    """One file of a run and what became of it. Grain: (run_id, path)."""

    run_id: str
    path: str
    state: Literal["publishing", "published", "quarantined", "removed"]
    moved_to: str | None  # where a quarantined file lies now
    sha256: str | None
    size_bytes: int | None
    by: str | None  # who published: build or sweep
    reason: str | None  # why quarantined or removed


@dataclass(frozen=True, slots=True, kw_only=True)
class AnomalyRow:
    """Something that the contract does not allow, noted and never raised. Grain: all columns."""

    run_id: str
    stream_id: str | None
    code: str
    detail: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RunState:
    """All rows of one run."""

    run: RunRow
    phases: tuple[PhaseRow, ...]  # by phase id; without those that were settled and taken (see fold.settle)
    cancellation: CancellationRow | None
    artifacts: tuple[ArtifactRow, ...]
    streams: tuple[StreamRow, ...]  # by stream id
    anomalies: tuple[AnomalyRow, ...]
