"""What the validations of an artifact come to. Pure; a validation never follows from a build.

Every required kind must have passed on every runtime target, with enough samples and not too long ago;
one failure on a runtime target, of any kind, is a failure: a new build is judged afresh under its own digest.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from analytics.policy import Validation
from analytics.reasons import Code
from analytics.verdict import Reason
from build_events.events import ValidationRecorded
from build_events.facts import Fact

Status = Literal["not_applicable", "pending", "pass", "fail"]
NS_PER_H = 3_600 * 10**9


@dataclass(frozen=True, slots=True)
class Validated:
    """The validation status of one artifact."""

    status: Status
    reasons: tuple[Reason, ...]  # none for pass and not_applicable
    evidence: tuple[str, ...]  # event ids


def runtime_targets(policy: Validation | None, built_for: Sequence[str]) -> tuple[str, ...]:
    """Return where an artifact must have run: the policy's target, else those that it was built for."""
    if policy is not None and policy.runtime_target is not None:
        return (policy.runtime_target,)
    return tuple(built_for)


def validated(
    digest: str | None,
    facts: Sequence[Fact[ValidationRecorded]],
    policy: Validation | None,
    *,
    route: str | None,
    built_for: Sequence[str],
    as_of_ns: int,
) -> Validated:
    """Return the status of the artifact with this SHA-256; without an artifact it is ``not_applicable``.

    ``built_for`` are the targets that the engine was built for, ``as_of_ns`` the time that ages are counted
    to; the route is named in the next step.
    """
    if digest is None:
        return Validated("not_applicable", (), ())
    mine = [fact for fact in facts if fact.event.artifact_sha256 == digest]
    record = f"record it: enginetrail evidence record {route or 'ROUTE'} FILE"
    reasons = tuple(dict.fromkeys(_problems(digest, mine, policy, built_for, as_of_ns=as_of_ns, record=record)))
    failed = any(reason.code.effect == "reject" for reason in reasons)
    status: Status = "fail" if failed else "pending" if reasons else "pass"
    return Validated(status, reasons, tuple(fact.record.event_id for fact in mine))


def _problems(
    digest: str,
    mine: Sequence[Fact[ValidationRecorded]],
    policy: Validation | None,
    built_for: Sequence[str],
    *,
    as_of_ns: int,
    record: str,
) -> Iterator[Reason]:
    if policy is None or not policy.kinds:
        yield Reason(
            Code.EMPTY_POLICY, "the policy names no kind of validation", "add [validation] kinds to the policy"
        )
        return
    targets = runtime_targets(policy, built_for)
    if not targets:
        step = "name it in the policy: [validation] runtime_target, or build with --target"
        yield Reason(Code.RUNTIME_TARGET_UNKNOWN, "neither policy nor baseline names a runtime target", step)
    for target in targets:
        for fact in mine:
            if fact.event.status == "fail" and fact.event.runtime_target == target:
                text = f"{fact.event.kind} of {digest[:12]} failed on {target}: {fact.event.detail or 'no detail'}"
                yield Reason(Code.VALIDATION_FAILED, text, "do not promote this digest; build a new one")
        for kind in policy.kinds:
            lack = _lack([fact for fact in mine if fact.event.kind == kind], target, policy, as_of_ns)
            if lack is not None:
                code, text = lack
                yield Reason(code, f"{kind} of {digest[:12]} {text}", f"run it on {target} and {record}")


def _lack(
    facts: Sequence[Fact[ValidationRecorded]], target: str, policy: Validation, as_of_ns: int
) -> tuple[Code, str] | None:
    """Return what the validations of one kind lack on one target; the text goes on after their name."""
    here = [fact for fact in facts if fact.event.runtime_target == target]
    passed = [fact for fact in here if fact.event.status == "pass"]
    enough = [fact for fact in passed if fact.event.samples >= policy.min_samples]
    if not here and facts:
        seen = ", ".join(sorted({fact.event.runtime_target for fact in facts}))
        return Code.WRONG_TARGET, f"ran on {seen}, not on {target}"
    if not here:
        return Code.VALIDATION_MISSING, f"on {target} is not on record"
    if passed and not enough:
        most = max(fact.event.samples for fact in passed)
        return Code.INSUFFICIENT_SAMPLES, f"on {target} compared {most}; the policy asks for {policy.min_samples}"
    if enough and not any(_fresh(fact, policy, as_of_ns) for fact in enough):
        return Code.STALE_EVIDENCE, f"on {target} is older than {policy.max_age_h:g} h"
    return None


def _fresh(fact: Fact[ValidationRecorded], policy: Validation, as_of_ns: int) -> bool:
    return policy.max_age_h is None or as_of_ns - fact.record.wall_ns <= policy.max_age_h * NS_PER_H
