"""How builds that were asked to stop obey, what is left of them, and what timing caches do."""

from typing import Final

from deploy.grafana.model import Panel, traces
from deploy.grafana.promql import CANCELLATIONS, EXECUTING, RUNS, SOURCE, SPANS, last, quantile, total

REQUESTS: Final = f"max without (trt_cancel_leg) ({last(f'{CANCELLATIONS}_count', SOURCE)})"
LEGS: Final = last(f"{CANCELLATIONS}_bucket", SOURCE)
CLEANED: Final = last(f"{CANCELLATIONS}_bucket", 'trt_cancel_leg="cleaned"', SOURCE)
ENDED_BY_US: Final = last(f"{RUNS}_count", EXECUTING, 'cicd_pipeline_result=~"cancellation|timeout"')
SPAN_TIMES: Final = f'{SPANS}_bucket{{span_name="run.cancelled",{SOURCE}}}'
OF_SOURCE: Final = "trt.cancel.source=${__field.labels.trt_cancel_source}"

CANCELLATION: Final = (
    Panel(
        title="Cancelled runs by source",
        description="Runs with a request to stop, by who asked.",
        unit="short",
        kind="bargauge",
        queries={"{{trt_cancel_source}}": total("trt_cancel_source", REQUESTS)},
        link=traces("Their traces", operation="run.cancelled", tags=OF_SOURCE),
    ),
    Panel(
        title="Time to obey, by leg",
        description="From the request: flag visible, first False, builder back, files in order, process gone.",
        unit="s",
        kind="bargauge",
        queries={
            "median {{trt_cancel_leg}}": quantile(0.5, "trt_cancel_leg", LEGS),
            "p95 {{trt_cancel_leg}}": quantile(0.95, "trt_cancel_leg", LEGS),
        },
        link=traces("Cancellations", operation="run.cancelled"),
    ),
    Panel(
        title="Time to clean, by source",
        description="95th percentile from the request until nothing of the run is left at its target.",
        unit="s",
        kind="bargauge",
        queries={"p95 {{trt_cancel_source}}": quantile(0.95, "trt_cancel_source", CLEANED)},
        link=traces("Their traces", operation="run.cancelled", tags=OF_SOURCE),
    ),
    Panel(
        title="How long a cancellation takes",
        description="Requested to cleaned, from the spans of the hour before: 95th percentile by source.",
        unit="s",
        width=16,
        queries={"{{trt_cancel_source}}": quantile(0.95, "trt_cancel_source", f"increase({SPAN_TIMES}[1h])")},
        link=traces("Cancellations", operation="run.cancelled"),
    ),
    Panel(
        title="Ended by us",
        description="Runs that were cancelled or ran out of time.",
        unit="short",
        kind="stat",
        queries={"{{cicd_pipeline_result}}": total("cicd_pipeline_result", ENDED_BY_US)},
    ),
    Panel(
        title="Timing cache",
        description="Runs by how they used a timing cache; reuse is a decision that each run records with its reason.",
        unit="short",
        kind="bargauge",
        width=12,
        queries={"{{trt_timing_cache_mode}}": total("trt_timing_cache_mode", last("trt_timing_cache_runs_total"))},
        link=traces("Their traces", tags="trt.timing_cache.mode=${__field.labels.trt_timing_cache_mode}"),
    ),
    Panel(
        title="Cleanup",
        description="Runs by how their files were put in order, and by whom: the build itself, or who came after it.",
        unit="short",
        kind="bargauge",
        width=12,
        queries={
            "{{trt_cleanup_status}} by {{trt_cleanup_by}}": total(
                "trt_cleanup_status, trt_cleanup_by", last("trt_cleanup_runs_total")
            )
        },
    ),
    Panel(
        title="What the agent costs",
        description="Median of each run's mean and p99 of its own work in a callback; budget 2 µs and 10 µs.",
        unit="s",
        kind="bargauge",
        width=12,
        queries={
            "{{trt_callback_statistic}}": quantile(
                0.5, "trt_callback_statistic", last("trt_callback_cost_seconds_bucket")
            )
        },
    ),
)
