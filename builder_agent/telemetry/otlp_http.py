"""OTLP over HTTP, with a session that says what the exporter keeps to itself: why, and whether for good."""

import logging
from typing import Any, Final

import requests
from google.protobuf.message import DecodeError
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceResponse
from typing_extensions import override

from builder_agent.telemetry.outbox import Answer
from builder_agent.telemetry.settings import REQUEST_TIMEOUT_S

# Source: OTLP specification 1.8, "OTLP/HTTP Response": all other errors are for good.
_LATER: Final = frozenset({429, 502, 503, 504})
_REDIRECT: Final = 300
_ERROR: Final = 400
_PROTOBUF: Final = "application/x-protobuf"


def exporter(endpoint: str, session: requests.Session) -> OTLPSpanExporter:
    """Return an exporter that sends by this session."""
    return OTLPSpanExporter(endpoint=endpoint, timeout=REQUEST_TIMEOUT_S, session=session)


class ObservedSession(requests.Session):
    """Remembers the last answer.

    The exporter takes every status below 400 for an acknowledgement: a redirect, and the page of a proxy
    that asks for a login, are refused here.
    """

    def __init__(self) -> None:
        super().__init__()
        self._answer = Answer(refused="nothing was sent")

    def accepted(self) -> Answer:
        """Return what the endpoint's acknowledgement says."""
        return self._answer

    def refused(self, _logged: logging.LogRecord | None) -> Answer:
        """Return why the last request failed."""
        if self._answer.refused is None:
            return Answer(refused="the exporter did not say why")
        return self._answer

    @override
    def send(self, request: requests.PreparedRequest, **named: Any) -> requests.Response:
        try:
            response = super().send(request, **named)
            self._answer = _answer(response)
        except requests.RequestException as error:
            self._answer = Answer(refused=_why(error))
            raise
        if self._answer.refused is not None and response.status_code < _ERROR:
            raise requests.RequestException(self._answer.refused)
        return response


def _answer(response: requests.Response) -> Answer:
    status, kind = response.status_code, response.headers.get("Content-Type", "")
    if status >= _REDIRECT:
        return Answer(refused=f"HTTP status {status} {response.reason}", again=status in _LATER)
    if kind.startswith("text/html"):
        return Answer(refused=f"HTTP status {status} with a web page: no OTLP endpoint answers there", again=False)
    if not kind.startswith(_PROTOBUF):
        return Answer()
    try:
        rejected = ExportTraceServiceResponse.FromString(response.content).partial_success.rejected_spans
    except DecodeError:
        return Answer(refused=f"HTTP status {status} with an answer that is no OTLP", again=False)
    return Answer(rejected=rejected)


def _why(error: BaseException) -> str:
    """Return the innermost cause: the outer ones repeat it, with addresses of objects."""
    inner = error.__context__ or error.__cause__
    while inner is not None and inner is not error:
        error, inner = inner, inner.__context__ or inner.__cause__
    return f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
