"""What happens in a run, step by step. Every step runs on the run's worker thread."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any, Literal

from build_events import ids
from build_events.events import (
    ArtifactPublished,
    BuilderReturned,
    CancelRequested,
    ErrorRecorded,
    RunFinished,
    TimingCacheRecorded,
)
from builder_agent.errors import ArtifactWriteError, ModelRefusedError
from builder_agent.files.artifact import ArtifactWriter
from builder_agent.files.output_folder import inventory
from builder_agent.outcome import Conclusion, Evidence, conclude
from builder_agent.process_facts import observe_process
from builder_agent.recording.run_recording import Recording
from builder_agent.retry import plan_retry
from builder_agent.run_facts import clean_up, degrade, run_context, run_started
from builder_agent.settings import RunSettings
from builder_agent.texts import cut
from builder_agent.trt import tensorrt_rtx_backend, timing_cache
from builder_agent.trt.baseline import full_baseline, partial_baseline
from builder_agent.trt.build_call import watched
from builder_agent.trt.timing_cache import CacheBefore


@dataclass(slots=True)
class _Seen:
    """What the run saw so far."""

    began_ns: int = 0
    baseline: bool = False
    cache: TimingCacheRecorded | None = None
    returned: bool = False
    errors: list[str] = field(default_factory=list)
    published: ArtifactPublished | None = None
    artifact_error: ArtifactWriteError | None = None
    discarded_late: bool = False


class RunSteps:
    """The steps, and what they saw. Events are posted in the order in which things happen."""

    def __init__(self, settings: RunSettings, recording: Recording) -> None:
        self._settings = settings
        self._recording = recording
        self._post = recording.post
        self.artifact = ArtifactWriter(settings.output, settings.run_id, post=self._post, durable=recording.durable)
        self._seen = _Seen()
        self.recorded = False  # the stream's declared end is durable, and all before it

    @property
    def published(self) -> ArtifactPublished | None:
        """The artifact, once it stands at its target."""
        return self._seen.published

    @property
    def _stopped(self) -> bool:
        monitor = self._recording.monitor
        return monitor is not None and monitor.stopped_the_build

    def begin(self, housekeeping: Callable[[], object]) -> None:
        """Open the stream: run.started first; then do what every start does, and see how things stand."""
        at = self._recording.clock()
        self._seen.began_ns = at.monotonic_ns
        self._recording.delivery.start(run_started(self._settings), at)
        context = run_context(self._settings)
        if context is not None:
            self._post(context, at)
        degrade("recovery", housekeeping, self._post)
        self._observe("before")
        self._recording.durable()

    def see_without_config(self, trt: ModuleType | None) -> None:
        """Record the part of the baseline that needs no builder objects, unless one is recorded."""
        if self._seen.baseline:
            return
        self._seen.baseline = True
        baseline = degrade("baseline", lambda: partial_baseline(self._settings.output, trt), self._post)
        if baseline is not None:
            self._post(baseline)
        if trt is not None and trt.__name__ == tensorrt_rtx_backend.NAME:
            cache = TimingCacheRecorded(mode="cold", reason="cache_noop")
        else:
            cache = TimingCacheRecorded(mode=None, reason="unobserved: only run.build sees the builder config")
        self._record_cache(cache)

    def build(
        self,
        trt: ModuleType,
        builder: Any,
        network: Any,
        config: Any,
        *,
        inputs: Sequence[Path | str],
        profiles: Sequence[Any],
    ) -> None:
        """Record the baseline, build, record the return, publish.

        Raises:
            ArtifactWriteError: the engine could not be written.
            BaseException: whatever the builder's binding raises.
        """
        cache = self._see_config(trt, network, config, inputs, profiles)
        monitor = self._recording.monitor_of(trt)
        with watched(trt, builder, network, config, monitor=monitor, post=self._post) as recorder:
            try:
                engine = builder.build_serialized_network(network, config)
            finally:
                self._seen.errors = recorder.messages
                self._tell_unlisted_errors(recorder.unlisted)
        self.returned(engine)
        changed = degrade("timing_cache", lambda: timing_cache.after_build(cache), self._post) if cache else None
        if changed is not None:
            self._record_cache(changed)
        self.publish(engine)

    def returned(self, engine: Any) -> None:
        """Record that the call into the builder came back."""
        self._seen.returned = True
        if self._recording.monitor is not None:
            self._recording.monitor.settle()
        stopped = engine is None and self._stopped
        if stopped:
            self._recording.cancel.observe()  # unless the monitor's own False was the observation
        size = None if engine is None else memoryview(engine).nbytes
        self._post(BuilderReturned(engine=engine is not None, size_bytes=size, returned_false=stopped))

    def publish(self, engine: Any) -> None:
        """Write and publish the engine, if there is one and it is wanted.

        Raises:
            ArtifactWriteError: it could not be written.
        """
        if engine is None:
            return
        cancel = self._recording.cancel
        if self._settings.discard_late and cancel.requested:
            self._seen.discarded_late = True
            cancel.observe()
            return
        with cancel.zone("publish"):
            try:
                self._seen.published = self.artifact.save(memoryview(engine).cast("B"))
            except ArtifactWriteError as error:
                self._seen.artifact_error = error
                self._post(ErrorRecorded(component="agent", code=error.error_type, message=str(error)))
                raise

    def conclusion(self, exception: BaseException | None = None) -> Conclusion:
        """Return how the run stands, or ends if ``exception`` leaves its body."""
        seen, monitor = self._seen, self._recording.monitor
        return conclude(
            Evidence(
                published=seen.published is not None,
                discarded_late=seen.discarded_late,
                builder_returned=seen.returned,
                returned_false=self._stopped,
                cancel_requested=self._recording.cancel.requested,
                builder_errors=seen.errors,
                monitor_fault=None if monitor is None else monitor.fault,
                artifact_error=seen.artifact_error,
                exception=exception,
            )
        )

    def end(self, exception: BaseException | None) -> Conclusion:
        """Record how things stand after the build, close the stream, and return how the run ended."""
        monitor = self._recording.monitor
        if monitor is not None:
            monitor.settle()
            monitor.detach()
            if monitor.called and not self._seen.returned:
                self._post(BuilderReturned(engine=False, returned_false=self._stopped))
            self._recording.tell_callback_cost()
        if isinstance(exception, Exception) and not isinstance(exception, (ArtifactWriteError, ModelRefusedError)):
            code = type(exception).__qualname__
            self._post(ErrorRecorded(component="agent", code=code, message=cut(str(exception))))
        conclusion = self.conclusion(exception)
        with self._recording.cancel.zone("cleanup"):
            cleanup = clean_up(self._settings.output, self._settings.run_id, self._post)
            self._observe("after")
            self._post(cleanup)
        self._tell_unlisted_requests()
        cache = self._seen.cache
        plan = plan_retry(
            conclusion.outcome,
            cache_mode=cache.mode if cache else None,
            cache_reason=cache.reason if cache else None,
            error_type=conclusion.error_type,
        )
        if plan is not None:
            self._post(plan)
        self.recorded = self._recording.delivery.close(self._finished(conclusion)).written
        return conclusion

    def _finished(self, conclusion: Conclusion) -> RunFinished:
        published = self._seen.published
        return RunFinished(
            outcome=conclusion.outcome,
            error_type=conclusion.error_type,
            error_message=conclusion.error_message,
            duration_ns=max(self._recording.clock().monotonic_ns - self._seen.began_ns, 0),
            artifact_sha256=published.sha256 if published else None,
        )

    def _see_config(
        self, trt: ModuleType, network: Any, config: Any, inputs: Sequence[Path | str], profiles: Sequence[Any]
    ) -> CacheBefore | None:
        output = self._settings.output
        baseline = degrade(
            "baseline",
            lambda: full_baseline(output, trt, network, config, inputs=inputs, profiles=profiles),
            self._post,
        )
        if baseline is None:
            self.see_without_config(trt)
        else:
            self._seen.baseline = True
            self._post(baseline)
        cache = degrade("timing_cache", lambda: timing_cache.before_build(trt, trt.__name__, config), self._post)
        if cache is not None:
            self._record_cache(cache.event)
        return cache

    def _record_cache(self, event: TimingCacheRecorded) -> None:
        self._seen.cache = event
        self._post(event)

    def _observe(self, moment: Literal["before", "after"]) -> None:
        process = degrade("process", lambda: observe_process(moment), self._post)
        if process is not None:
            self._post(process)
        published = self._seen.published
        known = {self._settings.output: published.sha256} if published else {}
        output, run_id = self._settings.output, self._settings.run_id
        for fact in degrade("inventory", lambda: inventory(output, run_id, moment, known), self._post) or ():
            self._post(fact)

    def _tell_unlisted_errors(self, count: int) -> None:
        if count:
            self._post(ErrorRecorded(component="builder", code="unlisted", message=f"{count} further errors"))

    def _tell_unlisted_requests(self) -> None:
        cancel, winner = self._recording.cancel, self._recording.cancel.winner
        if winner is not None and cancel.unlisted_requests:
            reason = f"{cancel.unlisted_requests} further requests, not listed one by one"
            self._post(CancelRequested(request_id=ids.random_id(), source=winner.source, reason=reason))
