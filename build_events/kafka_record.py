"""Events <-> a Kafka record's key, headers and value. Pure: knows no Kafka client.

One event travels as the CloudEvents Kafka binding's binary mode: attributes are ``ce_*`` headers, the
value is the event's data. Several events of one stream travel as one JSON array, each element a whole
CloudEvent, under the content type of CloudEvents' JSON batch; the binding itself has no batches, so
this is an extension of ours. Both carry W3C ``traceparent`` where the stream has a trace.

Read are also a CloudEvent in structured mode, and either form without any header.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pydantic_core import from_json, to_json

from build_events import codec, ids

MAX_EVENTS = 64  # in a record; 64 made kafka-python as fast as librdkafka, more did not help
MAX_VALUE_BYTES = 512 << 10  # half of what a broker takes by default (message.max.bytes)
MAX_EVENT_BYTES = codec.MAX_EVENT_BYTES

SINGLE = "application/json"
STRUCTURED = "application/cloudevents+json"
BATCH = "application/cloudevents-batch+json"

CONTENT_TYPE = "content-type"
TRACEPARENT = "traceparent"
STREAM = "enginetrail-stream"
RUN = "enginetrail-run"
ROUTE = "enginetrail-route"
FIRST = "enginetrail-first-sequence"
LAST = "enginetrail-last-sequence"
_CE = "ce_"

# A line end cannot stand inside an event as we write it, so it parts elements without parsing them.
_SEPARATOR = b",\n"
# CloudEvents headers are text; these attributes are numbers in the JSON format.
_NUMBERS = frozenset({"contract"})

Headers = Sequence[tuple[str, bytes | None]]


@dataclass(frozen=True, slots=True)
class KafkaRecord:
    """What is sent: one event, or several of one stream in order."""

    key: bytes  # run id or route: one partition holds all of it
    headers: tuple[tuple[str, bytes], ...]
    value: bytes


@dataclass(frozen=True, slots=True)
class BadEvent:
    """A part of a record that holds no event."""

    index: int  # place in the record
    payload: bytes
    reason: str  # tombstone, not_json, not_object, not_array, oversize, too_many_events, ...


@dataclass(frozen=True, slots=True)
class Decoded:
    """What a record holds. Each of its events is in ``payloads`` or in ``bad``."""

    payloads: Sequence[bytes]  # CloudEvents JSON objects, not yet checked against the contract
    indexes: Sequence[int]  # place of each in the record, from 0, below ``MAX_EVENTS``
    bad: Sequence[BadEvent]
    # Whom it counts against where the payload does not say: from the headers, unchecked.
    stream_id: str | None
    run_id: str | None
    route: str | None


def cut(sizes: Iterable[int]) -> Iterator[range]:
    """Yield the indexes that go into one record each: in order, within the bounds.

    An event above ``MAX_EVENT_BYTES`` comes alone: it must not be sent.
    """
    first = size = 0
    index = -1
    for index, length in enumerate(sizes):
        alone = length > MAX_EVENT_BYTES
        # Two brackets around, a separator between.
        if index > first and (alone or index - first == MAX_EVENTS or size + length + 4 > MAX_VALUE_BYTES):
            yield range(first, index)
            first, size = index, 0
        size += length + len(_SEPARATOR)
        if alone:
            yield range(first, index + 1)
            first, size = index + 1, 0
    if index >= first:
        yield range(first, index + 1)


def encode(payloads: Sequence[bytes]) -> KafkaRecord:
    """Return the record of one stream's events, one or more, as ``codec.encode`` wrote them.

    Raises:
        KeyError, TypeError, ValueError: ``codec.encode`` did not write them.
    """
    first = from_json(payloads[0])
    return _single(payloads[0], first) if len(payloads) == 1 else _batch(payloads, first)


def decode(headers: Headers, value: bytes | None) -> Decoded:
    """Return what a record holds, whoever wrote it. Total: nothing is raised, nothing left out."""
    texts, defect = _texts(headers)
    if value is None:
        return _rejected(texts, b"", "tombstone")
    if defect:
        return _rejected(texts, value, "bad_headers")
    media = texts.get(CONTENT_TYPE, "").partition(";")[0].strip().lower()
    if media not in _READERS and not media.endswith("+json"):
        return _rejected(texts, value, "foreign_content_type")
    return _READERS.get(media, _from_json)(texts, value)


def _single(payload: bytes, event: dict[str, Any]) -> KafkaRecord:
    data = event.pop("data", None)
    head = to_json(event)[:-1] + b',"data":'
    # The data's own bytes where they can be told, so that a record gives back what was written.
    value = payload[len(head) : -1] if payload.startswith(head) else to_json(data)
    headers: list[tuple[str, bytes]] = []
    for name, attribute in event.items():
        if name == "datacontenttype":
            headers.append((CONTENT_TYPE, SINGLE.encode()))
        elif attribute is not None:
            headers.append((_CE + name, str(attribute).encode()))
    span = event.get("spanid") or _root_span(event)
    return KafkaRecord(_key(event), (*headers, *_traceparent(event, span)), value)


def _batch(payloads: Sequence[bytes], first: dict[str, Any]) -> KafkaRecord:
    last = from_json(payloads[-1])
    subject = (RUN, first["runid"]) if first.get("runid") else (ROUTE, first.get("route") or "")
    headers = (
        (CONTENT_TYPE, BATCH),
        (STREAM, first["streamid"]),
        subject,
        (FIRST, str(int(first["sequence"]))),
        (LAST, str(int(last["sequence"]))),
    )
    value = b"[" + _SEPARATOR.join(payloads) + b"]"
    encoded = tuple((name, text.encode()) for name, text in headers)
    # A batch spans phases: the run itself is what all of them belong to.
    return KafkaRecord(_key(first), (*encoded, *_traceparent(first, _root_span(first))), value)


def _key(event: dict[str, Any]) -> bytes:
    return str(event.get("runid") or event.get("route") or "").encode()


def _root_span(event: dict[str, Any]) -> str | None:
    run_id = event.get("runid")
    return ids.span_id(run_id, ids.ROOT_ORDINAL) if run_id else None


def _traceparent(event: dict[str, Any], span_id: str | None) -> tuple[tuple[str, bytes], ...]:
    trace_id = event.get("traceid")
    if not trace_id or not span_id:
        return ()
    return ((TRACEPARENT, f"00-{trace_id}-{span_id}-01".encode()),)


def _from_json(texts: dict[str, str], value: bytes) -> Decoded:
    if f"{_CE}specversion" in texts:
        return _from_binary(texts, value)
    return (_from_batch if value.lstrip()[:1] == b"[" else _from_structured)(texts, value)


def _from_binary(texts: dict[str, str], value: bytes) -> Decoded:
    try:
        data = from_json(value, allow_inf_nan=False)
    except ValueError:
        return _rejected(texts, value, "not_json")
    event: dict[str, Any] = {}
    for name, text in texts.items():
        attribute = name.removeprefix(_CE)
        if name == CONTENT_TYPE:
            event["datacontenttype"] = text
        elif attribute not in {name, "data"}:
            event[attribute] = int(text) if attribute in _NUMBERS and _is_number(text) else text
    if b"\n" in value:
        value = to_json(data)
    return _found(texts, [to_json(event)[:-1] + b',"data":' + value + b"}"])


def _from_structured(texts: dict[str, str], value: bytes) -> Decoded:
    try:
        event = from_json(value, allow_inf_nan=False)
    except ValueError:
        return _rejected(texts, value, "not_json")
    if not isinstance(event, dict):
        return _rejected(texts, value, "not_object")
    return _found(texts, [to_json(event) if b"\n" in value else value])


def _from_batch(texts: dict[str, str], value: bytes) -> Decoded:
    parts = _own_parts(texts, value)
    if parts is not None:
        # Nearly every record of a log: no loop in Python.
        whole = max(map(len, parts)) <= MAX_EVENT_BYTES
        return _decoded(texts, parts, range(len(parts)), []) if whole else _found(texts, parts)
    try:
        events = from_json(value, allow_inf_nan=False)
    except ValueError:
        return _rejected(texts, value, "not_json")
    if not isinstance(events, list):
        return _rejected(texts, value, "not_array")
    if len(events) > MAX_EVENTS:
        return _rejected(texts, value, "too_many_events")
    return _found(texts, [to_json(event) for event in events])


def _own_parts(texts: dict[str, str], value: bytes) -> list[bytes] | None:
    """Return the elements of a batch as ``encode`` wrote it, without parsing; ``None`` for any other."""
    first, last = texts.get(FIRST, ""), texts.get(LAST, "")
    if not (_is_number(first) and _is_number(last)) or value[:2] != b"[{" or value[-2:] != b"}]":
        return None
    if not int(first) <= int(last) < int(first) + MAX_EVENTS:
        return None
    # Looked for by its one rare byte: bytes.split() by the separator costs four times as much (measured).
    parts, start = [], 1
    while (line_end := value.find(b"\n", start)) >= 0:
        parts.append(value[start : line_end - 1])
        if value[line_end - 1 : line_end + 1] != _SEPARATOR:
            return None
        start = line_end + 1
    parts.append(value[start:-1])
    own = len(parts) == int(last) - int(first) + 1
    return parts if own and all(part[:1] == b"{" and part[-1:] == b"}" for part in parts) else None


def _found(texts: dict[str, str], events: Sequence[bytes]) -> Decoded:
    defects = [(index, event, _defect(event)) for index, event in enumerate(events)]
    bad = [BadEvent(index, event, reason) for index, event, reason in defects if reason]
    good = [(index, event) for index, event, reason in defects if not reason]
    return _decoded(texts, [event for _, event in good], [index for index, _ in good], bad)


def _defect(event: bytes) -> str | None:
    if event[:1] != b"{" and event.lstrip()[:1] != b"{":
        return "not_object"
    return "oversize" if len(event) > MAX_EVENT_BYTES else None


def _rejected(texts: dict[str, str], value: bytes, reason: str) -> Decoded:
    return _decoded(texts, [], [], [BadEvent(0, value, reason)])


def _decoded(
    texts: dict[str, str], payloads: Sequence[bytes], indexes: Sequence[int], bad: Sequence[BadEvent]
) -> Decoded:
    stream_id = texts.get(STREAM) or texts.get(f"{_CE}streamid")
    run_id = texts.get(RUN) or texts.get(f"{_CE}runid")
    route = None if run_id else texts.get(ROUTE) or texts.get(f"{_CE}route")
    return Decoded(payloads, indexes, bad, stream_id or None, run_id or None, route or None)


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdecimal() and len(text) <= 10  # noqa: PLR2004 # digits of a 32-bit number


def _texts(headers: Headers) -> tuple[dict[str, str], bool]:
    """Return the headers that are text, the last of each name, and whether any of ours was none."""
    texts: dict[str, str] = {}
    defect = False
    for name, value in headers:
        try:
            texts[name] = (value or b"").decode()
        except UnicodeDecodeError:
            defect = defect or name == CONTENT_TYPE or name.startswith(_CE)
    return texts, defect


_READERS: Mapping[str, Callable[[dict[str, str], bytes], Decoded]] = {
    "": _from_json,
    SINGLE: _from_json,
    STRUCTURED: _from_structured,
    BATCH: _from_batch,
}
