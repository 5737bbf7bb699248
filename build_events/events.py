"""Every event of the contract: an immutable fact in the past tense with a versioned type.

A changed event is a new class with a new version and an upcaster; these are never edited once
shipped. ``EVENT_TYPES`` lists them all; ``build_events/schema/`` holds their JSON Schemas.
"""

from typing import Annotated, ClassVar, Literal

from pydantic import BaseModel, ConfigDict, Field, JsonValue, PlainSerializer, WithJsonSchema

# JSON numbers lose precision above 2**53, so 64-bit nanoseconds travel as decimal strings.
Nanoseconds = Annotated[
    int,
    Field(ge=0),
    PlainSerializer(str, return_type=str, when_used="json"),
    WithJsonSchema({"type": "string", "pattern": "^[0-9]+$"}),
]
Sha256 = Annotated[str, Field(pattern="^[0-9a-f]{64}$")]
Count = Annotated[int, Field(ge=0)]
TraceId = Annotated[str, Field(pattern="^[0-9a-f]{32}$")]
SpanId = Annotated[str, Field(pattern="^[0-9a-f]{16}$")]

CancelState = Literal["none", "requested", "observed"]
CancelSource = Literal["ctrl_c", "ci", "ide", "service", "api", "event_loop", "policy"]
RetryPolicy = Literal["retry_cold", "retry_with_cache", "rollback", "investigate"]
CacheMode = Literal["cold", "reused", "updated", "discarded", "quarantined"]
CleanupStatus = Literal["cleaned", "quarantined", "failed"]
Verdict = Literal["pass", "hold", "reject"]
Outcome = Literal[
    "completed", "completed_despite_cancel", "cancelled", "failed", "killed", "crashed", "oom_killed", "lost"
]


class Event(BaseModel):
    """Base of all events. Unknown fields are ignored here and stay in the log."""

    model_config = ConfigDict(frozen=True, extra="ignore", allow_inf_nan=False)
    type: ClassVar[str]


class RunStarted(Event):
    """A build attempt began; it promises ``RunFinished`` or another end that is declared."""

    type: ClassVar[str] = "trt.build.run.started.v1"
    route: Annotated[str, Field(min_length=1)]
    build_id: str  # one per call into the builder; equals the run id while a run builds once
    mode: Literal["embedded", "supervised"]
    output: str  # absolute path of the artifact to be
    retry_of: str | None = None  # run id
    retry_policy: RetryPolicy | None = None  # the policy this retry follows
    deadline_ns: Nanoseconds | None = None  # counted from command_started_monotonic_ns
    command_started_monotonic_ns: Nanoseconds | None = None
    lease_ns: Nanoseconds  # other hosts may call the run lost after this long without a heartbeat
    heartbeat_interval_ns: Nanoseconds
    host: str
    pid: int
    agent_version: str
    language: Literal["python", "cpp"] = "python"


class RunContextRecorded(Event):
    """What the run was told of its surroundings: written only where something was."""

    type: ClassVar[str] = "trt.build.context.recorded.v1"
    queued_at_ns: Nanoseconds | None = None  # when the caller queued the build, UTC since 1970
    parent_span_id: SpanId | None = None  # of the trace context that the run was started in
    retried_trace_id: TraceId | None = None  # of the run that this one retries


class InputFile(BaseModel):
    """One file that the build read."""

    model_config = ConfigDict(frozen=True, extra="ignore")
    path: str
    role: Literal["model", "external_weights", "other"]
    size_bytes: Count
    sha256: Sha256


class BaselineRecorded(Event):
    """What the build ran with, read back from the objects and the machine."""

    type: ClassVar[str] = "trt.build.baseline.recorded.v1"
    tensorrt_package: str | None = None  # tensorrt or tensorrt_rtx
    tensorrt_version: str | None = None
    python_version: str
    platform: str
    targets: list[str] = []  # compute capabilities, e.g. sm89; empty where the library's default holds
    gpu_sku: str | None = None  # "none" where this machine has no usable GPU
    gpu_absence: str | None = None  # why gpu_sku is "none"
    driver_version: str | None = None
    driver_absence: str | None = None
    network_kind: Literal["strongly_typed", "weakly_typed"] | None = None
    network_flags: dict[str, bool] = {}
    builder_config: dict[str, JsonValue] = {}  # every property read back by name
    inputs: list[InputFile] = []
    build_config_hash: Sha256 | None = None  # docs/contract.md section 2
    output_path: str
    address_randomized: bool | None = None  # ASLR changes engine bytes of some networks
    unobserved: list[str] = []  # names of the fields above that this use of the agent cannot see


class TimingCacheRecorded(Event):
    """How the run used a timing cache, and why."""

    type: ClassVar[str] = "trt.build.timing_cache.recorded.v1"
    mode: CacheMode | None = None  # null = unobserved
    reason: str
    path: str | None = None
    sha256_before: Sha256 | None = None
    sha256_after: Sha256 | None = None


class Phase(Event):
    """What every phase event says of its phase instance."""

    phase_id: Annotated[int, Field(ge=1)]  # ordinal in the run; names repeat, instances do not
    parent_id: Annotated[int, Field(ge=1)] | None = None  # null for a root phase
    name: str
    unit: Literal["step"] = "step"
    steps_total: Count  # declared; TensorRT does not always report them all
    steps_seen: Count
    thread_id: int
    build_id: str
    cancel_state: CancelState


class PhaseStarted(Phase):
    """The builder called ``phase_start``; it promises ``PhaseFinished``."""

    type: ClassVar[str] = "trt.build.phase.started.v1"


class PhaseProgressed(Phase):
    """Coalesced ``step_complete`` calls of one phase."""

    type: ClassVar[str] = "trt.build.phase.progressed.v1"
    callbacks: Count  # calls that this event stands for
    longest_gap_ns: Nanoseconds  # longest silence so far between two callbacks inside the phase


class PhaseFinished(Phase):
    """The builder called ``phase_finish``."""

    type: ClassVar[str] = "trt.build.phase.finished.v1"
    duration_ns: Nanoseconds  # monotonic clock
    longest_gap_ns: Nanoseconds
    after_error: bool = False  # the error recorder had seen an error: the build was unwinding


class HeartbeatRecorded(Event):
    """The build's process was alive; written by a thread that no callback can silence."""

    type: ClassVar[str] = "trt.build.heartbeat.recorded.v1"
    open_phase_id: int | None = None  # innermost
    since_callback_ns: Nanoseconds | None = None  # null before the first callback
    cancel_state: CancelState


class ProcessObserved(Event):
    """Resources of the building process at one moment."""

    type: ClassVar[str] = "trt.build.process.observed.v1"
    moment: Literal["before", "during", "after"]
    pid: int
    rss_bytes: Count
    cpu_ns: Nanoseconds  # user + system since the process began
    threads: Count
    open_files: Count
    gpu_memory_bytes: Count | None = None
    gpu_unobserved: str | None = None  # why gpu_memory_bytes is null


class CallbackCostRecorded(Event):
    """What the agent's own work inside ``step_complete`` took, sampled: without the builder's way into it."""

    type: ClassVar[str] = "trt.build.callback_cost.recorded.v1"
    samples: Annotated[int, Field(ge=1)]
    mean_ns: Nanoseconds
    p99_ns: Nanoseconds
    max_ns: Nanoseconds


class CancelRequested(Event):
    """Somebody asked for the run to stop. The time is when a process of the run's host learned of it."""

    type: ClassVar[str] = "trt.build.cancel.requested.v1"
    request_id: str
    source: CancelSource
    reason: str | None = None
    deadline: bool = False  # the request is the run's own deadline


class CancelDeferred(Event):
    """A request arrived in a zone that must not be interrupted, and waits for its end."""

    type: ClassVar[str] = "trt.build.cancel.deferred.v1"
    request_id: str
    zone: str


class CancelSignalled(Event):
    """The cancel flag is visible to the builder's thread. Names the winning request."""

    type: ClassVar[str] = "trt.build.cancel.signalled.v1"
    request_id: str


class CancelObserved(Event):
    """``step_complete`` returned ``False`` for the first time."""

    type: ClassVar[str] = "trt.build.cancel.observed.v1"
    request_id: str
    phase_id: int | None = None


class BuilderReturned(Event):
    """The call into the builder came back."""

    type: ClassVar[str] = "trt.build.builder.returned.v1"
    engine: bool  # an engine came back
    size_bytes: Count | None = None
    returned_false: bool  # our monitor had asked for the cancellation


class ErrorRecorded(Event):
    """One error, in the words of the component that had it."""

    type: ClassVar[str] = "trt.build.error.recorded.v1"
    component: Literal["builder", "parser", "monitor", "agent", "child"]
    code: str | None = None
    message: str


class InventoryEntry(BaseModel):
    """One file at or beside the target."""

    model_config = ConfigDict(frozen=True, extra="ignore")
    path: str
    role: Literal["target", "temporary", "quarantine"]
    size_bytes: Count
    sha256: Sha256 | None = None


class ArtifactInventoried(Event):
    """Every file of this target at one moment: the target, temporaries, quarantine."""

    type: ClassVar[str] = "trt.build.artifact.inventoried.v1"
    moment: Literal["before", "after"]
    entries: list[InventoryEntry]


class ArtifactPublishing(Event):
    """The artifact is complete under its temporary name and is about to be renamed."""

    type: ClassVar[str] = "trt.build.artifact.publishing.v1"
    temp: str
    target: str
    sha256: Sha256
    size_bytes: Count


class ArtifactPublished(Event):
    """The artifact stands at its target."""

    type: ClassVar[str] = "trt.build.artifact.published.v1"
    target: str
    sha256: Sha256
    size_bytes: Count
    by: Literal["build", "sweep"]
    checks: list[str] = []  # what was verified, e.g. read_back, size_field, trailer


class ArtifactQuarantined(Event):
    """A file that no verdict covers was moved out of the way, never deleted."""

    type: ClassVar[str] = "trt.build.artifact.quarantined.v1"
    original: str
    quarantine: str
    size_bytes: Count
    sha256: Sha256 | None = None
    reason: str


class ArtifactRemoved(Event):
    """A temporary file was removed."""

    type: ClassVar[str] = "trt.build.artifact.removed.v1"
    path: str
    reason: str


class CleanupFinished(Event):
    """Nothing of the run is left at the target but what the inventory says."""

    type: ClassVar[str] = "trt.build.cleanup.finished.v1"
    status: CleanupStatus
    by: Literal["build", "supervisor", "next_start"]


class RunFinished(Event):
    """The building process reached its end and says how."""

    type: ClassVar[str] = "trt.build.run.finished.v1"
    outcome: Literal["completed", "cancelled", "failed"]
    error_type: str | None = None  # e.g. builder_error, monitor_fault, artifact_write
    error_message: str | None = None  # "unobserved" where no error text could be seen
    duration_ns: Nanoseconds
    artifact_sha256: Sha256 | None = None


class RetryPlanned(Event):
    """What to do next with the route after a run that gave no engine."""

    type: ClassVar[str] = "trt.build.retry.planned.v1"
    policy: RetryPolicy
    reason: str


class StreamClosed(Event):
    """The last event of its stream: declares how many there are, itself included."""

    type: ClassVar[str] = "trt.stream.closed.v1"
    events: Count
    dropped: Count


class ProcessExited(Event):
    """The supervisor reaped the building process and read its stream to the end."""

    type: ClassVar[str] = "trt.build.process.exited.v1"
    main_stream_id: str
    pid: int
    exit_code: int | None = None
    signal: str | None = None  # name of the signal that ended it, e.g. SIGKILL
    signals_sent: list[str] = []  # by the supervisor, in order
    oom_killed: bool = False
    last_sequence: int | None = None  # of the main stream; null where it holds no event


class RunLost(Event):
    """Nobody saw the run's end: its lock is free and its stream was never closed."""

    type: ClassVar[str] = "trt.build.run.lost.v1"
    main_stream_id: str
    last_sequence: int | None = None


class RunFenced(Event):
    """A collector on another host heard nothing of the run for its lease. Final: the run is lost, whatever follows."""

    type: ClassVar[str] = "trt.build.run.fenced.v1"
    main_stream_id: str
    last_sequence: int | None = None  # of the main stream, when it was fenced
    lease_ns: Nanoseconds  # as run.started declared it
    silent_ns: Nanoseconds  # how long nothing came, on the collector's monotonic clock


class ExportFinished(Event):
    """The exporter of a run's spans or metrics has ended: what reached its endpoint, and what was dropped."""

    type: ClassVar[str] = "trt.telemetry.export.finished.v1"
    signal: Literal["traces", "metrics"]
    exported: Count  # spans, or collections of all metrics, that the endpoint acknowledged
    dropped: Count
    reason: str | None = None  # why something was dropped


class ValidationRecorded(Event):
    """Somebody ran the artifact and compared: a fact apart from the build."""

    type: ClassVar[str] = "trt.validation.recorded.v1"
    artifact_sha256: Sha256
    status: Literal["pass", "fail"]
    kind: Annotated[str, Field(min_length=1)]  # e.g. native_parity
    runtime_target: Annotated[str, Field(min_length=1)]  # e.g. sm89
    samples: Annotated[int, Field(ge=1)]  # comparisons made: nothing compared is no validation
    detail: str | None = None


class SourceRecorded(Event):
    """Where a checkpoint came from."""

    type: ClassVar[str] = "trt.evidence.source.recorded.v1"
    input_sha256: Sha256  # of the model file that the build read
    source_uri: Annotated[str, Field(min_length=1)]
    checkpoint_revision: Annotated[str, Field(min_length=1)]
    license: str | None = None


class DecisionRecorded(Event):
    """A verdict with everything needed to reach it again. Never edited; superseded by a new one."""

    type: ClassVar[str] = "trt.decision.recorded.v1"
    kind: Literal["sbat", "cbat"]
    verdict: Verdict
    policy_sha256: Sha256
    evaluator_version: str
    as_of_ns: Nanoseconds
    inputs: dict[str, Count]  # stream id -> highest sequence used
    inputs_sha256: Sha256
    supersedes: list[str] = []  # ids of the decision events that this one replaces
    artifact_sha256: Sha256 | None = None
    report: dict[str, JsonValue]  # the report as it was printed


class UnknownEvent(BaseModel):
    """An event of a type that this release does not define, kept whole."""

    model_config = ConfigDict(frozen=True)
    type: str
    data: JsonValue


EVENT_CLASSES: tuple[type[Event], ...] = (
    RunStarted, BaselineRecorded, TimingCacheRecorded, PhaseStarted, PhaseProgressed, PhaseFinished,
    HeartbeatRecorded, ProcessObserved, CancelRequested, CancelDeferred, CancelSignalled, CancelObserved,
    BuilderReturned, ErrorRecorded, ArtifactInventoried, ArtifactPublishing, ArtifactPublished,
    ArtifactQuarantined, ArtifactRemoved, CleanupFinished, RunFinished, RetryPlanned, StreamClosed,
    ProcessExited, RunLost, RunFenced, ValidationRecorded, SourceRecorded, DecisionRecorded,
    RunContextRecorded, ExportFinished, CallbackCostRecorded,
)  # fmt: skip
EVENT_TYPES: dict[str, type[Event]] = {cls.type: cls for cls in EVENT_CLASSES}
