"""What a run's events say in numbers."""

from collections.abc import Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st
from opentelemetry.semconv._incubating.metrics import cicd_metrics

from build_events import events as ev
from build_events import metric_docs
from build_events.clock import NS_PER_S
from build_events.envelope import Recorded
from build_events.telemetry import metrics, names
from build_events.telemetry.measurements import Measurement, RunMeasurements
from build_events.telemetry.metrics import METRICS, Metric
from tests.build_events.scenes import ENDS, End, Scene, flatten

OPERATIONS = flatten([[[], []], []])
LIKE_A_RUN = ("id", "sha256", "hash", "digest", "path", "host", "pid", "instance", "url")


def played(end: End, *, supervised: bool = True) -> list[Recorded]:
    """Return the records of a run."""
    return Scene(supervised=supervised).play(end, OPERATIONS, len(OPERATIONS) // 2)


def measured(records: Iterable[Recorded]) -> list[Measurement]:
    """Return all that a run's records say, as they come and at the end."""
    run = RunMeasurements()
    told = [item for record in records for item in run.take([record])]
    return told + run.final()


def total(told: Iterable[Measurement], metric: Metric) -> float:
    """Return the sum of a metric's values."""
    return sum(item.value for item in told if item.metric is metric)


def test_names_of_metrics_are_listed_once_and_standard_ones_are_as_in_the_conventions() -> None:
    """Name, unit and instrument of ``cicd.*`` are those of the installed package."""
    assert len({metric.name for metric in METRICS}) == len(METRICS)
    documented = {value: name for name, value in vars(cicd_metrics).items() if name.startswith("CICD_")}
    for metric in METRICS:
        if metric.name.startswith("cicd."):
            calls: list[tuple[str, str, str]] = []
            getattr(cicd_metrics, f"create_{documented[metric.name].lower()}")(_Noting(calls))
            assert calls == [(metric.instrument, metric.unit, metric.description)]
        else:
            assert metric.name.startswith(("trt.", "enginetrail."))


class _Noting:
    """A meter as the conventions' own functions use it: notes what is made."""

    def __init__(self, calls: list[tuple[str, str, str]]) -> None:
        self.calls = calls

    def create_histogram(self, *, name: str, description: str, unit: str) -> None:
        """Note a histogram."""
        del name
        self.calls.append(("histogram", unit, description))

    def create_counter(self, *, name: str, description: str, unit: str) -> None:
        """Note a counter."""
        del name
        self.calls.append(("counter", unit, description))

    def create_up_down_counter(self, *, name: str, description: str, unit: str) -> None:
        """Note a counter that can go down."""
        del name
        self.calls.append(("updowncounter", unit, description))


def test_labels_come_from_the_list_of_names_and_none_can_name_a_run() -> None:
    """A label of many values makes a backend unusable; units never read as a ratio."""
    known = {value for name, value in vars(names).items() if name.isupper() and isinstance(value, str)}
    for metric in METRICS:
        assert metric.labels <= known
        assert not [label for label in metric.labels if label.rpartition(".")[2] in LIKE_A_RUN]
        assert bool(metric.buckets) == (metric.instrument == "histogram")
        assert list(metric.buckets) == sorted(set(metric.buckets))
    assert metrics.RUN_DURATION.buckets[-1] == 8 * 3600
    assert metrics.CANCEL_LATENCY.buckets[-1] == 4 * 3600


def test_a_measurement_with_another_label_is_refused() -> None:
    """The list is closed in the code, not on paper."""
    with pytest.raises(ValueError, match=r"has no label cicd\.pipeline\.run\.id"):
        Measurement(metrics.RUN_ACTIVE, 1, {names.PIPELINE_RUN_ID: "run-1"})


@given(text=st.text() | st.sampled_from(sorted(metrics.ERROR_TYPES)))
def test_an_error_type_is_one_of_few(text: str) -> None:
    """The name of a host's exception is not."""
    found = metrics.error_type(text)
    assert found in metrics.ERROR_TYPES
    assert found == (text if text in metrics.ERROR_TYPES else "_OTHER")


@pytest.mark.parametrize("end", ENDS)
@pytest.mark.parametrize("supervised", [True, False], ids=["supervised", "embedded"])
def test_a_run_is_active_from_its_start_to_its_end_and_its_end_is_told_once(end: End, *, supervised: bool) -> None:
    """Whatever way it ends: nothing stays active, and a second ``final`` adds nothing."""
    records = played(end, supervised=supervised)
    run = RunMeasurements()
    live = [item for record in records for item in run.take([record])]
    assert run.take(records) == []
    assert total(live, metrics.RUN_ACTIVE) == 1
    last = run.final()
    assert total(last, metrics.RUN_ACTIVE) == -1
    assert run.final() == []
    modes = [item.labels for item in last if item.metric is metrics.CACHE_RUNS]
    assert modes == ([] if end == "open" else [{names.TIMING_CACHE_MODE: "cold"}])
    assert all(item.value >= 0 for item in last if item.metric is not metrics.RUN_ACTIVE)


@pytest.mark.parametrize("end", [end for end in ENDS if end not in {"open", "lost"}])
def test_durations_have_the_runs_result_and_add_up_to_it(end: End) -> None:
    """Executing and finalizing together reach from the start to the last fact."""
    records = played(end)
    told = measured(records)
    durations = [item for item in told if item.metric is metrics.RUN_DURATION]
    results = {item.labels[names.PIPELINE_RESULT] for item in durations}
    error_types = {item.labels.get(names.ERROR_TYPE) for item in durations}
    assert len(results) == len(error_types) == 1
    assert (total(told, metrics.RUN_ERRORS) == 1) == (results <= {"failure", "error"}) == (error_types != {None})
    last = max(r.monotonic_ns for r in records if isinstance(r.event, ev.ProcessExited | ev.CleanupFinished))
    assert sum(item.value for item in durations) == pytest.approx((last - records[0].monotonic_ns) / NS_PER_S)


def test_a_queued_run_has_a_time_in_pending_without_a_result() -> None:
    """The result was not known then."""
    records = played("completed")
    start = records[0]
    context = Recorded(
        stream=start.stream,
        sequence=max(r.sequence for r in records if r.stream == start.stream) + 1,
        wall_ns=start.wall_ns,
        monotonic_ns=start.monotonic_ns,
        event=ev.RunContextRecorded(queued_at_ns=start.wall_ns - 7 * NS_PER_S),
    )
    told = measured([*records, context])
    (pending,) = [item for item in told if item.labels.get(names.PIPELINE_RUN_STATE) == "pending"]
    assert (pending.metric, pending.value, names.PIPELINE_RESULT in pending.labels) == (metrics.RUN_DURATION, 7, False)


def test_each_leg_of_a_cancellation_that_was_reached_is_measured() -> None:
    """By its source; a leg that was never reached has no value."""
    told = measured(played("cancelled", supervised=False))
    legs = {item.labels[names.CANCEL_LEG]: item for item in told if item.metric is metrics.CANCEL_LATENCY}
    assert legs.keys() == {"signalled", "observed", "returned", "cleaned"}
    assert {item.labels[names.CANCEL_SOURCE] for item in legs.values()} == {"ctrl_c"}
    assert legs["signalled"].value < legs["observed"].value < legs["returned"].value < legs["cleaned"].value


def test_what_a_run_declares_as_dropped_is_counted_by_kind() -> None:
    """Events by the main stream's end, spans and metrics by their exporters' ends."""
    records = played("completed")
    closed = next(r for r in records if isinstance(r.event, ev.StreamClosed))
    observer = records[-1]
    ends: list[ev.Event] = [
        ev.ExportFinished(signal="traces", exported=1, dropped=3),
        ev.ExportFinished(signal="metrics", exported=0, dropped=2),
    ]
    more = [
        Recorded(stream=observer.stream, sequence=observer.sequence + n, wall_ns=1, monotonic_ns=1, event=event)
        for n, event in enumerate(ends, 1)
    ]
    dropping = Recorded(
        stream=closed.stream,
        sequence=closed.sequence,
        wall_ns=closed.wall_ns,
        monotonic_ns=closed.monotonic_ns,
        event=ev.StreamClosed(events=closed.sequence + 1, dropped=5),
    )
    told = measured([dropping if r is closed else r for r in records] + more)
    counted = {item.labels[names.DROPPED_KIND]: item.value for item in told if item.metric is metrics.RUN_DROPPED}
    assert counted == {"event": 5, "span": 3, "collection": 2}


def test_what_a_callback_cost_is_measured_by_statistic() -> None:
    """As the run recorded it, in seconds."""
    start = played("open")[0]
    cost = Recorded(
        stream=start.stream,
        sequence=1,
        wall_ns=1,
        monotonic_ns=1,
        event=ev.CallbackCostRecorded(samples=9, mean_ns=400, p99_ns=2_000, max_ns=9_000),
    )
    told = [item for item in measured([start, cost]) if item.metric is metrics.CALLBACK_COST]
    assert {item.labels[names.CALLBACK_STATISTIC]: item.value for item in told} == pytest.approx(
        {"mean": 4e-7, "p99": 2e-6, "max": 9e-6}
    )


def test_the_silent_gap_is_the_longest_of_the_phases() -> None:
    """In seconds; a run without a callback has none."""
    (gap,) = [item for item in measured(played("completed")) if item.metric is metrics.SILENT_GAP]
    assert gap.value == pytest.approx(9e-9)
    empty = Scene().play("completed", [], 0)
    assert not [item for item in measured(empty) if item.metric is metrics.SILENT_GAP]


def test_the_document_lists_every_metric() -> None:
    """And a place for the table is needed."""
    assert metric_docs.main(["--check"]) == 0
    assert all(f"| `{metric.name}` |" in metric_docs.table() for metric in METRICS)
    with pytest.raises(ValueError, match="where the table belongs"):
        metric_docs.with_table("no place")
