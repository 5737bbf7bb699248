"""What the stuck-build acceptance test judges: the given runs with their retry chains, as one test. Pure."""

from collections.abc import Iterable
from dataclasses import dataclass

from analytics import completeness
from analytics.evidence import Evidence, RunEvidence
from analytics.policy import Policy
from analytics.reasons import Code
from analytics.verdict import Finding, Reason, conclude
from build_events.events import BaselineRecorded, Event, ValidationRecorded
from build_events.facts import Fact

ENDED_BY_CANCEL = frozenset({"cancelled", "killed", "completed_despite_cancel"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """One test: evidence, policy and the time it is judged at."""

    evidence: Evidence
    policy: Policy
    as_of_ns: int

    @property
    def runs(self) -> tuple[RunEvidence, ...]:
        """The judged runs, by start."""
        return self.evidence.runs

    @property
    def cancelled(self) -> list[RunEvidence]:
        """The runs that somebody asked to stop and that ended by it or in spite of it."""
        return [item for item in self.runs if item.cancellation and item.run.outcome in ENDED_BY_CANCEL]

    @property
    def finals(self) -> list[RunEvidence]:
        """The runs with an artifact that ends a chain: nobody retried them."""
        retried = {item.run.retry_of for item in self.runs}
        return [item for item in self.runs if item.run.artifact_sha256 and item.run.run_id not in retried]

    def validations(self, item: RunEvidence) -> list[Fact[ValidationRecorded]]:
        """Return the validations that were recorded about a run or about its route."""
        of_route = [fact for route in self.evidence.routes for fact in route.all(ValidationRecorded)]
        return [*item.all(ValidationRecorded), *of_route]

    def conclude(
        self, criterion: str, problems: Iterable[Reason], *, met: str, evidence: Iterable[Fact[Event] | None]
    ) -> Finding:
        """Return a criterion's finding; on incomplete evidence every criterion holds."""
        ids = [fact.record.event_id for fact in evidence if fact is not None]
        return conclude(criterion, [*self._common(), *problems], met=met, evidence=ids)

    def _common(self) -> Iterable[Reason]:
        if not self.runs:
            yield Reason(Code.NO_RUNS, "the test holds no run", "name a run: enginetrail runs")
        known = {item.run.run_id for item in self.runs}
        for item in self.runs:
            if item.run.retry_of is not None and item.run.retry_of not in known:
                text = f"run {item.run.run_id} retries {item.run.retry_of}, of which the log holds nothing"
                yield Reason(Code.RETRIED_RUN_MISSING, text, completeness.RECOVER)
        yield from completeness.problems(self.evidence)


def built_for(item: RunEvidence) -> list[str]:
    """Return the targets that a run's engine was built for; none where the baseline does not say."""
    baseline = item.first(BaselineRecorded)
    return baseline.event.targets if baseline else []


def listed(items: Iterable[RunEvidence]) -> str:
    """Return run ids for a text."""
    return ", ".join(item.run.run_id for item in items)


def counted(number: int, noun: str) -> str:
    """Return a number with its noun, e.g. ``1 run`` and ``2 runs``."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
