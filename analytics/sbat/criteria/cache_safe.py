"""``cache_safe``: the timing cache was used as the policy allows. Pure."""

from collections.abc import Iterator

from analytics.baseline import USE_BUILD
from analytics.evidence import RunEvidence
from analytics.policy import CacheSafe
from analytics.reasons import Code
from analytics.sbat.trial import Trial
from analytics.verdict import Finding, Reason
from build_events.events import TimingCacheRecorded
from build_events.facts import Fact

NOOP = "cache_noop"  # reason recorded where the builder ignores timing caches (TensorRT-RTX): nothing can break


def cache_safe(trial: Trial) -> Finding:
    """Each run says how it used the cache; the policy allows it; only a run with an engine updated it."""
    bounds = trial.policy.sbat.cache_safe
    problems = [reason for item in trial.runs for reason in _problems(item, bounds)]
    modes = sorted({fact.event.mode or "unobserved" for item in trial.runs for fact in item.all(TimingCacheRecorded)})
    return trial.conclude(
        "cache_safe",
        problems,
        met=f"timing cache: {', '.join(modes)}",
        evidence=[fact for item in trial.runs for fact in item.all(TimingCacheRecorded)],
    )


def cache_fact(item: RunEvidence) -> Fact[TimingCacheRecorded] | None:
    """Return what the run said last about its cache: its end knows more than its start."""
    return item.latest(TimingCacheRecorded)


def _problems(item: RunEvidence, bounds: CacheSafe | None) -> Iterator[Reason]:
    name = f"run {item.run.run_id}"
    facts = item.all(TimingCacheRecorded)
    known = cache_fact(item)
    if bounds is None or not bounds.allowed_modes:
        yield Reason(Code.EMPTY_POLICY, "the policy allows no use of a cache", "add [sbat.cache_safe] allowed_modes")
    if known is None or known.event.mode is None:
        yield Reason(Code.CACHE_UNKNOWN, f"{name}: how it used its timing cache is unknown", USE_BUILD)
    for fact in facts:
        mode = fact.event.mode
        if mode is None or fact.event.reason == NOOP:
            continue
        if bounds is not None and bounds.allowed_modes and mode not in bounds.allowed_modes:
            text = f"{name}: cache {mode} ({fact.event.reason}); the policy allows {', '.join(bounds.allowed_modes)}"
            yield Reason(Code.CACHE_MODE_REFUSED, text, "build with another cache policy, or allow the mode")
        # Without a path only the builder's own copy in memory took up measurements.
        shared = mode == "updated" and fact.event.path is not None
        if shared and item.run.outcome is not None and item.run.artifact_sha256 is None:
            text = f"{name} gave no engine and still updated the shared cache"
            yield Reason(Code.CACHE_CHANGED, text, "quarantine the cache file; the next run is cold")
