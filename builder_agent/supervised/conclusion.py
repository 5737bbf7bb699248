"""After the child's exit: what the supervisor records, puts in order and tells its caller."""

import os
import signal
from dataclasses import dataclass
from pathlib import Path

from build_events.events import ProcessExited
from build_events.state import RunState
from builder_agent.files.sweep import inventory_after, is_swept, sweep
from builder_agent.supervised.control import BuildSpec
from builder_agent.supervised.ends import (
    EXIT_FAILED,
    EXIT_OK,
    EXIT_UNRECORDED,
    exit_code_of,
    exit_code_without_run,
    plan_unseen,
)
from builder_agent.supervised.feed import Feed
from builder_agent.supervised.main_stream import MainStream
from builder_agent.supervised.memory_kills import oom_kills
from builder_agent.supervised.observer import Observer
from builder_agent.supervised.process import Exit
from builder_agent.supervised.watch import Watch
from builder_agent.unstarted import remove_stale_lock, remove_unstarted


@dataclass(frozen=True, slots=True, kw_only=True)
class SupervisedResult:
    """How the build ended."""

    run_id: str
    exit_code: int  # of the command: docs/contract.md section 3
    state: RunState | None  # null where no run began: refused, cancelled or dead before run.started
    recorded: bool  # everything that the supervisor knows stands in the log
    child_exit_code: int | None  # null where a signal ended the building process
    child_signal: str | None  # e.g. SIGKILL


def memory_kills() -> int | None:
    """Return how many processes of this control group, the child's too, the kernel has killed for memory."""
    return oom_kills(os.getpid())


def conclude_run(
    spec: BuildSpec,
    how: Exit,
    *,
    pid: int,
    kills_before: int | None,
    main: MainStream,
    observer: Observer,
    watch: Watch,
) -> SupervisedResult:
    """Record the exit, sweep, plan and close the observer stream.

    1. exit, sweep and plan in one durable append, 2. then the child's stale lock goes, 3. and last the
    inventory, which may have much to read, with the stream's end.
    """
    kills_after = memory_kills()
    exited = ProcessExited(
        main_stream_id=spec.main_stream_id,
        pid=pid,
        exit_code=how.exit_code,
        signal=how.signal_name,
        signals_sent=list(how.signals_sent),
        oom_killed=how.returncode == -signal.SIGKILL and _grew(kills_before, kills_after),
        last_sequence=main.last_sequence,
    )
    watch.record(exited, how.at)
    swept = is_swept(main.facts)
    if not swept:
        for fact in sweep(main.facts, by="supervisor"):
            watch.record(fact)
    plan = None if main.retry_planned else plan_unseen(observer.run_state(main.state).run.outcome)
    if plan is not None:
        watch.record(plan)
    if observer.store():
        remove_stale_lock(Path(spec.log_folder), spec.run_id, spec.main_stream_id)
    if not swept:
        for fact in inventory_after(main.facts):
            watch.record(fact)
    recorded = observer.close()
    state = observer.run_state(main.state)
    # The log cannot tell of the engine; the process could: telemetry that fails does not fail a build.
    exit_code = EXIT_OK if how.exit_code == EXIT_UNRECORDED else exit_code_of(state)
    return _result(spec, how, exit_code, state, recorded=recorded)


def conclude_without_run(spec: BuildSpec, how: Exit, *, watch: Watch, feed: Feed) -> SupervisedResult:
    """Leave nothing of a run that never began, and say why it did not where the child could not."""
    remove_unstarted(Path(spec.log_folder), spec.run_id, spec.main_stream_id)
    if how.exit_code == EXIT_UNRECORDED:
        feed.message(f"{spec.output} is built, and the log took nothing of it: no gate will pass it")
        return _result(spec, how, EXIT_OK, None, recorded=False)
    exit_code = exit_code_without_run(how.returncode, watch.first_request)
    if exit_code == EXIT_FAILED:
        ended = f"by {how.signal_name}" if how.signal_name else f"with exit code {how.exit_code}"
        feed.message(f"the building process ended {ended} before the run began; see what it printed")
    return _result(spec, how, exit_code, None, recorded=True)


def _result(spec: BuildSpec, how: Exit, exit_code: int, state: RunState | None, *, recorded: bool) -> SupervisedResult:
    return SupervisedResult(
        run_id=spec.run_id,
        exit_code=exit_code,
        state=state,
        recorded=recorded,
        child_exit_code=how.exit_code,
        child_signal=how.signal_name,
    )


def _grew(before: int | None, after: int | None) -> bool:
    return before is not None and after is not None and after > before
