"""What SBAT and CBAT reports have in common. Pure."""

from collections.abc import Iterable, Sequence
from typing import Literal

from pydantic import JsonValue

from analytics.evidence import Evidence
from analytics.policy import Policy
from analytics.verdict import Finding, worst
from build_events.clock import to_iso
from build_events.events import Verdict

# Goes up with every change that can change a verdict on the same evidence.
EVALUATOR_VERSION = "1"


def verdict_of(findings: Sequence[Finding]) -> Verdict:
    """Return the worst of the findings; ``hold`` of none."""
    return worst(finding.verdict for finding in findings)


def common(
    kind: Literal["sbat", "cbat"],
    findings: Sequence[Finding],
    *,
    policy: Policy,
    evidence: Evidence,
    as_of_ns: int,
    supersedes: Iterable[str],
) -> dict[str, JsonValue]:
    """Return the keys that both reports have.

    ``context`` is what replaying needs besides the inputs: what was missing, and damaged, at that time.
    """
    return {
        "kind": kind,
        "verdict": verdict_of(findings),
        "policy": {"name": policy.name, "sha256": policy.sha256, "content": policy.content()},
        "evaluator_version": EVALUATOR_VERSION,
        "as_of": to_iso(as_of_ns),
        "inputs": dict(evidence.inputs),
        "inputs_digest": evidence.sha256,
        "context": {
            "behind": evidence.behind,
            "gaps": {stream: [[low, high] for low, high in gap] for stream, gap in evidence.gaps.items()},
            "dead_letters": dict(evidence.dead_letters),
        },
        "supersedes": [*sorted(supersedes)],
    }
