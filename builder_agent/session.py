"""One run as its user sees it: a context manager that no interrupt leaves half done."""

import logging
import os
import signal
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType, TracebackType
from typing import Any, Self

from build_events.clock import Clock
from build_events.events import CancelSource, Outcome
from build_events.log import EventWriter
from builder_agent.cancellation import CancelRequest, CancelState
from builder_agent.errors import UsageError
from builder_agent.files.inputs import refuse_input_as_output
from builder_agent.outcome import Conclusion, public_outcome
from builder_agent.recording.delivery import Delivery
from builder_agent.recording.monitor import interrupt_source
from builder_agent.recording.run_recording import Recording
from builder_agent.run_steps import RunSteps
from builder_agent.settings import RunSettings
from builder_agent.signals import SignalHandlers
from builder_agent.spool.quota import Pressure
from builder_agent.trt import backends
from builder_agent.worker import Worker

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class BuildResult:
    """How a build ended, as run.finished will say it."""

    run_id: str
    outcome: Outcome
    artifact: Path | None  # the published engine
    sha256: str | None
    error_type: str | None
    error_message: str | None  # the builder's own words, or "unobserved"


class RunSession:
    """The run that ``observe`` and the supervised child share. Use it as a context manager, once.

    All work happens on one worker thread while the caller waits interruptibly: a ``KeyboardInterrupt``
    or ``SystemExit`` that reaches the caller becomes a cancellation request, the work ends as it must,
    everything is recorded, and then the exception is raised again. No exception is raised because
    telemetry failed; wrong use, a busy output and an engine that cannot be written do raise.
    """

    def __init__(
        self,
        settings: RunSettings,
        *,
        writer: EventWriter,
        clock: Clock,
        boot_id: str,
        on_closed: Callable[[], None] = lambda: None,
        housekeeping: Callable[[], object] = lambda: None,
        signals: bool = False,
        package: str | None = None,
        pressure: Callable[[], Pressure] = lambda: "none",
    ) -> None:
        """Start nothing yet.

        ``on_closed`` runs when no more events will be appended, whether or not all could be;
        ``housekeeping`` is what every start of a home does before its build; ``signals`` installs
        chained handlers for SIGINT and SIGTERM while the run lives; ``package`` says which TensorRT
        ``monitor`` is for where a process has imported both; ``pressure`` says how full the log is.
        """
        self._settings = settings
        self._recording = Recording(
            settings, writer=writer, clock=clock, boot_id=boot_id, on_closed=on_closed, pressure=pressure
        )
        self._steps = RunSteps(settings, self._recording)
        self._worker = Worker(f"enginetrail-{settings.run_id[:8]}")
        self._signals = SignalHandlers(self.cancel) if signals else None
        self._housekeeping = housekeeping
        self._package = package
        self._owner = os.getpid()
        self._open = False  # between entering and leaving
        self._used = False  # has built
        self._raised = 0  # interrupts of the worker's callers that were raised again
        self.result: BuildResult | None = None

    @property
    def run_id(self) -> str:
        """The run's id."""
        return self._settings.run_id

    @property
    def recorded(self) -> bool:
        """Whether the whole stream, its declared end included, is durable."""
        return self._steps.recorded

    @property
    def cancel_state(self) -> CancelState:
        """The one cancel state that every source shares."""
        return self._recording.cancel

    @property
    def delivery(self) -> Delivery:
        """The run's main stream on its way to the log."""
        return self._recording.delivery

    def __enter__(self) -> Self:
        """Take the output lock, then open the run's stream.

        Raises:
            OutputBusyError: another build writes the same output.
            OutputFolderError: the output's folder cannot be written.
            UsageError: ``signals=True`` outside the main thread; or the run was used before.
        """
        if self._open or self.result is not None:
            raise UsageError(f"run {self.run_id} has been entered before: open a new one with observe()")
        self._steps.artifact.lock()
        try:
            if self._signals is not None:
                self._signals.install()
            self._worker.start()
        except BaseException:
            self._let_go()
            raise
        self._open = True
        try:
            self._call(lambda: self._steps.begin(self._housekeeping))
            if self._worker.interrupts:
                self._raise_interrupts()
        except BaseException as error:
            self._finish(error)
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Record how the body ended and close the stream; an exception of the body goes on.

        An interrupt that was held back is raised now, also in place of an ordinary exception: a Ctrl-C
        must not get lost because the cancelled body stumbled over its missing engine.
        """
        if os.getpid() != self._owner:
            return  # a forked child that left the body: the run is its parent's
        self._finish(error)
        if error is None or isinstance(error, Exception):
            self._raise_interrupts()

    @property
    def monitor(self) -> Any:
        """The progress monitor for ``config.progress_monitor``.

        Raises:
            BackendError: which TensorRT is meant cannot be told; give ``package``.
        """
        trt = self._trt()
        self._call(lambda: self._steps.see_without_config(trt))
        return self._recording.monitor_of(trt)

    def build(
        self,
        builder: Any,
        network: Any,
        config: Any,
        *,
        inputs: Sequence[Path | str] = (),
        profiles: Sequence[Any] = (),
    ) -> BuildResult:
        """Build on the worker thread, record everything, publish the engine.

        ``inputs`` are the files that the network was made from; an ONNX model brings its external
        weights. ``profiles`` are the optimization profiles of the config, which does not give them out.

        Raises:
            ArtifactWriteError: there is an engine, and it could not be written.
            OutputIsInputError: the engine would replace one of ``inputs``.
            UsageError: the run has built already.
        """
        refuse_input_as_output(self._settings.output, inputs)
        self._claim()
        trt = backends.load(backends.package_of(config))
        self._call(lambda: self._steps.build(trt, builder, network, config, inputs=inputs, profiles=profiles))
        return self._settle()

    def save(self, engine: Any) -> BuildResult:
        """Record the builder's return and publish ``engine``; ``None`` is a cancelled or failed build.

        Raises:
            ArtifactWriteError: the engine could not be written.
            UsageError: the run has built already, or ``engine`` is no serialized engine.
        """
        if engine is not None:
            try:
                memoryview(engine).release()
            except TypeError:
                raise UsageError(
                    f"run.save takes what build_serialized_network returned, not {type(engine).__name__}"
                ) from None
        self._claim()
        self._call(lambda: self._save(engine))
        return self._settle()

    def cancel(self, source: CancelSource = "api", *, reason: str | None = None) -> CancelRequest:
        """Request cancellation and return the request that won; callable from anywhere, signal handlers included."""
        return self.cancel_state.request(source, reason=reason)

    def _save(self, engine: Any) -> None:
        self._steps.see_without_config(None)  # recorded already where our monitor was asked for
        self._steps.returned(engine)
        self._steps.publish(engine)

    def _trt(self) -> ModuleType:
        return backends.load(self._package) if self._package is not None else backends.loaded()

    def _claim(self) -> None:
        self._check_open()
        if self._used:
            raise UsageError(f"run {self.run_id} has built already: a retry is a new run, observe(retry_of=...)")
        self._used = True

    def _call(self, work: Callable[[], None]) -> None:
        self._check_open()
        self._worker.call(work, self._interrupted)

    def _check_open(self) -> None:
        if os.getpid() != self._owner:
            raise UsageError(f"run {self.run_id} belongs to process {self._owner}: open a run of this process's own")
        if not self._open:
            raise UsageError(f"run {self.run_id} is not open: use it inside `with observe(...) as run:`")

    def _interrupted(self, interrupt: BaseException) -> None:
        self.cancel_state.request(interrupt_source(interrupt), reason=type(interrupt).__name__)

    def _settle(self) -> BuildResult:
        """Return the result so far, after raising what interrupted the wait for it."""
        self.result = self._result(self._steps.conclusion())
        if self._raised < len(self._worker.interrupts):
            self._raise_interrupts()
        return self.result

    def _finish(self, error: BaseException | None) -> None:
        if error is not None and not isinstance(error, Exception) and not self._known(error):
            # It left the body by itself, e.g. a Ctrl-C outside the builder: a request, obeyed at once.
            self._interrupted(error)
            self.cancel_state.observe()
        try:
            self._call(lambda: self._end(error))
        finally:
            self._open = False
            self._let_go()

    def _end(self, error: BaseException | None) -> None:
        try:
            self.result = self._result(self._steps.end(error))
        except Exception:  # noqa: BLE001 # a defect of ours must not end the host's work; the run stays unfinished
            _log.exception("run %s: its end could not be recorded", self.run_id)

    def _known(self, error: BaseException) -> bool:
        return any(error is interrupt for interrupt in self._worker.interrupts)

    def _let_go(self) -> None:
        self._worker.stop()
        self._steps.artifact.unlock()
        if self._signals is not None:
            self._signals.restore()

    def _raise_interrupts(self) -> None:
        """Raise what was held back while the work went on: the first interrupt, else a signal's default action."""
        monitor = self._recording.monitor
        held = [*self._worker.interrupts[self._raised :], *(monitor.interrupts if monitor is not None else ())]
        self._raised = len(self._worker.interrupts)
        if held:
            raise held[0]
        deferred = self._signals.deferred if self._signals is not None else set()
        if signal.SIGINT in deferred:
            raise KeyboardInterrupt
        if signal.SIGTERM in deferred:
            signal.raise_signal(signal.SIGTERM)

    def _result(self, conclusion: Conclusion) -> BuildResult:
        published = self._steps.published
        return BuildResult(
            run_id=self.run_id,
            outcome=public_outcome(conclusion, cancel_requested=self.cancel_state.requested),
            artifact=Path(published.target) if published else None,
            sha256=published.sha256 if published else None,
            error_type=conclusion.error_type,
            error_message=conclusion.error_message,
        )
