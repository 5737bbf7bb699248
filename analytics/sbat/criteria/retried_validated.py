"""``retried_validated``: a run without an engine was retried as planned, and somebody validated the result. Pure."""

from collections.abc import Iterator, Sequence

from analytics.evidence import RunEvidence
from analytics.reasons import Code
from analytics.sbat.trial import Trial, built_for
from analytics.validation import Validated, validated
from analytics.verdict import Finding, Reason
from build_events.events import Event, RetryPlanned, RetryPolicy, RunFinished, RunStarted
from build_events.facts import Fact


def retried_validated(trial: Trial) -> Finding:
    """Every run without an engine has a plan and a retry that followed it; the last artifact passed validation.

    A retry that gives no engine either needs a plan and a retry of its own, so the chain ends in an engine.
    """
    without = [item for item in trial.runs if item.run.outcome is not None and item.run.artifact_sha256 is None]
    problems = [reason for item in without for reason in _retry_problems(item, trial.runs)]
    if not without:
        step = "judge a cancelled run with its retry"
        problems.append(Reason(Code.NO_RETRY, "every run of the test gave an engine: none had to be retried", step))
    if not trial.finals and not problems:
        problems.append(Reason(Code.RETRY_MISSING, "every run of the test was retried, and none gave an engine"))
    problems += [reason for item in trial.finals for reason in validation_of(trial, item).reasons]
    digests = ", ".join((item.run.artifact_sha256 or "")[:12] for item in trial.finals)
    return trial.conclude(
        "retried_validated",
        problems,
        met=f"{len(without)} retried as planned; artifact {digests} validated",
        evidence=[fact for item in trial.runs for fact in _evidence(trial, item)],
    )


def validation_of(trial: Trial, item: RunEvidence) -> Validated:
    """Return the validation status of a run's artifact; ``not_applicable`` without one."""
    return validated(
        item.run.artifact_sha256,
        trial.validations(item),
        trial.policy.validation,
        route=item.run.route,
        built_for=built_for(item),
        as_of_ns=trial.as_of_ns,
    )


def planned(item: RunEvidence) -> RetryPolicy | None:
    """Return what is to be done after a run, by the plan recorded last."""
    plan = item.latest(RetryPlanned)
    return plan.event.policy if plan else None


def _evidence(trial: Trial, item: RunEvidence) -> list[Fact[Event]]:
    kinds: tuple[type[Event], ...] = (RetryPlanned, RunFinished)
    retry = [fact for fact in item.all(RunStarted) if fact.event.retry_of is not None]
    digests = {final.run.artifact_sha256 for final in trial.finals}
    validations = [fact for fact in trial.validations(item) if fact.event.artifact_sha256 in digests]
    return [*(fact for kind in kinds for fact in item.all(kind)), *retry, *validations]


def _retry_problems(item: RunEvidence, runs: Sequence[RunEvidence]) -> Iterator[Reason]:
    name, plan = f"run {item.run.run_id}", planned(item)
    if plan is None:
        text = f"{name} gave no engine and recorded no plan"
        yield Reason(Code.RETRY_PLAN_MISSING, text, f"enginetrail build ... --retry-of {item.run.run_id}")
        return
    retries = [other for other in runs if other.run.retry_of == item.run.run_id]
    followed = [other for other in retries if other.run.retry_policy == plan]
    step = f"enginetrail build ... --retry-of {item.run.run_id} --retry-policy {plan}"
    if not retries:
        yield Reason(Code.RETRY_MISSING, f"{name}: {plan} is planned, and nobody did it", step)
    elif not followed:
        did = ", ".join(f"{other.run.run_id} ({other.run.retry_policy or 'no policy'})" for other in retries)
        yield Reason(Code.RETRY_PLAN_IGNORED, f"{name}: {plan} was planned, and the retry was {did}", step)
