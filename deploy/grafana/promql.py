"""PromQL of the dashboards.

Metrics of runs come from processes that live for one build, so their last value in the time range counts
(``last_over_time``); rates are of what lives long: the OTel Collector's span metrics, and collectors.
"""

from typing import Final

ROUTE: Final = 'cicd_pipeline_name=~"$route"'
SOURCE: Final = 'trt_cancel_source=~"$source"'
EXECUTING: Final = 'cicd_pipeline_run_state="executing"'
RUNS: Final = "cicd_pipeline_run_duration_seconds"  # in the state executing: one per run
SPANS: Final = "traces_span_metrics_duration_seconds"
CANCELLATIONS: Final = "trt_cancel_latency_seconds"


def last(metric: str, *matchers: str) -> str:
    """Return the last value of each series in the time range: what each run said at its end."""
    selector = f"{{{','.join(matchers)}}}" if matchers else ""
    return f"last_over_time({metric}{selector}[$__range])"


def total(by: str, series: str) -> str:
    """Return the sum over all writers, by labels."""
    return f"sum by ({by}) ({series})"


def quantile(share: float, by: str, buckets: str) -> str:
    """Return a quantile over the buckets of all writers, by a label."""
    return f"histogram_quantile({share:g}, sum by (le, {by}) ({buckets}))"
