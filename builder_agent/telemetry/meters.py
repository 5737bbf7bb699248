"""The OpenTelemetry side of metrics: a MeterProvider of our own, read and sent when we say.

Imports OpenTelemetry; ``MetricsExport`` imports this on its thread.
"""

import contextlib
import math
import sys
from collections.abc import Callable, Mapping
from typing import Any

from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import (
    ConsoleMetricExporter,
    MetricExporter,
    MetricExportResult,
    MetricsData,
    PeriodicExportingMetricReader,
)
from opentelemetry.sdk.resources import Resource
from typing_extensions import override

from build_events.telemetry import names
from build_events.telemetry.measurements import Measurement
from build_events.telemetry.metrics import Metric
from builder_agent.telemetry.attempt import Plain, Quiet
from builder_agent.telemetry.outbox import Answer
from builder_agent.telemetry.settings import REQUEST_TIMEOUT_S, SignalSettings


class Meters:
    """All values of one process. Owned by one thread."""

    def __init__(self, settings: SignalSettings, attributes: Mapping[str, str | int]) -> None:
        """Connect to nothing yet. ``attributes`` are the resource."""
        self._exporter = _Noted(_exporter(settings))
        # The SDK's timer would begin anew in each forked child of the host and write the same series from there.
        self._reader = PeriodicExportingMetricReader(self._exporter, export_interval_millis=math.inf)
        provider = MeterProvider(
            [self._reader],
            Resource(attributes, names.SCHEMA_URL),
            shutdown_on_exit=False,  # it would wait for the endpoint without a bound
        )
        self._provider = provider
        version = str(attributes.get(names.SERVICE_VERSION, ""))
        self._meter = provider.get_meter(names.SCOPE, version, names.SCHEMA_URL)
        self._instruments: dict[Metric, Callable[[float, Mapping[str, str]], None]] = {}

    def record(self, item: Measurement) -> None:
        """Record one measurement."""
        if item.metric not in self._instruments:
            self._instruments[item.metric] = self._instrument(item.metric)
        self._instruments[item.metric](item.value, item.labels)

    def export(self) -> Answer | None:
        """Send all values, and wait; return what came of it, ``None`` where there is no value yet."""
        self._exporter.answer = None
        self._reader.collect()
        return self._exporter.answer

    def close(self) -> None:
        """Close the connection."""
        with contextlib.suppress(Exception):  # nobody depends on it any more
            self._exporter.shutdown()

    def _instrument(self, metric: Metric) -> Callable[[float, Mapping[str, str]], None]:
        name, unit, description = metric.name, metric.unit, metric.description
        match metric.instrument:
            case "counter":
                return self._meter.create_counter(name, unit, description).add
            case "updowncounter":
                return self._meter.create_up_down_counter(name, unit, description).add
            case "gauge":
                return self._meter.create_gauge(name, unit, description).set
            case "histogram":
                return self._meter.create_histogram(
                    name, unit, description, explicit_bucket_boundaries_advisory=metric.buckets
                ).record


class _Noted(MetricExporter):
    """An exporter whose results are kept: the SDK's reader tells them nobody.

    Values are cumulative, whatever is preferred: one that does not arrive is contained in the next, and
    Prometheus takes deltas of one writer only.
    """

    def __init__(self, inner: MetricExporter) -> None:
        super().__init__()
        self._inner = inner
        self._quiet = Quiet()
        self.answer: Answer | None = None  # to the last request

    @override
    def export(self, metrics_data: MetricsData, timeout_millis: float = 10_000, **kwargs: Any) -> MetricExportResult:
        try:
            with self._quiet:
                result = self._inner.export(metrics_data, timeout_millis, **kwargs)
        except Exception as error:  # noqa: BLE001 # whatever a transport raises: the values did not arrive
            self.answer = Answer(refused=f"{type(error).__name__}: {error}")
            return MetricExportResult.FAILURE
        accepted = result is MetricExportResult.SUCCESS
        self.answer = Answer() if accepted else Plain().refused(self._quiet.last)
        return result

    @override
    def force_flush(self, timeout_millis: float = 10_000) -> bool:
        return self._inner.force_flush(timeout_millis)

    @override
    def shutdown(self, timeout_millis: float = 30_000, **kwargs: Any) -> None:
        with self._quiet:
            self._inner.shutdown(timeout_millis, **kwargs)


def _exporter(settings: SignalSettings) -> MetricExporter:
    """Return the exporter that the settings choose; one request takes at most ``REQUEST_TIMEOUT_S``."""
    if settings.exporter == "console":
        return ConsoleMetricExporter(out=sys.stderr)  # stdout is the command's own
    if settings.protocol == "grpc":
        from opentelemetry.exporter.otlp.proto.grpc import metric_exporter as otlp_grpc  # noqa: PLC0415 # chosen

        return otlp_grpc.OTLPMetricExporter(endpoint=settings.endpoint, timeout=REQUEST_TIMEOUT_S)
    from opentelemetry.exporter.otlp.proto.http import metric_exporter as otlp_http  # noqa: PLC0415 # chosen

    return otlp_http.OTLPMetricExporter(endpoint=settings.endpoint, timeout=REQUEST_TIMEOUT_S)
