"""Histories to judge: a cancelled build, its retry, a validation; each entry can be changed or left out.

Entries carry no sequence: ``number`` gives them, so a history without an event is still complete.
"""

import dataclasses
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Literal, TypeVar

from analytics.from_records import evidence_of
from analytics.policy import Policy
from analytics.policy_file import load_policy
from analytics.sbat.judge import SBAT_TYPES
from analytics.sbat.trial import Trial
from build_events import events as ev
from build_events.clock import NS_PER_MS, NS_PER_S
from build_events.envelope import Recorded, StreamHeader, StreamRole
from build_events.events import Event

E = TypeVar("E", bound=Event)

NOON = 1_767_268_800 * NS_PER_S  # 2026-01-01T12:00:00Z
ROUTE = "resnet50/fp16/sm89"
TARGET = "/models/engine.plan"
DIGEST, MODEL, HASH = "5" * 64, "a" * 64, "b" * 64
POLICY = load_policy(None)
End = Literal["completed", "completed_despite_cancel", "cancelled", "failed", "killed", "lost", "open"]


@dataclass(frozen=True, slots=True)
class Entry:
    """One event to be: the stream it stands in, and its time in milliseconds since noon."""

    stream: str  # RUN/main, RUN/observer, or route/NAME
    at_ms: int
    event: Event


@dataclass(frozen=True, kw_only=True)
class Build:
    """One run that ends in a given way, everything recorded as it should be."""

    run_id: str
    end: End = "completed"
    start_ms: int = 0
    mode: Literal["supervised", "embedded"] = "supervised"
    retry_of: str | None = None
    retry_policy: ev.RetryPolicy | None = None
    digest: str = DIGEST
    before: tuple[ev.InventoryEntry, ...] = ()

    def entries(self) -> list[Entry]:
        """Return the run's entries in the order in which they happened."""
        facts = [*self._opening(), *self._building(), *self._ending()]
        place = {"main": f"{self.run_id}/main", "observer": f"{self.run_id}/{self._observer()}"}
        return [Entry(place[role], self.start_ms + at, event) for role, at, event in facts]

    def _observer(self) -> str:
        return "observer" if self.mode == "supervised" or self.end == "lost" else "main"

    @property
    def _gives_engine(self) -> bool:
        return self.end in {"completed", "completed_despite_cancel"}

    def _opening(self) -> list[tuple[str, int, Event]]:
        started = ev.RunStarted(
            route=ROUTE, build_id=self.run_id, mode=self.mode, output=TARGET, retry_of=self.retry_of,
            retry_policy=self.retry_policy, lease_ns=60 * NS_PER_S, heartbeat_interval_ns=NS_PER_S,
            host="builder-1", pid=7, agent_version="0.1.0",
        )  # fmt: skip
        before = ev.ArtifactInventoried(moment="before", entries=list(self.before))
        cache = ev.TimingCacheRecorded(mode="cold", reason="no_cache_given")
        facts: list[Event] = [started, observed("before"), before, baseline(), cache]
        return [("main", index, event) for index, event in enumerate(facts)]

    def _building(self) -> list[tuple[str, int, Event]]:
        told: ev.CancelState = "observed" if self.end == "cancelled" else "none"
        facts: list[tuple[str, int, Event]] = [
            ("main", 10, phase(ev.PhaseStarted, 1, None)),
            ("main", 11, phase(ev.PhaseStarted, 2, 1)),
            ("main", 1_011, ev.HeartbeatRecorded(open_phase_id=2, since_callback_ns=10**9, cancel_state="none")),
        ]
        if self.end in {"killed", "lost", "open"}:
            return facts
        if self.end == "cancelled":
            facts += self._cancel(1_500)
        gap = {"longest_gap_ns": 1_500 * NS_PER_MS, "cancel_state": told, "after_error": self.end == "failed"}
        facts += [
            ("main", 1_520, phase(ev.PhaseFinished, 2, 1, duration_ns=1_509 * NS_PER_MS, **gap)),
            ("main", 1_521, phase(ev.PhaseFinished, 1, None, duration_ns=1_511 * NS_PER_MS, **gap)),
        ]
        if self.end == "completed_despite_cancel":
            facts += self._cancel(1_522)[:2]
        facts.append(("main", 1_530, ev.BuilderReturned(engine=self._gives_engine, returned_false=told == "observed")))
        return facts

    def _cancel(self, at: int) -> list[tuple[str, int, Event]]:
        request = f"{self.run_id}-request"
        return [
            ("observer", at, ev.CancelRequested(request_id=request, source="ctrl_c")),
            ("main", at + 1, ev.CancelSignalled(request_id=request)),
            ("main", at + 10, ev.CancelObserved(request_id=request, phase_id=2)),
        ]

    def _ending(self) -> list[tuple[str, int, Event]]:
        if self.end in {"killed", "lost", "open"}:
            return self._broken_off()
        facts: list[tuple[str, int, Event]] = []
        after = list(self.before)
        if self._gives_engine:
            checks = ["read_back", "size_field"]
            published = ev.ArtifactPublished(target=TARGET, sha256=self.digest, size_bytes=8, by="build", checks=checks)
            facts.append(("main", 1_540, published))
            after = [entry("target", TARGET, self.digest)]
        facts += [
            ("main", 1_550, observed("after")),
            ("main", 1_551, ev.ArtifactInventoried(moment="after", entries=after)),
            ("main", 1_552, ev.CleanupFinished(status="cleaned", by="build")),
        ]
        if not self._gives_engine:
            facts.append(("main", 1_553, ev.RetryPlanned(policy="retry_cold", reason="the run gave no engine")))
        outcome: Any = "completed" if self._gives_engine else self.end
        finished = ev.RunFinished(
            outcome=outcome,
            duration_ns=1_560 * NS_PER_MS,
            artifact_sha256=self.digest if self._gives_engine else None,
            error_type="builder_error" if self.end == "failed" else None,
        )
        facts += [("main", 1_560, finished), ("main", 1_561, ev.StreamClosed(events=0, dropped=0))]
        if self.mode == "supervised":
            exited = ev.ProcessExited(main_stream_id=f"{self.run_id}/main", pid=7, exit_code=0)
            facts += [("observer", 1_570, exited), ("observer", 1_571, ev.StreamClosed(events=0, dropped=0))]
        return facts

    def _broken_off(self) -> list[tuple[str, int, Event]]:
        main = f"{self.run_id}/main"
        after = ev.ArtifactInventoried(moment="after", entries=list(self.before))
        plan = ev.RetryPlanned(policy="retry_cold", reason=f"the run was {self.end}")
        closed = ev.StreamClosed(events=0, dropped=0)
        if self.end == "open":
            return []
        if self.end == "lost":
            swept: list[Event] = [ev.CleanupFinished(status="cleaned", by="next_start"), after, plan, closed]
            return [
                ("observer", 9_000 + at, event) for at, event in enumerate([ev.RunLost(main_stream_id=main), *swept])
            ]
        request = ev.CancelRequested(request_id=f"{self.run_id}-request", source="ci", deadline=True)
        exited = ev.ProcessExited(main_stream_id=main, pid=7, signal="SIGKILL", signals_sent=["SIGTERM", "SIGKILL"])
        ended: list[Event] = [exited, ev.CleanupFinished(status="cleaned", by="supervisor"), after, plan, closed]
        return [
            ("observer", 1_500, request),
            ("main", 1_501, ev.CancelSignalled(request_id=request.request_id)),
            *(("observer", 3_500 + at, event) for at, event in enumerate(ended)),
        ]


def baseline(**values: Any) -> ev.BaselineRecorded:
    """Return a baseline that lacks nothing, of a machine without a GPU."""
    known: dict[str, Any] = {
        "tensorrt_package": "tensorrt_rtx", "tensorrt_version": "1.7.1.116", "python_version": "3.11.7",
        "platform": "Linux", "targets": ["sm89"], "gpu_sku": "none", "gpu_absence": "no NVIDIA driver",
        "driver_absence": "no NVIDIA driver", "network_kind": "strongly_typed", "builder_config": {"flags": 0},
        "inputs": [ev.InputFile(path="/models/m.onnx", role="model", size_bytes=9, sha256=MODEL)],
        "build_config_hash": HASH, "output_path": TARGET,
    }  # fmt: skip
    return ev.BaselineRecorded(**(known | values))


def observed(moment: Literal["before", "during", "after"], **values: Any) -> ev.ProcessObserved:
    """Return an observation of a process without a GPU."""
    known: dict[str, Any] = {
        "pid": 7, "rss_bytes": 10**8, "cpu_ns": 5, "threads": 3, "open_files": 9, "gpu_unobserved": "no NVIDIA driver",
    }  # fmt: skip
    return ev.ProcessObserved(moment=moment, **(known | values))


def phase(cls: type[E], phase_id: int, parent_id: int | None, **values: Any) -> E:
    """Return an event of a phase."""
    known: dict[str, Any] = {
        "phase_id": phase_id, "parent_id": parent_id, "name": f"phase {phase_id}", "steps_total": 4, "steps_seen": 3,
        "thread_id": 1, "build_id": "build", "cancel_state": "none",
    }  # fmt: skip
    return cls(**(known | values))


def entry(role: Literal["target", "temporary", "quarantine"], path: str, sha256: str | None) -> ev.InventoryEntry:
    """Return one file of an inventory."""
    return ev.InventoryEntry(path=path, role=role, size_bytes=8, sha256=sha256)


def validation(**values: Any) -> Entry:
    """Return a passed validation of the engine on its runtime target, recorded about the route."""
    known: dict[str, Any] = {
        "artifact_sha256": DIGEST, "status": "pass", "kind": "native_parity", "runtime_target": "sm89", "samples": 64,
    }  # fmt: skip
    return Entry("route/validation", 20_000, ev.ValidationRecorded(**(known | values)))


def source(**values: Any) -> Entry:
    """Return where the model came from, recorded about the route."""
    known: dict[str, Any] = {
        "input_sha256": MODEL, "source_uri": "https://models.example/resnet50", "checkpoint_revision": "4f2a9c1",
        "license": "apache-2.0",
    }  # fmt: skip
    return Entry("route/source", 21_000, ev.SourceRecorded(**(known | values)))


def passing(**cancelled: Any) -> list[Entry]:
    """Return the test that passes all eight criteria: a cancelled build, its retry, a validation."""
    first = Build(run_id="run-1", end="cancelled", **cancelled)
    retry = Build(run_id="run-2", start_ms=10_000, retry_of="run-1", retry_policy="retry_cold", mode=first.mode)
    return [*first.entries(), *retry.entries(), validation()]


def without(entries: Iterable[Entry], cls: type[Event], where: Callable[[Any], bool] = lambda _: True) -> list[Entry]:
    """Return a history in which the events of a type never happened."""
    return [item for item in entries if not (isinstance(item.event, cls) and where(item.event))]


def changed(entries: Iterable[Entry], cls: type[Event], run_id: str = "", /, **values: Any) -> list[Entry]:
    """Return a history in which the events of a type say something else, of all runs or of one."""

    def change(item: Entry) -> Entry:
        if not isinstance(item.event, cls) or not item.stream.startswith(run_id):
            return item
        return dataclasses.replace(item, event=item.event.model_copy(update=values))

    return [change(item) for item in entries]


def number(entries: Iterable[Entry]) -> list[Recorded]:
    """Return the records: sequences in the order of each stream, declared ends as they must be."""
    sizes: dict[str, int] = {}
    items = list(entries)
    for item in items:
        sizes[item.stream] = sizes.get(item.stream, 0) + 1
    seen: dict[str, int] = {}
    records = []
    for item in items:
        sequence = seen.get(item.stream, 0)
        seen[item.stream] = sequence + 1
        records.append(
            Recorded(
                stream=_header(item.stream),
                sequence=sequence,
                wall_ns=NOON + item.at_ms * NS_PER_MS,
                monotonic_ns=item.at_ms * NS_PER_MS,
                event=_declared(item.event, sizes, item.stream),
            )
        )
    return records


def trial(entries: Iterable[Entry], policy: Policy = POLICY, *, behind: bool = False) -> Trial:
    """Return the test of all runs of a history, judged a minute after noon."""
    evidence = evidence_of(number(entries), SBAT_TYPES, behind=behind)
    return Trial(evidence=evidence, policy=policy, as_of_ns=NOON + 60 * NS_PER_S)


def _header(stream: str) -> StreamHeader:
    subject, _, name = stream.partition("/")
    if subject == "route":
        return StreamHeader(stream_id=stream, role="route", route=ROUTE, source="test", boot_id="boot-1")
    role: StreamRole = "main" if name == "main" else "observer"
    return StreamHeader(stream_id=stream, role=role, run_id=subject, source="test", boot_id="boot-1")


def _declared(event: Event, sizes: dict[str, int], stream: str) -> Event:
    if isinstance(event, ev.StreamClosed):
        return event.model_copy(update={"events": sizes[stream]})
    if isinstance(event, ev.ProcessExited):
        return event.model_copy(update={"last_sequence": sizes[event.main_stream_id] - 1})
    return event
