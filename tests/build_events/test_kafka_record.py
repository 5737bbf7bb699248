"""Kafka records: what is sent is what is read, within the bounds; whatever else comes is told apart."""

import dataclasses
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from build_events import codec, ids, kafka_record
from build_events.envelope import Recorded
from build_events.kafka_record import BATCH, MAX_EVENT_BYTES, MAX_EVENTS, MAX_VALUE_BYTES, STRUCTURED, Headers
from tests.build_events.scenes import Scene, flatten
from tests.build_events.strategies import records


def run_payloads() -> list[bytes]:
    """Return the payloads of one run's main stream."""
    run = Scene(run_id="run-1").play("completed", flatten((((), ()), ())), 9)
    return [codec.encode(record) for record in run if record.stream.role == "main"]


def one_stream(record: Recorded, count: int) -> list[bytes]:
    """Return ``count`` events of one stream, numbered without a gap."""
    return [codec.encode(dataclasses.replace(record, sequence=number)) for number in range(count)]


def texts(headers: Headers) -> dict[str, str]:
    """Return headers as text."""
    return {name: (value or b"").decode() for name, value in headers}


@given(record=records())
def test_one_event_comes_back_to_the_byte(record: Recorded) -> None:
    """A single event's record gives back exactly what the codec wrote."""
    payload = codec.encode(record)
    sent = kafka_record.encode([payload])
    got = kafka_record.decode(sent.headers, sent.value)
    assert (got.payloads, got.indexes, got.bad) == ([payload], [0], [])


@given(record=records(), count=st.integers(2, MAX_EVENTS))
def test_several_events_come_back_to_the_byte(record: Recorded, count: int) -> None:
    """A batch's record gives back exactly what the codec wrote, in order."""
    payloads = one_stream(record, count)
    sent = kafka_record.encode(payloads)
    got = kafka_record.decode(sent.headers, sent.value)
    assert (got.payloads, list(got.indexes), got.bad) == (payloads, list(range(count)), [])
    assert (got.stream_id, got.run_id, got.route) == (
        record.stream.stream_id,
        record.stream.run_id,
        record.stream.route,
    )


@given(record=records())
def test_a_batch_with_a_repeated_event_comes_back_too(record: Recorded) -> None:
    """Where the headers do not count the elements, they are parsed instead."""
    payloads = [*one_stream(record, 3), codec.encode(dataclasses.replace(record, sequence=1))]
    sent = kafka_record.encode(payloads)
    got = kafka_record.decode(sent.headers, sent.value)
    assert [codec.decode(payload) for payload in got.payloads] == [codec.decode(payload) for payload in payloads]


def test_one_event_is_a_cloud_event_in_binary_mode() -> None:
    """Attributes are ``ce_*`` headers, the value is the data, the key is the run id."""
    payload = run_payloads()[0]
    whole = json.loads(payload)
    sent = kafka_record.encode([payload])
    headers = texts(sent.headers)
    assert sent.key == b"run-1"
    assert json.loads(sent.value) == whole["data"]
    assert headers["content-type"] == "application/json"
    names = set(whole) - {"data", "datacontenttype"}
    assert {name: headers[f"ce_{name}"] for name in names} == {name: str(whole[name]) for name in names}


def test_several_events_are_an_array_that_names_its_stream() -> None:
    """The value is one JSON array of whole CloudEvents; headers say which part of which stream it is."""
    payloads = run_payloads()
    sent = kafka_record.encode(payloads)
    assert json.loads(sent.value) == [json.loads(payload) for payload in payloads]
    headers = texts(sent.headers)
    assert headers["content-type"] == BATCH
    assert headers["enginetrail-stream"] == json.loads(payloads[0])["streamid"]
    assert headers["enginetrail-run"] == "run-1"
    assert (headers["enginetrail-first-sequence"], headers["enginetrail-last-sequence"]) == (
        "0",
        str(len(payloads) - 1),
    )


@pytest.mark.parametrize("count", [1, 2])
def test_both_forms_carry_the_trace(count: int) -> None:
    """``traceparent`` names the run's trace and, in a batch, the run's own span."""
    payloads = run_payloads()[:count]
    first = json.loads(payloads[0])
    span = first.get("spanid") if count == 1 else None
    expected = f"00-{first['traceid']}-{span or ids.span_id('run-1', 0)}-01"
    assert texts(kafka_record.encode(payloads).headers)["traceparent"] == expected


def test_a_stream_without_a_trace_carries_none() -> None:
    """No trace id is made up."""
    payload = run_payloads()[0].replace(b'"traceid"', b'"nothing"')
    assert "traceparent" not in texts(kafka_record.encode([payload]).headers)


@given(sizes=st.lists(st.integers(2, 200_000) | st.integers(2, 900), max_size=300))
def test_cuts_keep_every_event_in_order_within_the_bounds(sizes: list[int]) -> None:
    """All indexes appear once, in order; no record is too long; an event too long to send stands alone."""
    parts = list(kafka_record.cut(sizes))
    assert [index for part in parts for index in part] == list(range(len(sizes)))
    for part in parts:
        length = sum(sizes[index] for index in part) + 2 * len(part)
        assert 1 <= len(part) <= MAX_EVENTS
        assert length <= MAX_VALUE_BYTES
        assert len(part) == 1 or all(sizes[index] <= MAX_EVENT_BYTES for index in part)


def test_an_event_of_another_producer_is_read_in_structured_mode() -> None:
    """A whole CloudEvent is taken as it is, with its content type or without any header."""
    payload = run_payloads()[3]
    header = [("content-type", f"{STRUCTURED}; charset=UTF-8".encode())]
    assert kafka_record.decode(header, payload).payloads == [payload]
    assert kafka_record.decode([], payload).payloads == [payload]


def test_an_array_of_another_producer_is_read_however_it_is_spaced() -> None:
    """Line ends inside the elements part nothing, even where they seem to."""
    events = [{"x": [{}, {}]}, {"y": 1}]
    value = json.dumps(events, indent=1).encode()
    for text in (value, b'[{"x":[{},\n{}]},{"y":1}]'):
        got = kafka_record.decode([("content-type", BATCH.encode())], text)
        assert [json.loads(payload) for payload in got.payloads] == events


def test_data_cannot_smuggle_attributes() -> None:
    """A value that is no JSON value of its own is bad, even where it would fit into the event's text."""
    sent = kafka_record.encode(run_payloads()[:1])
    got = kafka_record.decode(sent.headers, b'{},"runid":"another"')
    assert [bad.reason for bad in got.bad] == ["not_json"]


def _ours(name: str, value: bytes | None) -> list[tuple[str, bytes | None]]:
    return [*((k, v) for k, v in kafka_record.encode(run_payloads()[:1]).headers if k != name), (name, value)]


LONG = b'{"specversion":"1.0","data":"' + b"x" * MAX_EVENT_BYTES + b'"}'


@pytest.mark.parametrize(
    ("headers", "value", "reason"),
    [
        ([], None, "tombstone"),
        (_ours("ce_id", b"7"), None, "tombstone"),
        ([], b"hello", "not_json"),
        ([], b"", "not_json"),
        ([], b"7", "not_object"),
        ([], b"\xff\xfe", "not_json"),
        ([], b'{"a":NaN}', "not_json"),
        ([], b"[" + b"{}," * MAX_EVENTS + b"{}]", "too_many_events"),
        ([], LONG, "oversize"),
        ([("content-type", BATCH.encode())], b"{}", "not_array"),
        ([("content-type", b"text/plain")], b"{}", "foreign_content_type"),
        (_ours("content-type", b"application/avro"), b"{}", "foreign_content_type"),
        (_ours("ce_id", b"\xff"), b"{}", "bad_headers"),
    ],
)
def test_what_holds_no_event_is_kept_with_its_reason(headers: Headers, value: bytes | None, reason: str) -> None:
    """The bytes come back whole with what is wrong with them; nothing is raised."""
    got = kafka_record.decode(headers, value)
    assert (got.payloads, [(bad.payload, bad.reason) for bad in got.bad]) == ([], [(value or b"", reason)])


def test_one_bad_element_costs_only_itself() -> None:
    """The events around it are read, each with its place in the record."""
    got = kafka_record.decode([], b'[{"a":1},7,{"b":2}]')
    assert (got.payloads, list(got.indexes)) == ([b'{"a":1}', b'{"b":2}'], [0, 2])
    assert [(bad.index, bad.payload, bad.reason) for bad in got.bad] == [(1, b"7", "not_object")]


def test_a_damaged_record_still_names_whom_it_counts_against() -> None:
    """Stream and subject are taken from the headers where the value says nothing."""
    for payloads in (run_payloads()[:1], run_payloads()):
        sent = kafka_record.encode(payloads)
        got = kafka_record.decode(sent.headers, b"{")
        assert (got.stream_id, got.run_id, got.route) == (json.loads(payloads[0])["streamid"], "run-1", None)


@given(headers=st.lists(st.tuples(st.text(max_size=12), st.none() | st.binary(max_size=12))), value=st.binary())
def test_decoding_is_total(headers: list[tuple[str, bytes | None]], value: bytes) -> None:
    """Whatever a topic holds, each part is either a JSON object or bad."""
    got = kafka_record.decode(headers, value)
    assert len(got.payloads) == len(got.indexes)
    assert got.payloads or got.bad or json.loads(value) == []
    assert all(isinstance(json.loads(payload), dict) for payload in got.payloads)
