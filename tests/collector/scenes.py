"""Small histories written out: for tests that name what they look at."""

from collections.abc import Sequence
from typing import Any

from build_events.envelope import Recorded, StreamHeader, StreamRole
from build_events.events import (
    Event,
    HeartbeatRecorded,
    PhaseFinished,
    PhaseProgressed,
    PhaseStarted,
    RunFinished,
    RunStarted,
    StreamClosed,
    UnknownEvent,
)

NOON_NS = 1_767_268_800_000_000_000  # 2026-01-01T12:00:00Z


def header(run_id: str = "run-1", stream_id: str = "", role: StreamRole = "main") -> StreamHeader:
    """Return a stream of a run; by default its main stream."""
    return StreamHeader(
        stream_id=stream_id or f"{run_id}-{role}", role=role, run_id=run_id, source="tests", boot_id="boot-1"
    )


def record(event: Event | UnknownEvent, sequence: int = 0, stream: StreamHeader | None = None) -> Recorded:
    """Return an event at a place of a stream."""
    at_ns = sequence * 1_000_000
    return Recorded(
        stream=stream or header(), sequence=sequence, wall_ns=NOON_NS + at_ns, monotonic_ns=at_ns, event=event
    )


def beat(sequence: int = 0, stream: StreamHeader | None = None) -> Recorded:
    """Return a heartbeat."""
    return record(HeartbeatRecorded(cancel_state="none"), sequence, stream)


def whole_run(run_id: str = "run-1", *, phases: int = 5) -> list[Recorded]:
    """Return a run that was completed, with root phases one after the other and a closed main stream."""
    said: list[Event] = [
        RunStarted(
            route="resnet50/fp16/sm89",
            build_id=run_id,
            mode="embedded",
            output="/models/engine.plan",
            lease_ns=60_000_000_000,
            heartbeat_interval_ns=1_000_000_000,
            host="host",
            pid=7,
            agent_version="0.1.0",
        )
    ]
    for phase_id in range(1, phases + 1):
        said += phase(phase_id, run_id)
    said += [RunFinished(outcome="completed", duration_ns=1_000_000), StreamClosed(events=len(said) + 2, dropped=0)]
    return numbered(said, header(run_id))


def phase(phase_id: int, build_id: str) -> list[Event]:
    """Return what a phase of ten steps says."""
    fields: dict[str, Any] = {
        "phase_id": phase_id,
        "name": f"layer {phase_id}",
        "steps_total": 10,
        "thread_id": 1,
        "build_id": build_id,
        "cancel_state": "none",
    }
    return [
        PhaseStarted(**fields, steps_seen=0),
        PhaseProgressed(**fields, steps_seen=5, callbacks=5, longest_gap_ns=1_000),
        PhaseFinished(**fields, steps_seen=10, duration_ns=3_000_000, longest_gap_ns=2_000),
    ]


def numbered(said: Sequence[Event | UnknownEvent], stream: StreamHeader) -> list[Recorded]:
    """Return events as the records of a stream, from sequence 0."""
    return [record(event, sequence, stream) for sequence, event in enumerate(said)]
