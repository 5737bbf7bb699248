"""The exporter against endpoints that fail: its end comes in time, and its books are right."""

import logging
import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from typing import cast

import pytest
from opentelemetry.trace import get_tracer_provider

from build_events import clock, ids
from build_events.events import ExportFinished, StreamClosed
from build_events.local_log import LocalLog, read_run
from build_events.telemetry import names
from build_events.telemetry.run_spans import RunSpans
from build_events.telemetry.span import Span, SpanEvent, SpanLink
from builder_agent.telemetry.embedded import ExportedLog
from builder_agent.telemetry.environment import telemetry_settings
from builder_agent.telemetry.outbox import LIMIT, Answer, ExportReport, Outbox
from builder_agent.telemetry.settings import EXIT_S
from builder_agent.telemetry.span_export import SpanExport
from tests.build_events.scenes import Scene, flatten
from tests.build_events.test_spans import traced
from tests.services.answers import eventually
from tests.telemetry.endpoints import babble, closed_port, drip, http_endpoint, raw_endpoint, say_nothing

TRACE = "0af7651916cd43dd8448eb211c80319c"
SLACK_S = 1.0  # of a busy machine, on top of a bound


def span(number: int, kind: str = "final") -> Span:
    """Return a span with an id of its own."""
    return Span(
        name=f"span {number}",
        trace_id=TRACE,
        span_id=ids.named_span_id("run", str(number)),
        parent_span_id=None,
        start_ns=1_700_000_000_000_000_000 + number,
        end_ns=1_700_000_000_000_001_000 + number,
        attributes={names.SPAN_KIND: kind},
        resource={"service.name": "enginetrail-build"},
    )


def exporter(url: str, **environment: str) -> SpanExport:
    """Return an exporter of spans to ``url``."""
    return SpanExport(telemetry_settings({"OTEL_EXPORTER_OTLP_ENDPOINT": url, **environment}))


def finish(export: SpanExport, timeout_s: float = EXIT_S) -> tuple[ExportReport, float]:
    """Return how the export ended and how long that took."""
    began = time.monotonic()
    report = export.finish(timeout_s)
    assert report is not None
    return report, time.monotonic() - began


# Each with what the report says of it over HTTP.
DEAD_ENDPOINTS: list[tuple[str, Callable[[], AbstractContextManager[str]], str]] = [
    ("refused", lambda: nullcontext(closed_port()), "refused"),
    ("silent", lambda: raw_endpoint(say_nothing), "timed out"),
    ("dripping", lambda: raw_endpoint(drip), "no answer"),
    ("babbling", lambda: raw_endpoint(babble), "BadStatusLine"),
]


@pytest.mark.quiet
@pytest.mark.parametrize("protocol", ["http/protobuf", "grpc"])
@pytest.mark.parametrize(("name", "endpoint", "why"), DEAD_ENDPOINTS)
def test_a_dead_endpoint_holds_the_end_up_for_its_bound_at_most(
    name: str,
    endpoint: Callable[[], AbstractContextManager[str]],
    why: str,
    protocol: str,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Nothing is acknowledged, everything is counted with a reason, and the exporter's own log says nothing."""
    with endpoint() as url:
        export = exporter(url, OTEL_EXPORTER_OTLP_PROTOCOL=protocol)
        for number in range(3):
            before = time.monotonic()
            export.put(lambda number=number: [span(number)])  # type: ignore[misc] # bound here
            assert time.monotonic() - before < SLACK_S
        report, took_s = finish(export)
    assert took_s < EXIT_S + SLACK_S, name
    assert (report.exported, report.dropped) == (0, 3)
    assert report.reason
    assert protocol == "grpc" or why in report.reason
    assert [record for record in caplog.records if record.name.startswith("opentelemetry")] == []


def test_spans_arrive_as_they_are_by_a_provider_that_is_not_the_hosts() -> None:
    """Ids, times, parents, links, events, status, resource and schema."""
    full = Span(
        name="BUILD r",
        trace_id=TRACE,
        span_id="b7ad6b7169203331",
        parent_span_id="00f067aa0ba902b7",
        kind="server",
        start_ns=1_700_000_000_000_000_001,
        end_ns=1_700_000_000_000_000_999,
        attributes={"a": 1, "b": ("x", "y"), **{f"n{number}": number for number in range(200)}},
        status="error",
        status_description="why",
        events=tuple(SpanEvent(name=f"e{number}", at_ns=1_700_000_000_000_000_002 + number) for number in range(200)),
        links=(SpanLink(trace_id=TRACE, span_id="1111111111111111", attributes={"k": "v"}),),
        resource={"service.name": "enginetrail-build", "host.id": "boot"},
    )
    with http_endpoint() as endpoint:
        export = exporter(endpoint.url, OTEL_SERVICE_NAME="mine")
        export.put(lambda: [full])
        report, _ = finish(export)
        (sent,) = endpoint.spans
        (of,) = endpoint.resource_spans
    assert report == ExportReport(exported=1, dropped=0, reason=None)
    assert (sent.trace_id.hex(), sent.span_id.hex(), sent.parent_span_id.hex()) == (
        TRACE, full.span_id, full.parent_span_id,
    )  # fmt: skip
    assert (sent.start_time_unix_nano, sent.end_time_unix_nano) == (full.start_ns, full.end_ns)
    assert (sent.kind, sent.status.code, sent.status.message) == (2, 2, "why")
    assert len(sent.attributes) == len(full.attributes)
    assert [(event.name, event.time_unix_nano) for event in sent.events] == [(e.name, e.at_ns) for e in full.events]
    assert sent.links[0].span_id.hex() == "1111111111111111"
    resource = {item.key: item.value.string_value for item in of.resource.attributes}
    assert resource == {"service.name": "mine", "host.id": "boot"}
    assert (of.schema_url, of.scope_spans[0].schema_url) == (names.SCHEMA_URL, names.SCHEMA_URL)
    assert type(get_tracer_provider()).__name__ == "ProxyTracerProvider"


def test_an_endpoint_that_comes_back_gets_what_waited_once() -> None:
    """503 is tried again about every second while the run goes on."""
    with http_endpoint(status=503) as endpoint:
        export = exporter(endpoint.url)
        export.put(lambda: [span(0)])
        assert eventually(lambda: endpoint.requests, lambda count: count >= 2) >= 2
        endpoint.status = 200
        export.put(lambda: [span(1)])
        assert len(eventually(lambda: endpoint.spans, lambda spans: len(spans) == 2)) == 2
        report, _ = finish(export)
    assert report == ExportReport(exported=2, dropped=0, reason=None)
    assert [item.span_id.hex() for item in endpoint.spans] == [span(0).span_id, span(1).span_id]


@pytest.mark.quiet
@pytest.mark.parametrize(
    ("answer", "why"),
    [
        ({"status": 404}, "HTTP status 404"),
        ({"status": 302}, "HTTP status 302"),
        ({"kind": "text/html; charset=utf-8"}, "web page"),
    ],
)
def test_an_answer_that_is_for_good_is_not_asked_for_again(answer: dict[str, object], why: str) -> None:
    """The exporter itself takes a redirect and a login page for an acknowledgement."""
    with http_endpoint(**answer) as endpoint:
        export = exporter(endpoint.url)
        export.put(lambda: [span(0)])
        report, took_s = finish(export)
    assert took_s < EXIT_S
    assert (report.exported, report.dropped, endpoint.requests) == (0, 1, 1)
    assert why in (report.reason or "")


def test_spans_that_the_endpoint_rejects_are_drops() -> None:
    """A partial success of OTLP."""
    with http_endpoint(rejected=1) as endpoint:
        export = exporter(endpoint.url)
        report = None
        export.put(lambda: [span(0), span(1)])
        report, _ = finish(export)
    assert report == ExportReport(exported=1, dropped=1, reason="the endpoint rejected them")


def test_slices_give_way_first_and_the_end_of_a_run_never() -> None:
    """A full queue: the oldest slice goes, then what comes; the final spans are held already."""
    box = Outbox()
    box.add([span(0, "anchor"), *(span(number, "slice") for number in range(1, LIMIT))])
    box.add([span(LIMIT, "marker"), span(LIMIT + 1, "slice")])
    first = box.next_batch(0)
    assert [item.name for item in first[:2]] == ["span 0", "span 2"]
    box.answered(Answer(), 0)
    box.add_final(span(number) for number in range(3 * LIMIT))
    sent = len(first)
    while batch := box.next_batch(0):
        sent += len(batch)
        box.answered(Answer(), 0)
    assert sent == LIMIT + 3 * LIMIT
    report = box.close()
    assert (report.exported, report.dropped) == (sent, 2)
    assert "waited" in (report.reason or "")


def test_a_forked_child_exports_nothing_and_the_parent_goes_on() -> None:
    """The child of a host that forks shares the exporter's memory, not its threads."""
    with http_endpoint() as endpoint:
        export = exporter(endpoint.url)
        export.put(lambda: [span(0)])
        child = os.fork()
        if child == 0:
            export.put(lambda: [span(1)])
            os._exit(0 if export.finish(5) is None else 1)
        assert os.waitpid(child, 0)[1] == 0
        report, _ = finish(export)
    assert report.exported == 1
    assert [item.span_id.hex() for item in endpoint.spans] == [span(0).span_id]


def test_the_hosts_own_exporter_is_still_heard(caplog: pytest.LogCaptureFixture) -> None:
    """Only what our thread's exporter logs is held back, and only while it sends."""
    logger = logging.getLogger("opentelemetry.exporter.otlp.proto.http.trace_exporter")
    with http_endpoint(delay_s=0.3) as endpoint:
        export = exporter(endpoint.url)
        export.put(lambda: [span(0)])
        eventually(lambda: logger.filters, bool)
        logger.error("the host's")
        finish(export)
    assert [record.getMessage() for record in caplog.records] == ["the host's"]
    assert logger.filters == []


def test_an_exporter_whose_books_fail_counts_all_that_it_did_not_send() -> None:
    """An answer that no endpoint gives ends the exporter's thread; what comes after is counted, the end included."""
    export = exporter(closed_port())
    export.put(tuple)
    export._inbox.put(Answer(rejected=cast("int", "many")))
    eventually(lambda: export._refusal, lambda refusal: refusal is not None)
    export.put(lambda: [span(1), span(2)])
    report = export.finish(EXIT_S, lambda: [span(3)])
    assert report is not None
    assert (report.exported, report.dropped) == (0, 3)
    assert "TypeError" in (report.reason or "")


def test_telemetry_that_fails_takes_nothing_from_the_log(tmp_path: Path) -> None:
    """Records that are durable are never written again because their spans could not be made."""
    records = traced(Scene().play("completed", flatten(((),)), 9))
    main = [record for record in records if record.stream == records[0].stream]
    settings = telemetry_settings({"OTEL_EXPORTER_OTLP_ENDPOINT": closed_port()})
    log = ExportedLog(LocalLog.create(tmp_path), settings, clock=clock.system_clock, spooled=False)
    log._telemetry._export = cast("SpanExport", object())  # has no method at all: whatever telemetry may raise
    log.append(main)
    log.close()
    assert len(read_run(tmp_path, main[0].stream.subject)) == len(main)


def test_nothing_starts_before_there_is_a_span() -> None:
    """A run that is refused has no thread here."""
    before = set(threading.enumerate())  # one of an earlier test may end meanwhile
    export = exporter(closed_port())
    assert export.finish(5) is None
    assert set(threading.enumerate()) <= before


def test_a_process_without_another_thread_records_its_run_and_counts_what_it_did_not_export(tmp_path: Path) -> None:
    """The log takes each record once; a failure behind it would have the delivery write all of them again."""
    records = traced(Scene().play("completed", flatten((((), ()), ())), 9))
    settings = telemetry_settings({"OTEL_EXPORTER_OTLP_ENDPOINT": closed_port()})
    log = ExportedLog(LocalLog.create(tmp_path), settings, clock=clock.system_clock, spooled=False)
    with no_more_threads():
        log.append(records)
        log.close()
    stored = read_run(tmp_path, records[0].stream.subject)
    assert [record for record in stored if not isinstance(record.event, ExportFinished | StreamClosed)] == [
        record for record in records if not isinstance(record.event, StreamClosed)
    ]
    spans = RunSpans()
    made = len(spans.take(records)) + len(spans.final())
    reason = "RuntimeError: can't start new thread"
    declared = [record.event for record in stored if isinstance(record.event, ExportFinished)]
    assert declared == [
        ExportFinished(signal="traces", exported=0, dropped=made, reason=reason),
        ExportFinished(signal="metrics", exported=0, dropped=1, reason=reason),
    ]


@contextmanager
def no_more_threads() -> Iterator[None]:
    """Have the system refuse threads: none gets a stack of this size."""
    before = threading.stack_size(1 << 60)
    try:
        yield
    finally:
        threading.stack_size(before)
