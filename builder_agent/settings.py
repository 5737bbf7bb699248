"""What a run is given: values only, read by nobody from the environment."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from build_events.clock import NS_PER_MS, NS_PER_S
from build_events.events import RetryPolicy


@dataclass(frozen=True, slots=True, kw_only=True)
class DeliverySettings:
    """How events travel from the build to the log. All times in nanoseconds."""

    batch_interval_ns: int = 20 * NS_PER_MS  # an event waits at most this long before its append; bar 50 ms
    heartbeat_interval_ns: int = 5 * NS_PER_S
    process_interval_ns: int = 5 * NS_PER_S  # process.observed during the build
    progress_interval_ns: int = NS_PER_S // 2  # at most one progress event per phase per interval
    retry_interval_ns: int = 200 * NS_PER_MS  # between attempts while the log is unavailable
    backlog_events: int = 10_000  # waiting while the log is unavailable; then progress is dropped first
    raw_callbacks: int = 100_000  # callbacks waiting to be counted; about 13 MB. Phases may fill twice as many
    batch_events: int = 256  # events of one append
    drain_timeout_ns: int = 2 * NS_PER_S  # embedded, with a log behind the spool: what the process's exit waits for it
    close_timeout_ns: int = 2 * NS_PER_S  # run.finished and stream.closed, then the agent gives up visibly


@dataclass(frozen=True, slots=True, kw_only=True)
class RunSettings:
    """One attempt at one build."""

    route: str
    output: Path  # made absolute by the caller
    run_id: str
    trace_id: str
    stream_id: str  # of the main stream
    mode: Literal["embedded", "supervised"] = "embedded"
    retry_of: str | None = None
    retry_policy: RetryPolicy | None = None
    deadline_ns: int | None = None  # counted from command_started_monotonic_ns
    command_started_monotonic_ns: int | None = None
    queued_at_ns: int | None = None  # when the caller queued the build, UTC since 1970
    parent_span_id: str | None = None  # in the trace that the run is part of
    retried_trace_id: str | None = None  # of the run that this one retries
    discard_late: bool = False  # publish no engine that came after a request to stop
    lease_ns: int = 60 * NS_PER_S
    delivery: DeliverySettings = field(default_factory=DeliverySettings)
