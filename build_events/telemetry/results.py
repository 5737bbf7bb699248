"""How a run and its phases ended, in the words of the CI/CD conventions. Pure."""

from dataclasses import dataclass
from typing import assert_never

from build_events.state import PhaseStatus, RunRow
from build_events.telemetry import names
from build_events.telemetry.names import Result
from build_events.telemetry.span import Attributes


@dataclass(frozen=True, slots=True, kw_only=True)
class Ending:
    """The result of a run or a phase. ``error_type`` is set for failure and error alone."""

    result: Result
    error_type: str | None = None
    reason: str | None = None

    @property
    def is_error(self) -> bool:
        """Whether the span's status is an error: somebody who is obeyed is none."""
        return self.result in {"failure", "error", "timeout"}

    def attributes(self, result_name: str) -> Attributes:
        """Return the attributes that say so; ``result_name`` is the run's or the task's."""
        result = {result_name: self.result}
        return result if self.error_type is None else {**result, names.ERROR_TYPE: self.error_type}


def ending(run: RunRow, *, deadline: bool) -> Ending | None:
    """Return how a run ended; ``None`` while it is open. ``deadline``: its winning request was its deadline."""
    match run.outcome:
        case None:
            return None
        case "completed" | "completed_despite_cancel":
            return Ending(result="success")
        case "cancelled" | "killed":
            return Ending(result="timeout", reason="deadline") if deadline else Ending(result="cancellation")
        case "failed":
            return Ending(result="failure", error_type=run.error_type or "_OTHER", reason=run.error_message)
        case "crashed" | "oom_killed":
            return Ending(result="error", error_type=run.outcome, reason=run.error_message or run.outcome)
        case "lost":
            return Ending(result="error", error_type="worker_lost", reason="nobody saw the run's end")
        case _:
            assert_never(run.outcome)


def phase_ending(status: PhaseStatus, run: Ending) -> Ending:
    """Return how a phase ended, in a run that ended so."""
    match status:
        case "finished":
            return Ending(result="success")
        case "cancelled":
            return run if run.result == "timeout" else Ending(result="cancellation")
        case "failed":
            return Ending(result="failure", error_type=run.error_type or "_OTHER", reason=run.reason)
        case "killed" | "crashed" | "oom_killed" | "lost":
            return run
        case "open":  # its promise was not kept, although the run ended by its own word
            return Ending(result="error", error_type="unfinished", reason="the phase was never finished")
        case _:
            assert_never(status)
