"""Jaeger, the OTel Collector and Prometheus as one line: a span in, a trace and a metric out."""

import json
import secrets
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from deploy.services import Services
from deploy.services.probe import port_answers
from tests.services.answers import answer_from, eventually

# A cold machine compiles for minutes first.
pytestmark = [pytest.mark.service, pytest.mark.timeout(1800)]
GO_SERVICES = ("jaeger", "otelcol", "prometheus")


def new_span(name: str) -> dict[str, Any]:
    """Return a finished root span of two seconds, as OTLP's JSON has it."""
    now = time.time_ns()
    return {
        "traceId": secrets.token_hex(16),
        "spanId": secrets.token_hex(8),
        "name": name,
        "kind": 1,
        "startTimeUnixNano": str(now - 2_000_000_000),
        "endTimeUnixNano": str(now),
    }


def send(endpoint: str, span: dict[str, Any]) -> str:
    """Send a span by OTLP over HTTP; return its trace id once it is accepted."""
    service = {"key": "service.name", "value": {"stringValue": "test"}}
    resource = {"resource": {"attributes": [service]}, "scopeSpans": [{"spans": [span]}]}
    body = json.dumps({"resourceSpans": [resource]}).encode()
    request = urllib.request.Request(f"{endpoint}/v1/traces", body, {"Content-Type": "application/json"})  # noqa: S310
    with urllib.request.urlopen(request, timeout=5) as answer:  # noqa: S310 # an address of our own
        assert answer.status == 200
    return str(span["traceId"])


def spans_of(jaeger: str, trace: str) -> list[str]:
    """Return the names of a trace's spans once Jaeger has the trace."""
    found = answer_from(f"{jaeger}/api/traces/{trace}", "data")
    return [span["operationName"] for known in found for span in known["spans"]]


@pytest.fixture
def line(services: Services) -> Services:
    """The three services, answering."""
    for name in GO_SERVICES:
        services.start(name)
    return services


@pytest.fixture
def forgetful(tmp_path: Path, environ: dict[str, str]) -> Iterator[Services]:
    """Services whose Jaeger stores in memory."""
    mine = Services(tmp_path / "home", {**environ, "JAEGER_STORAGE": "memory"}, print)
    mine.start("jaeger")
    yield mine
    mine.purge()


@pytest.mark.parametrize("name", GO_SERVICES)
def test_a_service_answers_from_start_to_stop_and_at_the_same_place_again(line: Services, name: str) -> None:
    """``start`` returns when it answers, ``stop`` when it is gone; the address stays."""
    address = line.address(name)
    assert port_answers(address)
    line.stop(name)
    assert not port_answers(address)
    assert line.start(name) == address
    line.kill(name)
    assert not port_answers(address)
    assert line.start(name) == address


def test_a_span_reaches_jaeger_and_is_kept_over_a_restart(line: Services) -> None:
    """OTLP in, Jaeger's query API out, before and after Jaeger was down."""
    trace = send(line.address("otelcol"), new_span("BUILD kept"))
    assert spans_of(line.address("jaeger"), trace) == ["BUILD kept"]
    line.stop("jaeger")
    line.start("jaeger")
    assert spans_of(line.address("jaeger"), trace) == ["BUILD kept"]


def test_a_span_sent_while_jaeger_is_down_arrives_later(line: Services) -> None:
    """The OTel Collector keeps what it accepted on disk, over a kill of its own as well."""
    line.stop("jaeger")
    trace = send(line.address("otelcol"), new_span("BUILD late"))
    line.kill("otelcol")
    line.start("otelcol")
    line.start("jaeger")
    assert spans_of(line.address("jaeger"), trace) == ["BUILD late"]


def test_a_span_becomes_a_metric_in_prometheus(line: Services) -> None:
    """Span metrics are scraped: a query by the span's name returns its series."""
    send(line.address("otelcol"), new_span("BUILD counted"))
    query = quote('traces_span_metrics_calls_total{span_name="BUILD counted"}')
    series = answer_from(f"{line.address('prometheus')}/api/v1/query?query={query}", "data.result")
    assert [found["metric"]["service_name"] for found in series] == ["test"]


def test_a_jaeger_in_memory_shows_a_span_as_often_as_it_came(forgetful: Services) -> None:
    """``JAEGER_STORAGE=memory`` is for tests that look for duplicates, which the other storage would merge."""
    otlp = f"http://127.0.0.1:{forgetful.port('jaeger', 'otlp_http')}"
    span = new_span("BUILD twice")
    send(otlp, span)
    send(otlp, span | {"endTimeUnixNano": str(time.time_ns())})
    found = eventually(lambda: spans_of(forgetful.address("jaeger"), span["traceId"]), lambda names: len(names) > 1)
    assert found == ["BUILD twice"] * 2
