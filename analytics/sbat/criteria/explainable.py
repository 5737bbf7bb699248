"""``explainable``: what the build ran with is known, and a slow build is told from a stuck one. Pure."""

from collections.abc import Iterator

from analytics.baseline import USE_BUILD, baseline_problems
from analytics.evidence import RunEvidence
from analytics.policy import Explainable
from analytics.reasons import Code
from analytics.sbat.trial import Trial, counted
from analytics.verdict import Finding, Reason
from build_events.clock import NS_PER_MS
from build_events.events import (
    BaselineRecorded,
    Event,
    HeartbeatRecorded,
    ProcessExited,
    ProcessObserved,
    RunStarted,
    TimingCacheRecorded,
)
from build_events.facts import Fact


def explainable(trial: Trial) -> Finding:
    """Baseline, cache state, network kind, GPU or its absence, process activity, and life in the longest silence."""
    bounds = trial.policy.sbat.explainable
    problems = [reason for item in trial.runs for reason in _problems(item, bounds)]
    silence = max((longest_silence_ns(item) or 0 for item in trial.runs), default=0) / NS_PER_MS
    runs = counted(len(trial.runs), "run")
    return trial.conclude(
        "explainable",
        problems,
        met=f"{runs} with baseline, cache state and process; longest known silence {silence:.0f} ms",
        evidence=[fact for item in trial.runs for fact in _evidence(item)],
    )


def longest_silence_ns(item: RunEvidence) -> int | None:
    """Return the longest time without a callback that phases or heartbeats know of; ``None`` if neither does."""
    beats = [fact.event.since_callback_ns for fact in item.all(HeartbeatRecorded)]
    known = [gap for gap in (item.phases.longest_gap_ns, *beats) if gap is not None]
    return max(known, default=None)


def _evidence(item: RunEvidence) -> list[Fact[Event]]:
    kinds: tuple[type[Event], ...] = (BaselineRecorded, TimingCacheRecorded, ProcessObserved, HeartbeatRecorded)
    return [fact for kind in kinds for fact in item.all(kind)]


def _problems(item: RunEvidence, bounds: Explainable | None) -> Iterator[Reason]:
    name = f"run {item.run.run_id}"
    yield from baseline_problems(item)
    caches = item.all(TimingCacheRecorded)
    if not any(fact.event.mode for fact in caches):
        yield Reason(Code.CACHE_UNKNOWN, f"{name}: how it used its timing cache is unknown", USE_BUILD)
    yield from _process_problems(name, item)
    if bounds is None:
        yield Reason(Code.EMPTY_POLICY, "the policy has no [sbat.explainable]", "add it to the policy")
    else:
        yield from _silence_problems(name, item, bounds)


def _process_problems(name: str, item: RunEvidence) -> Iterator[Reason]:
    started = item.first(RunStarted)
    interval = started.event.heartbeat_interval_ns if started else 0
    moments = {fact.event.moment for fact in item.all(ProcessObserved)}
    # A build shorter than one interval ends before its first heartbeat is due.
    brief = item.run.duration_ns is not None and item.run.duration_ns < interval
    seen = {
        "before": "before" in moments,
        "during": "during" in moments or brief or item.first(HeartbeatRecorded) is not None,
        "after": "after" in moments or item.first(ProcessExited) is not None,
    }
    unseen = [moment for moment, there in seen.items() if not there]
    if unseen:
        text = f"{name}: its process was not observed {', '.join(unseen)} the build"
        yield Reason(Code.PROCESS_UNSEEN, text, "build under `observe` or `enginetrail build`, to the end")


def _silence_problems(name: str, item: RunEvidence, bounds: Explainable) -> Iterator[Reason]:
    silence = longest_silence_ns(item)
    if silence is None:
        text = f"{name}: no callback and no heartbeat tells how long it was silent"
        yield Reason(Code.SILENCE_UNMEASURED, text, f"enginetrail show {item.run.run_id}")
        return
    where = f" in phase {item.phases.longest_gap_phase}" if silence == item.phases.longest_gap_ns else ""
    if bounds.max_silence_ms is not None and silence > bounds.max_silence_ms * NS_PER_MS:
        text = f"{name}: silent for {silence / NS_PER_MS:.0f} ms{where}; the policy allows {bounds.max_silence_ms:g} ms"
        yield Reason(Code.BOUND_EXCEEDED, text, "build in smaller parts, or give the policy a longer max_silence_ms")
    started = item.first(RunStarted)
    unheard = bounds.unheard_heartbeats * (started.event.heartbeat_interval_ns if started else 0)
    heard = max((fact.event.since_callback_ns or 0 for fact in item.all(HeartbeatRecorded)), default=0)
    if silence - heard > unheard:
        rest = (silence - heard) / NS_PER_MS
        text = f"{name}: silent for {silence / NS_PER_MS:.0f} ms{where}, the last {rest:.0f} ms unheard"
        yield Reason(Code.SILENCE_UNWATCHED, text, "look for a suspended or starved process at that time")
