"""Every metric that leaves this program: a closed list. What is not in it is refused.

Labels have few values: never a run, a digest, a host or a path. The route is the user's own list, and
the conventions require it. ``docs/telemetry.md`` tables them all, made from here.
"""

from dataclasses import dataclass
from typing import Final, Literal

from build_events.telemetry import names

OTHER_ERROR: Final = "_OTHER"
ERROR_TYPES: Final = frozenset(
    {
        "artifact_write",
        "builder_error",
        "crashed",
        "monitor_fault",
        "no_engine",
        "oom_killed",
        "parser_error",
        "worker_lost",
        OTHER_ERROR,  # the name of a host's exception, for one
    }
)

Instrument = Literal["counter", "updowncounter", "gauge", "histogram"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Metric:
    """One metric: what is measured, in which unit (UCUM), and by which labels alone."""

    name: str
    instrument: Instrument
    unit: str
    description: str
    labels: frozenset[str] = frozenset()
    buckets: tuple[float, ...] = ()  # upper bounds of a histogram, in its unit


# Seconds. The same as those of span metrics in otel-config.yaml: builds take up to hours.
_BUILD_S = (0.1, 0.5, 1, 5, 15, 30, 60, 120, 300, 600, 1200, 2400, 3600, 7200, 14400, 28800)
_CALLBACK_S = (2.5e-7, 5e-7, 1e-6, 2e-6, 5e-6, 1e-5, 2e-5, 5e-5, 1e-4, 1e-3, 1e-2)
_CANCEL_S = (0.001, 0.005, 0.01, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 1800, 3600, 14400)

RUN_DURATION: Final = Metric(
    name="cicd.pipeline.run.duration",
    instrument="histogram",
    unit="s",
    description="Duration of a pipeline run grouped by pipeline, state and result.",
    labels=frozenset({names.PIPELINE_NAME, names.PIPELINE_RUN_STATE, names.PIPELINE_RESULT, names.ERROR_TYPE}),
    buckets=_BUILD_S,
)
RUN_ACTIVE: Final = Metric(
    name="cicd.pipeline.run.active",
    instrument="updowncounter",
    unit="{run}",
    description="The number of pipeline runs currently active in the system by state.",
    labels=frozenset({names.PIPELINE_NAME, names.PIPELINE_RUN_STATE}),
)
RUN_ERRORS: Final = Metric(
    name="cicd.pipeline.run.errors",
    instrument="counter",
    unit="{error}",
    description="The number of errors encountered in pipeline runs (eg. compile, test failures).",
    labels=frozenset({names.PIPELINE_NAME, names.ERROR_TYPE}),
)
CANCEL_LATENCY: Final = Metric(
    name="trt.cancel.latency",
    instrument="histogram",
    unit="s",
    description="Time from the request to cancel a run to each step of obeying it, its leg.",
    labels=frozenset({names.CANCEL_LEG, names.CANCEL_SOURCE}),
    buckets=_CANCEL_S,
)
SILENT_GAP: Final = Metric(
    name="trt.build.silent_gap",
    instrument="histogram",
    unit="s",
    description="Longest time of a run between two callbacks of the builder inside a phase.",
    labels=frozenset({names.PIPELINE_NAME}),
    buckets=_BUILD_S,
)
CALLBACK_COST: Final = Metric(
    name="trt.callback.cost",
    instrument="histogram",
    unit="s",
    description="What the agent's own work in a callback took, sampled: each run's mean, p99 and max.",
    labels=frozenset({names.CALLBACK_STATISTIC}),
    buckets=_CALLBACK_S,
)
CACHE_RUNS: Final = Metric(
    name="trt.timing_cache.runs",
    instrument="counter",
    unit="{run}",
    description="Runs by how they used a timing cache.",
    labels=frozenset({names.TIMING_CACHE_MODE}),
)
CLEANUP_RUNS: Final = Metric(
    name="trt.cleanup.runs",
    instrument="counter",
    unit="{run}",
    description="Runs by how their files were put in order, and by whom.",
    labels=frozenset({names.CLEANUP_STATUS, names.CLEANUP_BY}),
)
RUN_DROPPED: Final = Metric(
    name="enginetrail.run.dropped",
    instrument="counter",
    unit="{item}",
    description="Events and spans of runs that were dropped and declared so.",
    labels=frozenset({names.DROPPED_KIND}),
)
SPOOL_WAITING: Final = Metric(
    name="enginetrail.spool.waiting",
    instrument="gauge",
    unit="{event}",
    description="Events in this home's spool that the log behind it has not acknowledged.",
)
COLLECTOR_EVENTS: Final = Metric(
    name="enginetrail.collector.events",
    instrument="counter",
    unit="{event}",
    description="Events that a collector's store has taken in, since it was made.",
)
COLLECTOR_LAG: Final = Metric(
    name="enginetrail.collector.lag",
    instrument="gauge",
    unit="{record}",
    description="Records of a Kafka log that are not in the store yet.",
)
COLLECTOR_LAG_BYTES: Final = Metric(
    name="enginetrail.collector.lag_size",
    instrument="gauge",
    unit="By",
    description="Bytes of a local log that are not in the store yet.",
)
COLLECTOR_DEAD_LETTERS: Final = Metric(
    name="enginetrail.collector.dead_letters",
    instrument="counter",
    unit="{record}",
    description="Records of the log that hold no event, or were gone before they could be read.",
)
COLLECTOR_RUNS: Final = Metric(
    name="enginetrail.collector.runs",
    instrument="updowncounter",
    unit="{run}",
    description="Runs in a collector's store by outcome; `open` while there is none.",
    labels=frozenset({names.BUILD_OUTCOME}),
)
COLLECTOR_FENCED: Final = Metric(
    name="enginetrail.collector.fenced",
    instrument="counter",
    unit="{run}",
    description="Runs that fell silent for longer than their lease and were fenced.",
)
COLLECTOR_VERDICTS: Final = Metric(
    name="enginetrail.collector.verdicts",
    instrument="counter",
    unit="{verdict}",
    description="Decisions in a collector's store by acceptance test and verdict.",
    labels=frozenset({names.VERDICT_KIND, names.VERDICT}),
)
COLLECTOR_DROPPED: Final = Metric(
    name="enginetrail.collector.dropped",
    instrument="counter",
    unit="{item}",
    description="What runs declared as dropped, as a collector's store holds it.",
    labels=frozenset({names.DROPPED_KIND}),
)
METRICS: Final = (
    RUN_DURATION, RUN_ACTIVE, RUN_ERRORS, CANCEL_LATENCY, SILENT_GAP, CALLBACK_COST, CACHE_RUNS, CLEANUP_RUNS,
    RUN_DROPPED, SPOOL_WAITING, COLLECTOR_EVENTS, COLLECTOR_LAG, COLLECTOR_LAG_BYTES, COLLECTOR_DEAD_LETTERS,
    COLLECTOR_RUNS, COLLECTOR_FENCED, COLLECTOR_VERDICTS, COLLECTOR_DROPPED,
)  # fmt: skip


def error_type(text: str) -> str:
    """Return the error type as a label: one of few."""
    return text if text in ERROR_TYPES else OTHER_ERROR
