"""``measured``: each latency of a cancellation, not inferred from a dead terminal. Pure."""

from collections.abc import Iterator

from analytics.evidence import RunEvidence
from analytics.policy import Measured
from analytics.reasons import Code
from analytics.sbat.criteria.interruptible import CANCEL_ONE
from analytics.sbat.trial import Trial
from analytics.verdict import Finding, Reason
from build_events.clock import NS_PER_MS
from build_events.events import (
    BuilderReturned,
    CancelObserved,
    CancelRequested,
    CleanupFinished,
    Event,
    ProcessExited,
)
from build_events.facts import Fact

# The legs that an outcome implies (the contract, section 4); embedded runs have no exit that anybody sees.
IMPLIED = {
    "cancelled": ("observed", "returned", "cleaned", "exited"),
    "completed_despite_cancel": ("returned", "exited"),
    "killed": ("cleaned", "exited"),
}


def measured(trial: Trial) -> Finding:
    """Every leg that the outcome implies was measured, and none is over its bound."""
    bounds = trial.policy.sbat.measured
    problems = [reason for item in trial.cancelled for reason in _problems(item, bounds)]
    if not trial.cancelled:
        problems.append(Reason(Code.NO_CANCELLATION, "no run of the test was stopped", CANCEL_ONE))
    if bounds is None:
        problems.append(Reason(Code.EMPTY_POLICY, "the policy has no [sbat.measured]", "add it to the policy"))
    return trial.conclude(
        "measured",
        problems,
        met="; ".join(_legs(item) for item in trial.cancelled),
        evidence=[fact for item in trial.cancelled for fact in _evidence(item)],
    )


def leg_ns(item: RunEvidence, leg: str) -> int | None:
    """Return nanoseconds from the request to a leg's end; ``None`` where it was never reached."""
    row = item.cancellation
    if row is None:
        return None
    values = {
        "observed": row.observed_ns,
        "returned": row.returned_ns,
        "cleaned": row.cleaned_ns,
        "exited": row.exited_ns,
    }
    return values[leg]


def implied_legs(item: RunEvidence) -> tuple[str, ...]:
    """Return the legs that must have been measured."""
    legs = IMPLIED.get(item.run.outcome or "", ())
    return tuple(leg for leg in legs if leg != "exited" or item.run.mode != "embedded")


def _problems(item: RunEvidence, bounds: Measured | None) -> Iterator[Reason]:
    name = f"run {item.run.run_id}"
    missing = [leg for leg in implied_legs(item) if leg_ns(item, leg) is None]
    if missing:
        text = f"{name}: {item.run.outcome} without a measured {', '.join(missing)}"
        yield Reason(Code.LEG_MISSING, text, f"enginetrail show {item.run.run_id}")
    for leg in ("observed", "returned", "cleaned", "exited"):
        value = leg_ns(item, leg)
        bound = getattr(bounds, f"max_{leg}_ms", None)
        if value is not None and bound is not None and value > bound * NS_PER_MS:
            text = f"{name}: {leg} after {value / NS_PER_MS:.1f} ms; the policy allows {bound:g} ms"
            yield Reason(
                Code.BOUND_EXCEEDED, text, f"see which phase it waited for: enginetrail show {item.run.run_id}"
            )


def _legs(item: RunEvidence) -> str:
    values = ((leg, leg_ns(item, leg)) for leg in implied_legs(item))
    text = ", ".join(f"{leg} {value / NS_PER_MS:.1f} ms" for leg, value in values if value is not None)
    return f"run {item.run.run_id}: {text}"


def _evidence(item: RunEvidence) -> list[Fact[Event]]:
    kinds: tuple[type[Event], ...] = (
        CancelRequested,
        CancelObserved,
        BuilderReturned,
        CleanupFinished,
        ProcessExited,
    )
    return [fact for kind in kinds for fact in item.all(kind)]
