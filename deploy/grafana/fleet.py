"""How the builds of all machines are doing, and what is known of them."""

from typing import Final

from deploy.grafana.model import Panel, traces
from deploy.grafana.promql import EXECUTING, ROUTE, RUNS, SPANS, last, quantile, total

ENDED: Final = last(f"{RUNS}_count", EXECUTING, ROUTE)
SUCCEEDED: Final = last(f"{RUNS}_count", EXECUTING, ROUTE, 'cicd_pipeline_result="success"')
TIMES: Final = last(f"{RUNS}_bucket", EXECUTING, ROUTE)
GAPS: Final = last("trt_build_silent_gap_seconds_bucket", ROUTE)
PHASES: Final = f'{SPANS}_bucket{{service_name="enginetrail-build",cicd_pipeline_task_run_result!=""}}'
ROOTS: Final = (
    f'traces_span_metrics_calls_total{{service_name="enginetrail-build",span_kind="SPAN_KIND_SERVER",{ROUTE}}}'
)

FLEET: Final = (
    Panel(
        title="Running now",
        description="Runs by the state they are in. A run whose process was killed leaves when its series expires.",
        unit="short",
        kind="stat",
        queries={
            "{{cicd_pipeline_run_state}}": total("cicd_pipeline_run_state", f"cicd_pipeline_run_active{{{ROUTE}}}")
        },
    ),
    Panel(
        title="Runs by result",
        description="Runs that ended in the time range.",
        unit="short",
        kind="bargauge",
        queries={"{{cicd_pipeline_result}}": total("cicd_pipeline_result", ENDED)},
        link=traces("Traces with this result", tags="cicd.pipeline.result=${__field.labels.cicd_pipeline_result}"),
    ),
    Panel(
        title="Share that succeeded",
        description="Of the runs that ended in the time range. Finished is not correct: see the verdicts.",
        unit="percentunit",
        kind="stat",
        queries={"succeeded": f"sum({SUCCEEDED}) / sum({ENDED})"},
    ),
    Panel(
        title="Build time by route",
        description="Time in the state executing, from the start to the builder's return: median and 95th percentile.",
        unit="s",
        kind="bargauge",
        width=12,
        queries={
            "median {{cicd_pipeline_name}}": quantile(0.5, "cicd_pipeline_name", TIMES),
            "p95 {{cicd_pipeline_name}}": quantile(0.95, "cicd_pipeline_name", TIMES),
        },
    ),
    Panel(
        title="Silence by route",
        description="Longest time of a run between two callbacks: how long the builder says nothing.",
        unit="s",
        kind="bargauge",
        width=12,
        queries={"p95 {{cicd_pipeline_name}}": quantile(0.95, "cicd_pipeline_name", GAPS)},
    ),
    Panel(
        title="Runs",
        description="Every run of the time range with its build time; the instance leads to its trace.",
        unit="s",
        kind="table",
        width=16,
        height=9,
        queries={
            "build time": total(
                "instance, cicd_pipeline_name, cicd_pipeline_result", last(f"{RUNS}_sum", EXECUTING, ROUTE)
            )
        },
        link=traces("Trace of this run", tags="service.instance.id=${__data.fields.instance}"),
    ),
    Panel(
        title="Errors by type",
        description="Runs that failed by the build's fault or the machine's.",
        unit="short",
        kind="bargauge",
        height=9,
        queries={"{{error_type}}": total("error_type", last("cicd_pipeline_run_errors_total", ROUTE))},
        link=traces("Traces with this error", tags="error.type=${__field.labels.error_type}"),
    ),
    Panel(
        title="Slowest phases",
        description="95th percentile of the builder's phases that ended in the time range, from their spans.",
        unit="s",
        kind="bargauge",
        width=12,
        height=9,
        queries={"{{span_name}}": f"topk(10, {quantile(0.95, 'span_name', f'increase({PHASES}[$__range])')})"},
        link=traces("Traces with this phase", operation="${__field.labels.span_name}"),
    ),
    Panel(
        title="Runs that ended",
        description="In the hour before, from their spans.",
        unit="short",
        width=12,
        height=9,
        queries={"{{cicd_pipeline_result}}": total("cicd_pipeline_result", f"increase({ROOTS}[1h])")},
        link=traces("Traces with this result", tags="cicd.pipeline.result=${__field.labels.cicd_pipeline_result}"),
    ),
    Panel(
        title="Runs in the store",
        description="By outcome, as the collectors' stores hold them; also runs that no exporter told of.",
        unit="short",
        kind="bargauge",
        queries={"{{trt_build_outcome}}": total("trt_build_outcome", "enginetrail_collector_runs")},
    ),
    Panel(
        title="Verdicts",
        description="Decisions that were recorded, by acceptance test.",
        unit="short",
        kind="bargauge",
        queries={
            "{{enginetrail_verdict_kind}} {{enginetrail_verdict_value}}": total(
                "enginetrail_verdict_kind, enginetrail_verdict_value", "enginetrail_collector_verdicts_total"
            )
        },
    ),
    Panel(
        title="What is missing",
        description="Counts against completeness: a gate holds on each of these.",
        unit="short",
        kind="bargauge",
        queries={
            "dead letters": "sum(enginetrail_collector_dead_letters_total)",
            "fenced runs": "sum(enginetrail_collector_fenced_total)",
            "dropped {{enginetrail_dropped_kind}}": total(
                "enginetrail_dropped_kind", "enginetrail_collector_dropped_total"
            ),
            "dropped {{enginetrail_dropped_kind}}, says its exporter": total(
                "enginetrail_dropped_kind", last("enginetrail_run_dropped_total")
            ),
        },
    ),
    Panel(
        title="Taken in",
        description="Events per second into the collectors' stores.",
        unit="short",
        width=6,
        queries={"{{instance}}": total("instance", "rate(enginetrail_collector_events_total[$__rate_interval])")},
    ),
    Panel(
        title="Behind Kafka",
        description="Records that the stores have not taken in yet.",
        unit="short",
        width=6,
        queries={"{{instance}}": total("instance", "enginetrail_collector_lag")},
    ),
    Panel(
        title="Behind local logs",
        description="Bytes that the stores have not taken in yet.",
        unit="bytes",
        width=6,
        queries={"{{instance}}": total("instance", "enginetrail_collector_lag_size_bytes")},
    ),
    Panel(
        title="Waiting in spools",
        description="Events that the log behind a home's spool has not acknowledged; the fullest home.",
        unit="short",
        width=6,
        queries={"events": "max(enginetrail_spool_waiting)"},
    ),
)
