"""Reach a recorded verdict again: the same policy, the same time, and no input that came later."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pydantic

from analytics.cbat.candidate import Candidate
from analytics.cbat.evaluate import CBAT_TYPES
from analytics.cbat.report import judge_candidate
from analytics.decisions import Report
from analytics.errors import EvidenceError
from analytics.from_records import evidence_of
from analytics.gather import Query, records
from analytics.policy import Policy
from analytics.report import EVALUATOR_VERSION
from analytics.sbat.judge import SBAT_TYPES
from analytics.sbat.report import judge_trial
from analytics.sbat.trial import Trial
from build_events import ranges
from build_events.envelope import Recorded
from build_events.events import DecisionRecorded, Verdict
from build_events.state import Ranges


class _Context(pydantic.BaseModel):
    """What a report says about its inputs besides their highest sequences."""

    behind: bool
    gaps: dict[str, list[tuple[int, int]]]
    dead_letters: dict[str, int]


@dataclass(frozen=True, slots=True)
class Horizon:
    """What a decision could see: nothing above the recorded sequences, nothing that was missing then."""

    highest: Mapping[str, int]
    absent: Mapping[str, Ranges]

    def admits(self, record: Recorded) -> bool:
        """Say whether the decision had seen a record."""
        stream = record.stream.stream_id
        if stream not in self.highest or record.sequence > self.highest[stream]:
            return False
        return not ranges.contains(self.absent.get(stream, ()), record.sequence)


@dataclass(frozen=True, slots=True, kw_only=True)
class Replayed:
    """A recorded verdict beside the one that its inputs give now."""

    recorded: Verdict
    verdict: Verdict
    inputs_match: bool  # the log still gives exactly the recorded evidence
    evaluator_match: bool  # the rules are of the recorded version

    @property
    def same(self) -> bool:
        """The verdict was reached again."""
        return self.recorded == self.verdict


def replay(query: Query, decision: DecisionRecorded) -> Replayed:
    """Judge again what a decision judged, from the events that it used.

    Raises:
        EvidenceError: the decision's report lacks what replaying needs, or the store cannot be read.
    """
    try:
        report = _report(query, decision)
    except (KeyError, TypeError, pydantic.ValidationError) as error:
        raise EvidenceError(
            f"the decision's report cannot be replayed: {error}; was it written by another release?"
        ) from None
    return Replayed(
        recorded=decision.verdict,
        verdict=report.verdict,
        inputs_match=report.evidence.sha256 == decision.inputs_sha256,
        evaluator_match=decision.evaluator_version == EVALUATOR_VERSION,
    )


def _report(query: Query, decision: DecisionRecorded) -> Report:
    report: dict[str, Any] = decision.report
    policy = Policy.model_validate(report["policy"]["content"])
    context = _Context.model_validate(report["context"])
    absent = {stream: tuple(gap) for stream, gap in context.gaps.items()}
    horizon = Horizon(decision.inputs, absent)
    seen = [record for record in records(query, sorted(decision.inputs)) if horizon.admits(record)]
    if decision.kind == "sbat":
        evidence = evidence_of(seen, SBAT_TYPES, dead_letters=context.dead_letters, behind=context.behind)
        given = [run["run_id"] for run in report["runs"] if run["given"]]
        return judge_trial(Trial(evidence=evidence, policy=policy, as_of_ns=decision.as_of_ns), given)
    evidence = evidence_of(
        seen,
        CBAT_TYPES,
        phases=False,
        routes=[report["route"]],
        dead_letters=context.dead_letters,
        behind=context.behind,
    )
    candidate = Candidate(
        route=report["route"],
        digest=report["requested_digest"],
        evidence=evidence,
        policy=policy,
        as_of_ns=decision.as_of_ns,
    )
    return judge_candidate(candidate)
