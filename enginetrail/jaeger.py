"""A trace as Jaeger's query API has it."""

import http.client
import json
import time
import urllib.error
import urllib.request
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any

from analytics.otlp_json import WARNINGS, OtlpJsonError, spans_of
from build_events.errors import EngineTrailError
from build_events.telemetry.span import Span

_SILENCE_S = 5.0  # between two parts of an answer
_ANSWER_S = 30.0
_MOST_BYTES = 256 * 2**20  # a trace of 100,000 spans is about 100 MiB
_PART_BYTES = 2**16


class JaegerError(EngineTrailError):
    """Jaeger gave no answer that can be read."""


@dataclass(frozen=True, slots=True)
class JaegerTrace:
    """A trace, and what Jaeger says of it."""

    spans: Sequence[Span]  # each as often as it was stored
    warnings: Mapping[str, Sequence[str]]  # by span id, those of the trace under the empty text


def read_trace(url: str, trace_id: str) -> JaegerTrace:
    """Return a trace from the query API at ``url``; without spans where Jaeger does not know it.

    The spans are asked for as they were stored. Only the older API is asked for warnings: version 3 writes them,
    and its removal of duplicates, into what Jaeger 2.13 keeps in memory, and every later answer tells of a past state.

    Raises:
        JaegerError: no answer in time, or one that is no trace.
    """
    stored = _get(f"{url}/api/v3/traces/{trace_id}?raw_traces=true")
    judged = _get(f"{url}/api/traces/{trace_id}")
    warnings: dict[str, list[str]] = {}
    try:
        spans = [] if stored is None else spans_of(stored.get("result"))
        for span in spans:
            _note(warnings, span.span_id, span.attributes.get(WARNINGS))
        for trace in () if judged is None else judged.get("data") or ():
            _note(warnings, "", trace.get("warnings"))
            for told in trace["spans"]:
                _note(warnings, told["spanID"], told.get("warnings"))
    except (AttributeError, KeyError, TypeError, OtlpJsonError):
        raise JaegerError(f"{url} answers something else than a trace; is it the query API of Jaeger 2?") from None
    return JaegerTrace(spans, warnings)


def _note(warnings: dict[str, list[str]], span_id: str, texts: Any) -> None:
    for text in texts or ():
        if text not in (known := warnings.setdefault(span_id, [])):
            known.append(text)


def _get(url: str) -> Any:
    """Return the JSON at a URL; ``None`` where Jaeger says that it does not know the trace."""
    try:
        with urllib.request.urlopen(url, timeout=_SILENCE_S) as answer:  # noqa: S310 # the command takes http(s) only
            return json.loads(_bounded(answer))
    except urllib.error.HTTPError as error:
        with error:
            body = error.read(_PART_BYTES)
        if error.code == HTTPStatus.NOT_FOUND and body.startswith((b'{"data":null', b'{"error":{')):
            return None
        raise JaegerError(f"{url} answers {error.code} {error.reason}: is it the query API of Jaeger 2?") from None
    except (OSError, ValueError, http.client.HTTPException) as error:
        raise JaegerError(f"{url} gives no trace ({error}): is it the query API of Jaeger 2?") from None


def _bounded(answer: http.client.HTTPResponse) -> bytes:
    """Return the whole answer.

    Raises:
        ValueError: it is too long, or takes too long.
    """
    deadline = time.monotonic() + _ANSWER_S
    whole = bytearray()
    while part := answer.read1(_PART_BYTES):
        whole += part
        if len(whole) > _MOST_BYTES or time.monotonic() > deadline:
            raise ValueError(f"it is not all there after {_ANSWER_S:.0f} s or {_MOST_BYTES} bytes")
    return bytes(whole)
