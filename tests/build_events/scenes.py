"""One run played through: the records that its processes would write, for every way it can end."""

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple, get_args

from build_events import events as ev
from build_events import ids
from build_events.clock import NS_PER_S, Instant
from build_events.envelope import Recorded, StreamHeader, StreamRole
from build_events.log import InMemoryEventLog
from build_events.stream import EventStream

End = Literal[
    "completed", "completed_despite_cancel", "cancelled", "failed", "killed", "crashed", "oom_killed", "lost", "open"
]
ENDS: tuple[End, ...] = get_args(End)
NOON = 1_767_268_800 * NS_PER_S  # 2026-01-01T12:00:00Z
DIGEST = "5" * 64
HASH = "b" * 64
TARGET, TEMP = "/models/engine.plan", "/models/.engine.plan.tmp"


class Operation(NamedTuple):
    """One callback of the builder."""

    kind: Literal["start", "step", "finish"]
    phase_id: int
    parent_id: int | None


def flatten(tree: Sequence[Any]) -> list[Operation]:
    """Return the callbacks of a forest of phases: a phase is the sequence of its children."""
    numbers = itertools.count(1)

    def visit(children: Sequence[Any], parent: int | None) -> list[Operation]:
        operations: list[Operation] = []
        for child in children:
            number = next(numbers)
            operations.append(Operation("start", number, parent))
            operations.extend(visit(child, number))
            operations += [Operation("step", number, parent), Operation("finish", number, parent)]
        return operations

    return visit(tree, None)


@dataclass(kw_only=True)
class Scene:
    """Plays one run. Every record advances the clock by the next of ``steps_ns``, in turn."""

    run_id: str = "run-1"
    route: str = "resnet50/fp16/sm89"
    supervised: bool = True
    steps_ns: Sequence[int] = (NS_PER_S,)
    steps_total: int = 10
    records: list[Recorded] = field(default_factory=list)
    _elapsed_ns: int = 0
    _ticks: int = 0
    _cancel_state: ev.CancelState = "none"

    def play(self, end: End, operations: Sequence[Operation], stop: int) -> list[Recorded]:
        """Return the records of a run that ends like ``end``, disturbed before operation ``stop``."""
        main, observer = self._stream("main", "build"), self._stream("observer", "supervisor")
        self._add(main, self._run_started())
        self._add(main, _baseline(), ev.TimingCacheRecorded(mode="cold", reason="no cache file"))
        self._add(main, ev.ArtifactInventoried(moment="before", entries=[]), self._observed("before"))
        if end in {"killed", "crashed", "oom_killed", "lost", "open"}:
            self._callbacks(main, operations[:stop])
            self._broken_off(end, main, observer)
            return self.records
        cut = stop if end in {"cancelled", "failed"} else len(operations)
        self._callbacks(main, operations[:cut])
        if end in {"cancelled", "completed_despite_cancel"}:
            self._cancel(main, observer, seen=end == "cancelled")
        self._unwind(main, operations, cut, after_error=end == "failed")
        self._returned(end, main)
        if self.supervised:
            exited = ev.ProcessExited(main_stream_id=_id(main), pid=7, exit_code=0, last_sequence=self._last(main))
            self._add(observer, exited)
            self._close(observer)
        return self.records

    def _stream(self, role: StreamRole, name: str) -> EventStream:
        header = StreamHeader(
            stream_id=f"{self.run_id}-{name}",
            role=role,
            run_id=self.run_id,
            trace_id="0af7651916cd43dd8448eb211c80319c",
            source=f"enginetrail/{name}",
            boot_id="boot-1",
        )
        return EventStream(header, InMemoryEventLog(), clock=self._clock)

    def _clock(self) -> Instant:
        self._elapsed_ns += self.steps_ns[self._ticks % len(self.steps_ns)]
        self._ticks += 1
        return Instant(NOON + self._elapsed_ns, 1_000 * NS_PER_S + self._elapsed_ns)

    def _add(self, stream: EventStream, *events: ev.Event) -> None:
        self.records.extend(stream.append(*events))

    def _close(self, stream: EventStream) -> None:
        self.records.extend(stream.close())

    def _last(self, stream: EventStream) -> int:
        return sum(record.stream == stream.header for record in self.records) - 1

    def _run_started(self) -> ev.RunStarted:
        return ev.RunStarted(
            route=self.route,
            build_id=self.run_id,
            mode="supervised" if self.supervised else "embedded",
            output=TARGET,
            lease_ns=60 * NS_PER_S,
            heartbeat_interval_ns=NS_PER_S,
            host="builder-1",
            pid=7,
            agent_version="0.1.0",
        )

    def _observed(self, moment: Literal["before", "during", "after"]) -> ev.ProcessObserved:
        return ev.ProcessObserved(
            moment=moment,
            pid=7,
            rss_bytes=10**8,
            cpu_ns=self._elapsed_ns,
            threads=3,
            open_files=9,
            gpu_unobserved="none",
        )

    def _callbacks(self, main: EventStream, operations: Sequence[Operation], *, after_error: bool = False) -> None:
        begun: dict[int, int] = {}
        for operation in operations:
            shared: dict[str, Any] = {
                "phase_id": operation.phase_id,
                "parent_id": operation.parent_id,
                "name": f"phase {operation.phase_id % 3}",
                "steps_total": self.steps_total,
                "thread_id": 1,
                "build_id": self.run_id,
                "cancel_state": self._cancel_state,
            }
            seen = self.steps_total * 3 // 4
            match operation.kind:
                case "start":
                    begun[operation.phase_id] = self._elapsed_ns
                    self._span(main, operation, ev.PhaseStarted(steps_seen=0, **shared))
                case "step":
                    progressed = ev.PhaseProgressed(
                        steps_seen=seen // 2, callbacks=seen // 2, longest_gap_ns=5, **shared
                    )
                    self._span(main, operation, progressed)
                    self._add(main, ev.HeartbeatRecorded(since_callback_ns=5, cancel_state=self._cancel_state))
                case "finish":
                    duration = self._elapsed_ns - begun.get(operation.phase_id, 0)
                    finished = ev.PhaseFinished(
                        steps_seen=seen, duration_ns=duration, longest_gap_ns=9, after_error=after_error, **shared
                    )
                    self._span(main, operation, finished)

    def _span(self, main: EventStream, operation: Operation, event: ev.Event) -> None:
        record = main.record(event, span_id=ids.span_id(self.run_id, operation.phase_id))
        self.records.append(record)

    def _cancel(self, main: EventStream, observer: EventStream, *, seen: bool) -> None:
        request = ev.CancelRequested(request_id="request-1", source="ctrl_c")
        self._add(observer if self.supervised else main, request)
        self._add(main, ev.CancelSignalled(request_id="request-1"))
        if seen:
            self._add(main, ev.CancelObserved(request_id="request-1"))
            self._cancel_state = "observed"

    def _unwind(self, main: EventStream, operations: Sequence[Operation], cut: int, *, after_error: bool) -> None:
        """Finish the phases that were open at the cut: the builder does so on a cancel and on an error."""
        started = {operation.phase_id for operation in operations[:cut]}
        rest = [item for item in operations[cut:] if item.kind == "finish" and item.phase_id in started]
        self._callbacks(main, rest, after_error=after_error)

    def _returned(self, end: End, main: EventStream) -> None:
        engine = end in {"completed", "completed_despite_cancel"}
        self._add(main, ev.BuilderReturned(engine=engine, returned_false=end == "cancelled"))
        if engine:
            publishing = ev.ArtifactPublishing(temp=TEMP, target=TARGET, sha256=DIGEST, size_bytes=8)
            published = ev.ArtifactPublished(target=TARGET, sha256=DIGEST, size_bytes=8, by="build")
            self._add(main, publishing, published)
        else:
            self._add(main, ev.ErrorRecorded(component="builder", message="no engine"))
            self._add(main, ev.ArtifactRemoved(path=TEMP, reason="the build gave no engine"))
        self._add(main, ev.CleanupFinished(status="cleaned", by="build"), self._observed("after"))
        outcome: Literal["completed", "cancelled", "failed"] = "completed" if engine else "failed"
        finished = ev.RunFinished(
            outcome="cancelled" if end == "cancelled" else outcome,
            duration_ns=self._elapsed_ns,
            artifact_sha256=DIGEST if engine else None,
        )
        self._add(main, finished)
        self._close(main)

    def _broken_off(self, end: End, main: EventStream, observer: EventStream) -> None:
        """End a run whose main stream was never closed: by the supervisor, the next start, or not at all."""
        last = self._last(main)
        if end == "open":
            return
        if end == "lost":
            next_start = self._stream("observer", "next-start")
            self._add(next_start, ev.RunLost(main_stream_id=_id(main), last_sequence=last))
            self._add(next_start, ev.CleanupFinished(status="cleaned", by="next_start"))
            self._close(next_start)
            return
        sent: list[str] = []
        if end == "killed":
            self._add(observer, ev.CancelRequested(request_id="request-1", source="ci", deadline=True))
            sent = ["SIGTERM", "SIGKILL"]
        exited = ev.ProcessExited(
            main_stream_id=_id(main),
            pid=7,
            signal="SIGSEGV" if end == "crashed" else "SIGKILL",
            signals_sent=sent,
            oom_killed=end == "oom_killed",
            last_sequence=last,
        )
        self._add(observer, exited, ev.CleanupFinished(status="cleaned", by="supervisor"))
        self._add(observer, ev.RetryPlanned(policy="retry_cold", reason=f"the run was {end}"))
        self._close(observer)


def _id(stream: EventStream) -> str:
    return stream.header.stream_id


def _baseline() -> ev.BaselineRecorded:
    return ev.BaselineRecorded(
        python_version="3.11.7", platform="Linux", output_path=TARGET, build_config_hash=HASH, unobserved=["inputs"]
    )
