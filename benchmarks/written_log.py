"""A local log of made-up builds, written as the agent writes it."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from build_events import ids
from build_events.clock import Clock, Instant
from build_events.envelope import StreamHeader
from build_events.events import (
    Event,
    HeartbeatRecorded,
    PhaseFinished,
    PhaseProgressed,
    PhaseStarted,
    RunFinished,
    RunStarted,
)
from build_events.local_log import LocalLog
from build_events.stream import EventStream

START = Instant(1_767_268_800_000_000_000, 5_000_000_000_000)
STEP_NS = 1_234_567
APPEND_EVENTS = 500

RunEvents = Callable[[str, int], Iterator[tuple[Event, int]]]  # of a run id and a count


class _Ticks:
    """A clock that goes on by the same step with every reading."""

    def __init__(self) -> None:
        self._now = START

    def __call__(self) -> Instant:
        self._now = Instant(self._now.wall_ns + STEP_NS, self._now.monotonic_ns + STEP_NS)
        return self._now


def run_events(run_id: str, count: int) -> Iterator[tuple[Event, int]]:
    """Yield events of a run, each with its phase: phases of four events, a heartbeat now and then."""
    yield _started(run_id), ids.ROOT_ORDINAL
    produced, number = 1, 0
    while produced < count - 6:
        number += 1
        for event in _phase(run_id, number):
            yield event, number
            produced += 1
        if number % 10 == 0:
            yield HeartbeatRecorded(open_phase_id=number, since_callback_ns=STEP_NS, cancel_state="none"), 0
            produced += 1
    yield RunFinished(outcome="completed", duration_ns=count * STEP_NS), ids.ROOT_ORDINAL


def write_log(folder: Path, *, runs: int, events_per_run: int, events: RunEvents = run_events) -> LocalLog:
    """Write a local log with that many runs."""
    log = LocalLog.create(folder)
    clock: Clock = _Ticks()
    for _ in range(runs):
        run_id = ids.random_id()
        header = StreamHeader(
            stream_id=ids.random_id(),
            role="main",
            run_id=run_id,
            trace_id=ids.trace_id(),
            source="enginetrail/build",
            boot_id=ids.random_id(),
        )
        stream = EventStream(header, log, clock=clock)
        waiting = []
        for event, phase_id in events(run_id, events_per_run):
            waiting.append(stream.record(event, span_id=ids.span_id(run_id, phase_id)))
            if len(waiting) == APPEND_EVENTS:
                log.append(waiting)
                waiting = []
        log.append(waiting)
        stream.close()
    return log


def _started(run_id: str) -> RunStarted:
    return RunStarted(
        route="resnet50/fp16/sm89",
        build_id=run_id,
        mode="supervised",
        output="/models/engine.plan",
        lease_ns=60_000_000_000,
        heartbeat_interval_ns=1_000_000_000,
        host="host",
        pid=7,
        agent_version="0.1.0",
    )


def _phase(run_id: str, number: int) -> Iterator[Event]:
    phase: dict[str, Any] = {
        "phase_id": number,
        "parent_id": 1 if number > 1 else None,
        "name": f"Building engine from network, layer {number % 97}",
        "steps_total": 10,
        "thread_id": 140_213_123_123,
        "build_id": run_id,
        "cancel_state": "none",
    }
    yield PhaseStarted(**phase, steps_seen=0)
    yield PhaseProgressed(**phase, steps_seen=1, callbacks=1, longest_gap_ns=STEP_NS)
    yield PhaseProgressed(**phase, steps_seen=10, callbacks=9, longest_gap_ns=2 * STEP_NS)
    yield PhaseFinished(**phase, steps_seen=10, duration_ns=4 * STEP_NS, longest_gap_ns=2 * STEP_NS)
