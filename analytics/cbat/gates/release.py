"""``release``: canary, rollback and approval. Pure."""

from analytics.cbat.candidate import Candidate
from analytics.reasons import Code
from analytics.verdict import Finding, Reason

LATER = "this release of EngineTrail records none; the gate holds until one does"


def release(candidate: Candidate) -> Finding:
    """A canary passed, a rollback was drilled, somebody approved.

    No release records any of these yet, so this gate holds and names each.
    """
    subject = (candidate.judged_digest or "the artifact")[:12]
    problems = [
        Reason(Code.CANARY_MISSING, f"no canary of {subject}", LATER),
        Reason(Code.ROLLBACK_DRILL_MISSING, f"no executed rollback drill for {subject}", LATER),
        Reason(Code.APPROVAL_MISSING, f"nobody approved {subject}", LATER),
    ]
    return candidate.conclude("release", problems, met="canary, rollback drill and approval", evidence=[])
