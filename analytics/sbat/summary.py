"""The summary of one run: these keys and values, exactly. Pure.

Where a run says nothing, the value is null: a missing fact is a state of its own.
"""

from pydantic import JsonValue

from analytics.evidence import RunEvidence
from analytics.sbat.criteria.cache_safe import cache_fact
from analytics.sbat.criteria.clean import cleanup
from analytics.sbat.criteria.measured import leg_ns
from analytics.sbat.criteria.retried_validated import planned, validation_of
from analytics.sbat.trial import Trial
from build_events.clock import NS_PER_MS
from build_events.events import BaselineRecorded, RunStarted

FRAMEWORK = "Optijara Stuck-Build Acceptance Test"


def summary(trial: Trial, item: RunEvidence) -> dict[str, JsonValue]:
    """Return the summary of one run of the test."""
    started, baseline = item.first(RunStarted), item.first(BaselineRecorded)
    cache, cleaned, ended = cache_fact(item), leg_ns(item, "cleaned"), cleanup(item)
    return {
        "framework": FRAMEWORK,
        "tensorrtVersion": baseline.event.tensorrt_version if baseline else None,
        "language": started.event.language if started else None,
        "buildConfigHash": baseline.event.build_config_hash if baseline else None,
        "gpuSku": baseline.event.gpu_sku if baseline else None,
        "timingCacheMode": cache.event.mode if cache else None,
        "cancelSource": item.cancellation.source if item.cancellation else None,
        "cancelLatencyMs": None if cleaned is None else cleaned / NS_PER_MS,
        "cleanupStatus": ended.event.status if ended else None,
        "retryPolicy": planned(item) or item.run.retry_policy,
        "validationStatus": validation_of(trial, item).status,
    }


def summarized(trial: Trial) -> RunEvidence | None:
    """Return the run that the report's summary is of: the last cancelled one, else the last."""
    return next(reversed(trial.cancelled), None) or next(reversed(trial.runs), None)
