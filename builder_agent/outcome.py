"""How a run ended, from what was seen of it. Pure; the table is docs/contract.md section 3."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from build_events.events import Outcome
from builder_agent.texts import cut

CANCELED_BY_USER = "BuildCanceled"  # in TensorRT's text; its error code 7 has other meanings too
UNOBSERVED = "unobserved"


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """What the run saw of itself."""

    published: bool = False
    discarded_late: bool = False  # an engine came after the request, and late engines are not wanted
    builder_returned: bool = False  # save or build was reached
    returned_false: bool = False  # the monitor asked the builder to stop
    cancel_requested: bool = False
    builder_errors: Sequence[str] = ()
    monitor_fault: Exception | None = None
    artifact_error: Exception | None = None
    exception: BaseException | None = None  # it left the body of the run


@dataclass(frozen=True, slots=True, kw_only=True)
class Conclusion:
    """What run.finished says."""

    outcome: Literal["completed", "cancelled", "failed"]
    error_type: str | None = None
    error_message: str | None = None


def conclude(evidence: Evidence) -> Conclusion:
    """Return the outcome. A published engine is a completed run, whatever was asked for too late."""
    if evidence.published:
        return Conclusion(outcome="completed")
    if evidence.artifact_error is not None:
        return _failed("artifact_write", str(evidence.artifact_error))
    if evidence.discarded_late or evidence.returned_false:
        return Conclusion(outcome="cancelled")
    if evidence.exception is not None:
        return _after_exception(evidence, evidence.exception)
    if not evidence.builder_returned:
        return _failed("no_engine", "the run ended without run.save or run.build")
    return _refused(evidence)


def public_outcome(conclusion: Conclusion, *, cancel_requested: bool) -> Outcome:
    """Return the outcome under the name that people see: a completed run knows of requests that came too late."""
    if conclusion.outcome == "completed" and cancel_requested:
        return "completed_despite_cancel"
    return conclusion.outcome


def _after_exception(evidence: Evidence, exception: BaseException) -> Conclusion:
    # An interrupt that ended the body is a request that was obeyed.
    if evidence.cancel_requested and not isinstance(exception, Exception):
        return Conclusion(outcome="cancelled")
    return _failed(getattr(exception, "error_type", type(exception).__qualname__), str(exception))


def _refused(evidence: Evidence) -> Conclusion:
    text = "\n".join(evidence.builder_errors)
    if CANCELED_BY_USER in text:
        # We did not ask for it, so a callback went wrong in a way that TensorRT took for a False.
        if evidence.cancel_requested:
            return Conclusion(outcome="cancelled")
        fault = evidence.monitor_fault
        return _failed("monitor_fault", f"{type(fault).__name__}: {fault}" if fault else text)
    return _failed("builder_error", text or UNOBSERVED)


def _failed(error_type: str, message: str) -> Conclusion:
    return Conclusion(outcome="failed", error_type=error_type, error_message=cut(message))
