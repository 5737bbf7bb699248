"""The stuck-build acceptance test over a store."""

from collections.abc import Callable, Sequence

from analytics.errors import UnknownRunError
from analytics.gather import Query, chain, gather
from analytics.policy import Policy
from analytics.sbat.report import SbatReport, judge_trial
from analytics.sbat.trial import Trial
from build_events import events as ev
from build_events.events import Event

READ: tuple[type[Event], ...] = (
    ev.RunStarted, ev.BaselineRecorded, ev.TimingCacheRecorded, ev.HeartbeatRecorded, ev.ProcessObserved,
    ev.CancelRequested, ev.CancelSignalled, ev.CancelObserved, ev.BuilderReturned, ev.ErrorRecorded,
    ev.ArtifactInventoried, ev.ArtifactPublished, ev.ArtifactQuarantined, ev.ArtifactRemoved, ev.CleanupFinished,
    ev.RunFinished, ev.RetryPlanned, ev.ProcessExited, ev.ValidationRecorded,
)  # fmt: skip
SBAT_TYPES = frozenset(cls.type for cls in READ)


def judge(
    query: Query, run_ids: Sequence[str], policy: Policy, *, as_of_ns: int, behind: Callable[[], bool] = lambda: False
) -> SbatReport:
    """Judge runs together with their retry chains, as one test.

    ``as_of_ns`` is the time that ages are counted to, in wall-clock nanoseconds; ``behind`` is asked
    after the answer: whether the store that gave it had not taken in the whole log.

    Raises:
        UnknownRunError: the store holds nothing of a given run.
        EvidenceError: the store holds what this release cannot read.
    """
    known = chain(query, run_ids)
    unknown = sorted(set(run_ids) - set(known))
    if unknown:
        raise UnknownRunError(f"no run {', '.join(unknown)} in the store; list them: enginetrail runs")
    routes = sorted({route for route in known.values() if route is not None})
    gathered = gather(query, sorted(known), routes, SBAT_TYPES, behind=behind)
    trial = Trial(evidence=gathered.evidence, policy=policy, as_of_ns=as_of_ns)
    return judge_trial(trial, run_ids, gathered.decisions)
