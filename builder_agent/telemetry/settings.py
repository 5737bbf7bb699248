"""Where spans and metrics go, as values. ``environment`` chooses them; nobody else reads the environment."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from build_events.telemetry.live_spans import Intervals

Signal = Literal["traces", "metrics"]
Protocol = Literal["grpc", "http/protobuf"]

# Of one request. The SDK's default of 10 s would hold a run's end up; its variable means milliseconds
# by the specification and seconds to the Python exporters, so it is not read.
REQUEST_TIMEOUT_S = 1.0
EXIT_S = 2.0  # what a run's end waits for its exporter, whatever the endpoint does


@dataclass(frozen=True, slots=True, kw_only=True)
class SignalSettings:
    """One signal's way out.

    Headers, compression, certificates and credentials of OTLP are read by the OpenTelemetry exporter itself.
    """

    signal: Signal
    exporter: Literal["otlp", "console"]
    protocol: Protocol = "http/protobuf"
    endpoint: str  # the URL that requests go to; of the console: its name

    @property
    def package(self) -> str:
        """The module that exports so."""
        if self.exporter == "console":
            return "opentelemetry.sdk"
        return f"opentelemetry.exporter.otlp.proto.{'grpc' if self.protocol == 'grpc' else 'http'}"


@dataclass(frozen=True, slots=True, kw_only=True)
class TelemetrySettings:
    """What a run exports. ``None`` = this signal is off."""

    traces: SignalSettings | None = None
    metrics: SignalSettings | None = None
    resource: Mapping[str, str] = field(default_factory=dict)  # of the user: wins over ours
    intervals: Intervals = field(default_factory=Intervals)
    metric_interval_s: float = 60.0  # between two exports of a process that goes on
    problems: tuple[str, ...] = ()  # values that cannot be used, each with what to do: to be said once

    @property
    def exports(self) -> bool:
        """Whether anything is exported."""
        return self.traces is not None or self.metrics is not None

    def heartbeat_ns(self, default_ns: int) -> int:
        """Return how often a run must give a sign of life: markers and slices come with its events."""
        if self.traces is None:
            return default_ns
        return min(default_ns, self.intervals.marker_after_ns, self.intervals.slice_every_ns)


OFF = TelemetrySettings()
