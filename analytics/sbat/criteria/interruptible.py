"""``interruptible``: a request stopped a build through the one shared state. Pure."""

from collections.abc import Iterator

from analytics.evidence import RunEvidence
from analytics.reasons import Code
from analytics.sbat.trial import Trial, counted
from analytics.verdict import Finding, Reason
from build_events.events import CancelObserved, CancelRequested, CancelSignalled, Event, RunFinished
from build_events.facts import Fact

CANCEL_ONE = "cancel a build of this route (Ctrl-C, or --deadline SECONDS) and judge that run too"


def interruptible(trial: Trial) -> Finding:
    """At least one run was stopped, and the build named the request that stopped it.

    A run that failed or crashed after the builder was told to stop rejects: it did not unwind. One that
    failed before it could see the request says nothing about cancellation, and holds.
    """
    proven = [item for item in trial.cancelled if _signalled(item)]
    sources = sorted({item.cancellation.source for item in proven if item.cancellation})
    problems = [reason for item in trial.runs for reason in _problems(item)]
    if not proven:
        problems.append(
            Reason(Code.NO_CANCELLATION, "no run of the test was stopped through the shared state", CANCEL_ONE)
        )
    return trial.conclude(
        "interruptible",
        problems,
        met=f"{counted(len(proven), 'run')} stopped by {', '.join(sources)}; the build named the request",
        evidence=[fact for item in trial.runs for fact in _evidence(item)],
    )


def _evidence(item: RunEvidence) -> list[Fact[Event]]:
    kinds: tuple[type[Event], ...] = (CancelRequested, CancelSignalled, CancelObserved)
    return [fact for kind in kinds for fact in item.all(kind)]


def _signalled(item: RunEvidence) -> bool:
    requests = {fact.event.request_id for fact in item.all(CancelRequested)}
    return any(fact.event.request_id in requests for fact in item.all(CancelSignalled))


def _problems(item: RunEvidence) -> Iterator[Reason]:
    name, outcome, row = f"run {item.run.run_id}", item.run.outcome, item.cancellation
    if row is None:
        finished = item.first(RunFinished)
        if finished is not None and finished.event.outcome == "cancelled":
            yield Reason(Code.NOT_SIGNALLED, f"{name} says it was cancelled, and nobody asked for it", CANCEL_ONE)
        return
    match outcome:
        case "failed" | "crashed" | "oom_killed" if row.observed_ns is not None:
            text = f"{name}: the builder was told to stop and the run {outcome}"
            yield Reason(Code.CANCEL_FAILED, text, f"read the builder's words: enginetrail show {item.run.run_id}")
        case "failed" | "crashed" | "oom_killed":
            yield Reason(Code.CANCEL_OVERTAKEN, f"{name} {outcome} before the builder saw the request", CANCEL_ONE)
        case "cancelled" | "killed" if not _signalled(item):
            yield Reason(Code.NOT_SIGNALLED, f"{name}: the build never named request {row.request_id}", CANCEL_ONE)
        # A request that came too late to be signalled proves nothing, and is no fault either.
        case _:
            return
