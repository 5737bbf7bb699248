"""The report of the stuck-build acceptance test. Pure."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import ClassVar, Literal

from pydantic import JsonValue

from analytics.decided import Decided
from analytics.evidence import Evidence
from analytics.policy import Policy
from analytics.report import common, verdict_of
from analytics.sbat.criteria import CRITERIA
from analytics.sbat.questions import answers
from analytics.sbat.summary import summarized, summary
from analytics.sbat.trial import Trial
from analytics.verdict import Finding
from build_events.events import Verdict


@dataclass(frozen=True, slots=True, kw_only=True)
class SbatReport:
    """Eight findings about one test, and everything needed to reach them again."""

    trial: Trial
    criteria: tuple[Finding, ...]
    given: tuple[str, ...]  # the run ids that were asked about; the rest are their retry chains
    decisions: tuple[Decided, ...]  # recorded before, about these runs

    kind: ClassVar[Literal["sbat", "cbat"]] = "sbat"

    @property
    def verdict(self) -> Verdict:
        """The worst of the criteria."""
        return verdict_of(self.criteria)

    @property
    def evidence(self) -> Evidence:
        """What the verdict stands on."""
        return self.trial.evidence

    @property
    def policy(self) -> Policy:
        """What was asked for."""
        return self.trial.policy

    @property
    def as_of_ns(self) -> int:
        """The time that it was judged at."""
        return self.trial.as_of_ns

    @property
    def subjects(self) -> tuple[str, ...]:
        """What a decision about this test is recorded about: each judged run."""
        return tuple(item.run.run_id for item in self.trial.runs)

    @property
    def artifact_sha256(self) -> str | None:
        """The artifact that the newest chain ended with."""
        return self.trial.finals[-1].run.artifact_sha256 if self.trial.finals else None

    def to_json(self, *, supersedes: Iterable[str] = ()) -> dict[str, JsonValue]:
        """Return the report as one JSON object."""
        chosen = summarized(self.trial)
        report = common(
            self.kind,
            self.criteria,
            policy=self.trial.policy,
            evidence=self.trial.evidence,
            as_of_ns=self.trial.as_of_ns,
            supersedes=supersedes,
        )
        return report | {
            "criteria": [finding.to_json() for finding in self.criteria],
            "summary": summary(self.trial, chosen) if chosen else None,
            "summaries": [summary(self.trial, item) for item in self.trial.runs],
            "runs": [
                {
                    "run_id": item.run.run_id,
                    "route": item.run.route,
                    "outcome": item.run.outcome,
                    "complete": item.run.complete,
                    "retry_of": item.run.retry_of,
                    "given": item.run.run_id in self.given,
                }
                for item in self.trial.runs
            ],
            "operator": [answers(self.trial, item) for item in self.trial.runs],
        }


def judge_trial(trial: Trial, given: Iterable[str], decisions: Iterable[Decided] = ()) -> SbatReport:
    """Return the report on a trial: every criterion, whatever the others say."""
    return SbatReport(
        trial=trial,
        criteria=tuple(criterion(trial) for criterion in CRITERIA),
        given=tuple(given),
        decisions=tuple(decisions),
    )
