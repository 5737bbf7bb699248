"""What the checkpoint-to-bundle acceptance test judges: one digest of one route. Pure."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from analytics import completeness
from analytics.evidence import NAMED, Evidence, RouteEvidence, RunEvidence
from analytics.policy import Policy
from analytics.reasons import Code
from analytics.verdict import Finding, Reason, conclude
from build_events.events import BaselineRecorded, Event
from build_events.facts import Fact
from build_events.state import RunRow

COMPLETED = frozenset({"completed", "completed_despite_cancel"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """A route, the run whose artifact is judged, and what was recorded about both.

    The evidence holds the judged run and the newer ones; killed and lost runs have no artifact that
    counts, so they are never judged.
    """

    route: str
    digest: str | None  # asked for; null: that of the newest completed run
    evidence: Evidence
    policy: Policy
    as_of_ns: int

    @property
    def judged(self) -> RunEvidence | None:
        """The run whose artifact is judged."""
        row = newest_completed([item.run for item in self.evidence.runs], self.digest)
        return self.evidence.run(row.run_id) if row else None

    @property
    def newer(self) -> list[RunEvidence]:
        """Runs that began after the judged one, or all where none can be judged; by start."""
        judged = self.judged
        return [item for item in self.evidence.runs if judged is None or item.order > judged.order]

    @property
    def about_route(self) -> RouteEvidence:
        """What was recorded about the route."""
        return next(item for item in self.evidence.routes if item.route == self.route)

    @property
    def baseline(self) -> Fact[BaselineRecorded] | None:
        """What the judged run was built with."""
        return self.judged.first(BaselineRecorded) if self.judged else None

    @property
    def judged_digest(self) -> str | None:
        """The artifact under judgement; an asked digest stays the subject even if nobody published it."""
        return self.digest or (self.judged.run.artifact_sha256 if self.judged else None)

    def conclude(
        self, gate: str, problems: Iterable[Reason], *, met: str, evidence: Sequence[Fact[Event] | None]
    ) -> Finding:
        """Return a gate's finding; on incomplete evidence every gate holds."""
        ids = [fact.record.event_id for fact in evidence if fact is not None]
        return conclude(gate, [*self._common(), *problems], met=met, evidence=ids)

    def warnings(self) -> list[Reason]:
        """Return newer runs that did not end, or whose end nobody saw: they change no verdict."""
        return [
            reason
            for item in self.newer
            if self.judged is not None
            for reason in completeness.run_problems(item)
            if reason.code in {Code.RUN_OPEN, Code.RUN_LOST}
        ]

    def _common(self) -> Iterator[Reason]:
        judged = self.judged
        if judged is None:
            yield from self._nothing_to_judge()
        # Nothing about the other runs tells why nobody published the digest that was asked for.
        runs = (judged,) if judged else self.evidence.runs if self.digest is None else ()
        yield from completeness.problems(Evidence(runs=runs, routes=self.evidence.routes, behind=self.evidence.behind))

    def _nothing_to_judge(self) -> Iterator[Reason]:
        build = f"build it: enginetrail build MODEL.onnx -o ENGINE --route {self.route}"
        if not self.evidence.runs:
            yield Reason(Code.NO_RUNS, f"route {self.route} has no run", build)
        elif self.digest is not None:
            text = f"no completed run of route {self.route} published {self.digest[:12]}"
            yield Reason(Code.UNKNOWN_DIGEST, text, f"list its runs: enginetrail runs --route {self.route}")
        else:
            last = self.evidence.runs[-NAMED:]
            ends = ", ".join(f"{item.run.run_id} {item.run.outcome or 'open'}" for item in last)
            yield Reason(Code.NO_COMPLETED_RUN, f"no run of route {self.route} completed with an engine: {ends}", build)


def newest_completed(runs: Iterable[RunRow], digest: str | None) -> RunRow | None:
    """Return the run with the greatest (start, id) that completed with an artifact, or with this digest."""
    found = [
        run
        for run in runs
        if run.outcome in COMPLETED and run.artifact_sha256 is not None and digest in {None, run.artifact_sha256}
    ]
    return max(found, key=lambda run: (run.started_at_ns or 0, run.run_id), default=None)
