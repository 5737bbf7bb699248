"""OTLP over gRPC, and what the status codes mean."""

import logging
from typing import Final

import grpc
from opentelemetry.exporter.otlp.proto.grpc.trace_exporter import OTLPSpanExporter
from typing_extensions import override

from builder_agent.telemetry.attempt import Plain
from builder_agent.telemetry.outbox import Answer
from builder_agent.telemetry.settings import REQUEST_TIMEOUT_S

# Source: OTLP specification 1.8, "Failures": all other codes are for good.
_LATER: Final = frozenset(
    {
        grpc.StatusCode.CANCELLED,
        grpc.StatusCode.DEADLINE_EXCEEDED,
        grpc.StatusCode.RESOURCE_EXHAUSTED,
        grpc.StatusCode.ABORTED,
        grpc.StatusCode.OUT_OF_RANGE,
        grpc.StatusCode.UNAVAILABLE,
        grpc.StatusCode.DATA_LOSS,
    }
)


def exporter(endpoint: str) -> OTLPSpanExporter:
    """Return an exporter with a channel of its own."""
    return OTLPSpanExporter(endpoint=endpoint, timeout=REQUEST_TIMEOUT_S)


class GrpcAttempt(Plain):
    """Reads the status from the exporter's log: it tells nobody else."""

    @override
    def refused(self, logged: logging.LogRecord | None) -> Answer:
        arguments = logged.args if logged is not None and isinstance(logged.args, tuple) else ()
        code = next((item for item in arguments if isinstance(item, grpc.StatusCode)), None)
        if code is None:
            return super().refused(logged)
        return Answer(refused=f"gRPC status {code.name}", again=code in _LATER)
