"""One request at a time to where the spans go, and what came of it, in words.

Imports OpenTelemetry; ``SpanExport`` imports this on the thread that may wait.
"""

import sys
from collections.abc import Sequence

from opentelemetry.sdk.trace.export import ConsoleSpanExporter, SpanExporter, SpanExportResult

from build_events.telemetry.span import Span
from builder_agent.telemetry.attempt import Attempt, Plain, Quiet
from builder_agent.telemetry.outbox import Answer
from builder_agent.telemetry.sdk_spans import SdkSpans
from builder_agent.telemetry.settings import SignalSettings, TelemetrySettings


class Endpoint:
    """The exporter of one run. One thread owns it, and nobody waits for that thread."""

    def __init__(self, settings: TelemetrySettings) -> None:
        """Connect to nothing yet.

        Raises:
            Exception: whatever the exporter has against its settings.
        """
        assert settings.traces is not None
        self._spans = SdkSpans(settings.resource)
        self._quiet = Quiet()
        self._exporter, self._attempt = _exporter(settings.traces)

    def send(self, spans: Sequence[Span]) -> Answer:
        """Return what came of one request, within its time-out unless the endpoint drips."""
        batch = self._spans.convert(spans)
        with self._quiet:
            if self._exporter.export(batch) is SpanExportResult.SUCCESS:
                return self._attempt.accepted()
        return self._attempt.refused(self._quiet.last)

    def close(self) -> None:
        """Close the connection."""
        with self._quiet:
            self._exporter.shutdown()


def _exporter(settings: SignalSettings) -> tuple[SpanExporter, Attempt]:
    if settings.exporter == "console":
        return ConsoleSpanExporter(out=sys.stderr), Plain()  # stdout is the command's own
    if settings.protocol == "grpc":
        from builder_agent.telemetry import otlp_grpc  # noqa: PLC0415 # a chosen adapter

        return otlp_grpc.exporter(settings.endpoint), otlp_grpc.GrpcAttempt()
    from builder_agent.telemetry import otlp_http  # noqa: PLC0415 # a chosen adapter

    session = otlp_http.ObservedSession()
    return otlp_http.exporter(settings.endpoint, session), session
