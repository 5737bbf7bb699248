"""``parity``: the artifact computes what its reference computes, on its runtime target. Pure."""

from analytics.cbat.candidate import Candidate
from analytics.validation import Validated, runtime_targets, validated
from analytics.verdict import Finding
from build_events.events import ValidationRecorded
from build_events.facts import Fact


def parity(candidate: Candidate) -> Finding:
    """Every kind of validation that the policy names passed, for this digest, on the runtime target."""
    result = validation(candidate)
    mine = set(result.evidence)
    return candidate.conclude(
        "parity",
        result.reasons,
        met=f"{(candidate.judged_digest or '')[:12]} validated on {', '.join(targets(candidate))}",
        evidence=[fact for fact in _facts(candidate) if fact.record.event_id in mine],
    )


def validation(candidate: Candidate) -> Validated:
    """Return the validation status of the judged digest; evidence of another digest never counts."""
    return validated(
        candidate.judged_digest,
        _facts(candidate),
        candidate.policy.validation,
        route=candidate.route,
        built_for=_built_for(candidate),
        as_of_ns=candidate.as_of_ns,
    )


def targets(candidate: Candidate) -> tuple[str, ...]:
    """Return the runtime targets of the judged digest."""
    return runtime_targets(candidate.policy.validation, _built_for(candidate))


def _facts(candidate: Candidate) -> list[Fact[ValidationRecorded]]:
    of_run = candidate.judged.all(ValidationRecorded) if candidate.judged else []
    return [*of_run, *candidate.about_route.all(ValidationRecorded)]


def _built_for(candidate: Candidate) -> list[str]:
    return candidate.baseline.event.targets if candidate.baseline else []
