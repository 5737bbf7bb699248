"""The checkpoint-to-bundle acceptance test over a store."""

from collections.abc import Callable

from analytics.cbat.candidate import Candidate, newest_completed
from analytics.cbat.report import CbatReport, judge_candidate
from analytics.gather import Query, gather, run_rows
from analytics.policy import Policy
from build_events import events as ev
from build_events.events import Event

READ: tuple[type[Event], ...] = (
    ev.RunStarted, ev.BaselineRecorded, ev.ArtifactInventoried, ev.ArtifactPublished, ev.ArtifactQuarantined,
    ev.ArtifactRemoved, ev.RunFinished, ev.ValidationRecorded, ev.SourceRecorded,
)  # fmt: skip
CBAT_TYPES = frozenset(cls.type for cls in READ)


def evaluate(
    query: Query,
    route: str,
    policy: Policy,
    *,
    digest: str | None = None,
    as_of_ns: int,
    behind: Callable[[], bool] = lambda: False,
) -> CbatReport:
    """Judge the digest of a route's newest completed run, or ``digest``.

    ``as_of_ns`` is the time that ages are counted to, in wall-clock nanoseconds; ``behind`` is asked
    after the answer: whether the store that gave it had not taken in the whole log.

    Raises:
        EvidenceError: the store holds what this release cannot read.
    """
    rows = run_rows(query, route)
    judged = newest_completed(rows, digest)
    # Older runs change nothing about a newer digest; without one, every run of the route is named.
    since = (judged.started_at_ns or 0, judged.run_id) if judged else (0, "")
    run_ids = sorted(run.run_id for run in rows if (run.started_at_ns or 0, run.run_id) >= since)
    gathered = gather(query, run_ids, [route], CBAT_TYPES, phases=False, behind=behind)
    candidate = Candidate(route=route, digest=digest, evidence=gathered.evidence, policy=policy, as_of_ns=as_of_ns)
    return judge_candidate(candidate, gathered.decisions)
