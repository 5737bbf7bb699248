"""How a supervised build ends for the caller: exit code, and the plan after an end that the build did not see. Pure."""

from build_events.events import CancelSource, Outcome, RetryPlanned
from build_events.state import CancellationRow, RunState
from builder_agent.supervised.control import CancelMessage

EXIT_OK = 0
EXIT_FAILED = 1
EXIT_USAGE = 2
EXIT_UNRECORDED = 3  # of the building process only: the engine is published, but the log could not take the run's end
EXIT_DEADLINE = 124
EXIT_INTERRUPTED = 130
EXIT_STOPPED = 143


def exit_code_of(state: RunState) -> int:
    """Return the command's exit code for a run; the table is docs/contract.md section 3."""
    match state.run.outcome:
        case "completed" | "completed_despite_cancel":
            return EXIT_OK
        case "cancelled" | "killed":
            return _cancelled(state.cancellation)
        case "failed" | "crashed" | "oom_killed" | "lost" | None:
            return EXIT_FAILED


def exit_code_without_run(returncode: int, request: CancelMessage | None) -> int:
    """Return the command's exit code where the building process ended before ``run.started``."""
    if returncode == EXIT_USAGE:
        return EXIT_USAGE
    if request is not None:
        return cancel_exit_code(request.source, deadline=request.deadline)
    return EXIT_FAILED


def cancel_exit_code(source: CancelSource, *, deadline: bool) -> int:
    """Return the exit code of a build that ended because somebody asked."""
    if deadline:
        return EXIT_DEADLINE
    return EXIT_STOPPED if source == "service" else EXIT_INTERRUPTED


def plan_unseen(outcome: Outcome | None) -> RetryPlanned | None:
    """Return the plan after an end that the building process could not plan for; ``None`` after any other."""
    match outcome:
        case "killed":
            return RetryPlanned(policy="retry_cold", reason="killed after the grace: its cache state is unclear")
        case "lost":
            return RetryPlanned(policy="retry_cold", reason="nobody saw the end: its cache state is unclear")
        case "crashed":
            return RetryPlanned(policy="investigate", reason="the builder crashed: the same build may crash again")
        case "oom_killed":
            return RetryPlanned(policy="investigate", reason="the kernel killed it for memory: give it more first")
        case _:
            return None


def _cancelled(row: CancellationRow | None) -> int:
    return EXIT_INTERRUPTED if row is None else cancel_exit_code(row.source, deadline=row.deadline)
