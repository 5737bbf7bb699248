"""``enginetrail trace lint`` over files, and where it is used wrongly; over a real Jaeger: ``tests/telemetry``."""

import dataclasses
import json
import re
import socket
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given

from analytics.otlp_json import OtlpJsonError, spans_of
from analytics.trace_lint import LintCode
from build_events.envelope import Recorded
from build_events.telemetry.run_spans import RunSpans
from build_events.telemetry.span import Span
from tests.build_events.scenes import Scene, flatten
from tests.build_events.strategies import histories
from tests.build_events.test_spans import TRACE, traced
from tests.enginetrail.conftest import Build, Cli
from tests.telemetry.endpoints import closed_port, raw_endpoint
from tests.telemetry.otlp_documents import document

DOCUMENT = Path(__file__).parents[2] / "docs" / "telemetry.md"


def all_spans(records: Sequence[Recorded]) -> list[Span]:
    """Return the spans of a run."""
    spans = RunSpans()
    return [*spans.take(traced(records)), *spans.final()]


@pytest.fixture
def spans() -> list[Span]:
    """Return the spans of a run that completed."""
    return all_spans(Scene().play("completed", flatten((((), ()), ())), 9))


@given(history=histories())
def test_spans_survive_otlp_json(history: list[Recorded]) -> None:
    """Ids, times, attributes of every type, events, links, status and resource."""
    spans = all_spans(history)
    assert spans_of(json.loads(json.dumps(document(spans)))) == spans


@pytest.mark.parametrize(
    "bad", [None, [], {}, {"resourceSpans": 1}, {"resourceSpans": [{"scopeSpans": [{"spans": [{}]}]}]}]
)
def test_what_is_no_otlp_json_is_an_error(bad: object) -> None:
    """Never an empty trace."""
    with pytest.raises(OtlpJsonError, match="resourceSpans"):
        spans_of(bad)


def test_a_clean_file_is_0_and_a_fault_is_1(cli: Cli, spans: list[Span]) -> None:
    """One document, or one a line; a whole file, or one trace of it."""
    file = cli.folder / "spans.json"
    file.write_text(json.dumps(document(spans), indent=2), encoding="utf-8")
    clean = cli("trace", "lint", "--otlp-json", str(file))
    assert clean.stdout == f"{len(spans)} spans, 0 findings\n"
    other = [dataclasses.replace(span, trace_id="b" * 32) for span in spans[:-1]]
    file.write_text(
        "".join(f"{json.dumps(document([span]))}\n" for span in [*spans, spans[-1], *other]), encoding="utf-8"
    )
    report = cli.json("trace", "lint", "--otlp-json", str(file), code=1)
    told = [(finding["trace_id"], finding["code"], finding["span_id"]) for finding in report["findings"]]
    assert told == [(TRACE, "repeated_id", spans[-1].span_id)]
    assert cli.json("trace", "lint", "b" * 32, "--otlp-json", str(file))["findings"] == []
    text = cli("trace", "lint", TRACE, "--otlp-json", str(file), code=1).stdout
    line, _ = text.splitlines()
    assert line.split(maxsplit=1) == ["repeated_id", f"{spans[-1].name} ({spans[-1].span_id}): there 2 times"]


def test_an_open_run_is_a_fault_where_its_end_is_asked_for(cli: Cli, spans: list[Span]) -> None:
    """``--ended``: there is an anchor and no root."""
    file = cli.folder / "spans.json"
    file.write_text(json.dumps(document(spans[:1])), encoding="utf-8")
    cli("trace", "lint", "--otlp-json", str(file))
    report = cli.json("trace", "lint", "--ended", "--otlp-json", str(file), code=1)
    assert {finding["code"] for finding in report["findings"]} == {"root_missing", "parent_missing"}


def test_nothing_there_is_a_fault(cli: Cli, build: Build, spans: list[Span]) -> None:
    """An empty file, another trace, and a run of this home that exported nothing."""
    file = cli.folder / "spans.json"
    file.write_text('{"resourceSpans": []}', encoding="utf-8")
    assert cli.json("trace", "lint", "--otlp-json", str(file), code=1)["findings"][0]["code"] == "nothing_found"
    file.write_text(json.dumps(document(spans)), encoding="utf-8")
    for what in ("c" * 32, build()["run_id"][:8]):
        report = cli.json("trace", "lint", what, "--otlp-json", str(file), code=1)
        assert [finding["code"] for finding in report["findings"]] == ["nothing_found"]


def test_wrong_usage_is_2_and_a_jaeger_that_is_not_there_is_no_pass(cli: Cli) -> None:
    """Each says what to give."""
    (cli.folder / "bad.json").write_text("no JSON", encoding="utf-8")
    source = ("--jaeger", closed_port())
    for arguments in [
        (TRACE,),
        (TRACE, *source, "--otlp-json", "bad.json"),
        (TRACE, "--jaeger", "file:///etc/passwd"),
        source,
        ("--otlp-json", "bad.json"),
        ("no-such-run", *source),
    ]:
        assert "Error: " in cli("trace", "lint", *arguments, code=2).stderr
    assert "is it the query API of Jaeger 2?" in cli("trace", "lint", TRACE, *source, code=1).stderr


@pytest.mark.parametrize("answer", [[], {"data": [{"spans": 1}], "result": {"resourceSpans": []}}, {"data": [{}]}])
def test_json_that_is_no_trace_is_an_error_with_the_address(cli: Cli, answer: object) -> None:
    """What answers at the address is something else than Jaeger, and is no pass."""

    def serve(connection: socket.socket) -> None:
        connection.recv(2**16)
        connection.sendall(b"HTTP/1.0 200 OK\r\n\r\n" + json.dumps(answer).encode())
        connection.shutdown(socket.SHUT_WR)

    with raw_endpoint(serve) as url:
        told = cli("trace", "lint", TRACE, "--jaeger", url, code=1).stderr
    assert told == f"enginetrail: {url} answers something else than a trace; is it the query API of Jaeger 2?\n"


def test_the_document_has_every_code() -> None:
    """With its meaning, in the order of the list, and no other."""
    text = DOCUMENT.read_text(encoding="utf-8")
    section = text[text.index("## Lint codes") :]
    told = re.findall(r"^\| `(\w+)` \| (.+) \|$", re.split(r"\n##? ", section)[0], flags=re.MULTILINE)
    assert told == [(code.value, code.meaning) for code in LintCode]
