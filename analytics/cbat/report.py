"""The report of the checkpoint-to-bundle acceptance test. Pure."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import ClassVar, Literal

from pydantic import JsonValue

from analytics.cbat.candidate import Candidate
from analytics.cbat.gates import GATES
from analytics.cbat.gates.parity import parity, targets
from analytics.cbat.gates.source import sources
from analytics.decided import Decided
from analytics.evidence import Evidence
from analytics.policy import Policy
from analytics.report import common, verdict_of
from analytics.verdict import Finding
from build_events.events import Verdict


@dataclass(frozen=True, slots=True, kw_only=True)
class CbatReport:
    """Five findings about one digest of a route, and everything needed to reach them again."""

    candidate: Candidate
    gates: tuple[Finding, ...]
    decisions: tuple[Decided, ...]  # recorded before, about this route

    kind: ClassVar[Literal["sbat", "cbat"]] = "cbat"

    @property
    def verdict(self) -> Verdict:
        """The worst of the gates."""
        return verdict_of(self.gates)

    @property
    def evidence(self) -> Evidence:
        """What the verdict stands on."""
        return self.candidate.evidence

    @property
    def policy(self) -> Policy:
        """What was asked for."""
        return self.candidate.policy

    @property
    def as_of_ns(self) -> int:
        """The time that it was judged at."""
        return self.candidate.as_of_ns

    @property
    def subjects(self) -> tuple[str, ...]:
        """What a decision is recorded about: the route. Of a route without runs nothing is recorded."""
        return (self.candidate.route,) if self.candidate.evidence.runs else ()

    @property
    def artifact_sha256(self) -> str | None:
        """The judged artifact."""
        return self.candidate.judged_digest

    def to_json(self, *, supersedes: Iterable[str] = ()) -> dict[str, JsonValue]:
        """Return the report as one JSON object."""
        candidate = self.candidate
        report = common(
            self.kind,
            self.gates,
            policy=candidate.policy,
            evidence=candidate.evidence,
            as_of_ns=candidate.as_of_ns,
            supersedes=supersedes,
        )
        judged = candidate.judged
        return report | {
            "gates": [finding.to_json() for finding in self.gates],
            "summary": summary(candidate),
            "route": candidate.route,
            "requested_digest": candidate.digest,
            "run_id": judged.run.run_id if judged else None,
            "warnings": [reason.to_json() for reason in candidate.warnings()],
        }


def summary(candidate: Candidate) -> dict[str, JsonValue]:
    """Return the summary: these keys and values, exactly; null where nothing is known."""
    revisions = sorted({fact.event.checkpoint_revision for fact in sources(candidate)})
    return {
        "route_name": candidate.route,
        "checkpoint_revision": ", ".join(revisions) or None,
        "bundle_digest": candidate.judged_digest,
        "runtime_target": ", ".join(targets(candidate)) or None,
        "validation_status": parity(candidate).verdict,
        # No release records canaries and drills yet; a rollback that nobody drilled is blocked.
        "canary_status": "not_started",
        "rollback_status": "blocked",
    }


def judge_candidate(candidate: Candidate, decisions: Iterable[Decided] = ()) -> CbatReport:
    """Return the report on a candidate: every gate, whatever the others say."""
    return CbatReport(candidate=candidate, gates=tuple(gate(candidate) for gate in GATES), decisions=tuple(decisions))
