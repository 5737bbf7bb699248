"""What the building process does: check, parse, build, and say by its exit code how it went.

All that can be refused is refused before ``run.started``, so that a refusal leaves no run behind.
"""

import fcntl
import logging
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

from build_events.clock import boot_id, system_clock
from build_events.errors import EngineTrailError
from build_events.events import ErrorRecorded
from build_events.local_log import LocalLog
from builder_agent.errors import ArtifactWriteError, ModelRefusedError, OutputBusyError, OutputFolderError
from builder_agent.files.inputs import refuse_input_as_output
from builder_agent.files.output_folder import check_target, lock_path
from builder_agent.session import RunSession
from builder_agent.settings import DeliverySettings, RunSettings
from builder_agent.spool.quota import Pressure, SpoolQuota
from builder_agent.supervised.child_requests import Requests
from builder_agent.supervised.child_termination import Termination
from builder_agent.supervised.control import BuildSpec, read_spec
from builder_agent.supervised.ends import EXIT_FAILED, EXIT_OK, EXIT_UNRECORDED, EXIT_USAGE, cancel_exit_code
from builder_agent.trt import backends
from builder_agent.trt.parsing import Parsed, check_weights, parse, read_model


def run(fd: int) -> int:
    """Build what the control pipe says and return the exit code; the table is docs/contract.md section 3."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the terminal's Ctrl-C is the supervisor's to judge
    logging.basicConfig(stream=sys.stderr, level=logging.WARNING, format="enginetrail build: %(message)s")
    pipe = os.fdopen(fd, "rb")  # never closed: closing waits for the thread that reads it
    try:
        spec = read_spec(pipe)
        if spec is None:
            return EXIT_FAILED  # the supervisor is gone, and this process with it
        requests = Requests(pipe)
        requests.start()
        trt, parsed = _prepare(spec)
    except EngineTrailError as error:
        _say(error)
        return EXIT_USAGE
    return _build(spec, trt, parsed, requests)


def _prepare(spec: BuildSpec) -> tuple[ModuleType, Parsed]:
    """Return the model in the library's hands.

    Raises:
        EngineTrailError: the build is refused; the text says what, where and what to do next.
    """
    model = Path(spec.model)
    content = read_model(model)
    check_output(Path(spec.output))
    check_weights(model)
    refuse_input_as_output(Path(spec.output), [model])
    trt = backends.load(spec.package)
    logger = trt.Logger(trt.Logger.WARNING)
    return trt, parse(trt, content, Path(spec.model), target=spec.target, logger=logger)


def check_output(target: Path) -> None:
    """Refuse a target that a build could not write, before any time is spent; the run takes the lock itself.

    Raises:
        OutputFolderError: the folder is missing or cannot be written, or the target is a folder itself.
        OutputBusyError: another build holds the target's lock at this moment.
    """
    check_target(target)
    folder = target.parent
    if not folder.is_dir():
        raise OutputFolderError(folder, "it does not exist")
    if not os.access(folder, os.W_OK | os.X_OK):
        raise OutputFolderError(folder, "it cannot be written")
    try:
        descriptor = os.open(lock_path(target), os.O_RDONLY)
    except OSError:
        return  # no lock, no other build
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        raise OutputBusyError(target, lock_path(target)) from None
    finally:
        os.close(descriptor)


def _build(spec: BuildSpec, trt: ModuleType, parsed: Parsed, requests: Requests) -> int:
    log = LocalLog(Path(spec.log_folder))
    session = RunSession(
        _settings(spec),
        writer=log,
        clock=system_clock,
        boot_id=boot_id(),
        on_closed=log.close,
        package=trt.__name__,
        pressure=_pressure(spec),
    )
    Termination(session, grace_ns=spec.terminate_grace_ns).install()
    requests.begin_run()
    try:
        with session:
            requests.attach(session.cancel_state)
            _refuse_errors(session, parsed)
            session.build(parsed.builder, parsed.network, parsed.config, inputs=[spec.model])
    except (OutputBusyError, OutputFolderError) as error:  # of entering: no run began
        _say(error)
        return EXIT_USAGE
    except (ArtifactWriteError, ModelRefusedError) as error:
        _say(error)
    return _exit_code(session)


def _refuse_errors(session: RunSession, parsed: Parsed) -> None:
    for code, text in parsed.errors:
        session.delivery.post(ErrorRecorded(component="parser", code=code, message=text))
    if parsed.errors:
        raise ModelRefusedError("\n".join(text for _, text in parsed.errors))


def _exit_code(session: RunSession) -> int:
    outcome = session.result.outcome if session.result else "failed"
    winner = session.cancel_state.winner
    if outcome == "cancelled" and winner is not None:
        return cancel_exit_code(winner.source, deadline=winner.deadline)
    if outcome not in {"completed", "completed_despite_cancel"}:
        return EXIT_FAILED
    return EXIT_OK if session.recorded else EXIT_UNRECORDED


def _pressure(spec: BuildSpec) -> Callable[[], Pressure]:
    if spec.spool_bytes is None:
        return lambda: "none"
    return SpoolQuota(Path(spec.log_folder), spec.spool_bytes).pressure


def _settings(spec: BuildSpec) -> RunSettings:
    return RunSettings(
        route=spec.route,
        output=Path(spec.output),
        run_id=spec.run_id,
        trace_id=spec.trace_id,
        stream_id=spec.main_stream_id,
        mode="supervised",
        retry_of=spec.retry_of,
        retry_policy=spec.retry_policy,
        deadline_ns=spec.deadline_ns,
        command_started_monotonic_ns=spec.command_started_monotonic_ns,
        queued_at_ns=spec.queued_at_ns,
        parent_span_id=spec.parent_span_id,
        retried_trace_id=spec.retried_trace_id,
        discard_late=spec.discard_late,
        delivery=_delivery(spec),
    )


def _delivery(spec: BuildSpec) -> DeliverySettings:
    if spec.heartbeat_interval_ns is None:
        return DeliverySettings()
    return DeliverySettings(heartbeat_interval_ns=spec.heartbeat_interval_ns)


def _say(error: EngineTrailError) -> None:
    sys.stderr.write(f"enginetrail build: {error}\n")
