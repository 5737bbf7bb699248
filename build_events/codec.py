"""CloudEvents 1.0 in JSON <-> ``Recorded``.

Attribute names are CloudEvents' own (lower-case letters and digits only). Extensions: ``streamid``,
``streamrole``, ``sequence``, ``runid`` or ``route``, ``traceid``, ``spanid``, ``monotonicns``,
``bootid``, ``contract``.
"""

import json
from typing import Annotated, Any, Literal

import pydantic
from pydantic import BaseModel, ConfigDict, Field, JsonValue
from pydantic_core import from_json, to_json

from build_events import clock
from build_events.envelope import CONTRACT_VERSION, Recorded, StreamHeader, StreamRole
from build_events.errors import EventTooLargeError, MalformedEventError
from build_events.events import EVENT_TYPES, Event, UnknownEvent

_HexTrace = Annotated[str, Field(pattern="^[0-9a-f]{32}$")]
_HexSpan = Annotated[str, Field(pattern="^[0-9a-f]{16}$")]

MAX_EVENT_BYTES = 128 << 10  # of one event in JSON, for every log: it must travel in one record


class _CloudEvent(BaseModel):
    """The attributes that every event of this contract carries."""

    model_config = ConfigDict(extra="ignore")
    specversion: Literal["1.0"]
    id: str
    source: Annotated[str, Field(min_length=1)]
    type: Annotated[str, Field(min_length=1)]
    time: str
    streamid: Annotated[str, Field(min_length=1)]
    streamrole: StreamRole
    sequence: Annotated[int, Field(ge=0, le=2**31 - 1)]
    runid: Annotated[str, Field(min_length=1)] | None = None
    route: Annotated[str, Field(min_length=1)] | None = None
    traceid: _HexTrace | None = None
    spanid: _HexSpan | None = None
    monotonicns: Annotated[int, Field(ge=0, le=2**63 - 1)]
    bootid: Annotated[str, Field(min_length=1)]
    contract: Literal[1]
    data: JsonValue = None


def encode_for_log(record: Recorded) -> bytes:
    """Return what a log stores: ``encode``, for events that any log can hold.

    Raises:
        EventTooLargeError: it is longer than ``MAX_EVENT_BYTES``.
    """
    payload = encode(record)
    if len(payload) > MAX_EVENT_BYTES:
        raise EventTooLargeError(
            f"{record.event.type} of {record.stream.subject}: {len(payload)} bytes, and an event has at most "
            f"{MAX_EVENT_BYTES}. Say it with shorter texts, or about fewer things at once."
        )
    return payload


def encode(record: Recorded) -> bytes:
    """Return one JSON object without a line end."""
    stream = record.stream
    attributes: dict[str, Any] = {
        "specversion": "1.0",
        "id": record.event_id,
        "source": stream.source,
        "type": record.event.type,
        "time": clock.to_iso(record.wall_ns),
        "subject": stream.subject,
        "datacontenttype": "application/json",
        "streamid": stream.stream_id,
        "streamrole": stream.role,
        # The CloudEvents extension "sequence" is a string that orders as text.
        "sequence": f"{record.sequence:010d}",
        "runid": stream.run_id,
        "route": stream.route,
        "traceid": stream.trace_id,
        "spanid": record.span_id,
        "monotonicns": str(record.monotonic_ns),
        "bootid": stream.boot_id,
        "contract": CONTRACT_VERSION,
    }
    head = to_json({key: value for key, value in attributes.items() if value is not None})
    event = record.event
    if isinstance(event, UnknownEvent):
        data = json.dumps(event.data, ensure_ascii=False, separators=(",", ":")).encode()
    else:
        data = event.__pydantic_serializer__.to_json(event)
    return head[:-1] + b',"data":' + data + b"}"


def decode(payload: bytes) -> Recorded:
    """Return the event that ``payload`` holds; unknown types are kept, unknown attributes ignored.

    Raises:
        MalformedEventError: no JSON object, a missing or wrong attribute, or data that its type
            does not allow. The message says which.
    """
    try:
        envelope = _CloudEvent.model_validate(from_json(payload, allow_inf_nan=False))
        event = decode_event(envelope.type, envelope.data)
        header = StreamHeader(
            stream_id=envelope.streamid,
            role=envelope.streamrole,
            run_id=envelope.runid,
            route=envelope.route,
            trace_id=envelope.traceid,
            source=envelope.source,
            boot_id=envelope.bootid,
        )
        wall_ns = clock.from_iso(envelope.time)
    except pydantic.ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"])
        msg = f"attribute {where or 'document'}: {first['msg']}"
        raise MalformedEventError(msg) from None
    except ValueError as error:
        raise MalformedEventError(str(error)) from None
    return Recorded(
        stream=header,
        sequence=envelope.sequence,
        wall_ns=wall_ns,
        monotonic_ns=envelope.monotonicns,
        span_id=envelope.spanid,
        event=event,
    )


def decode_event(event_type: str, data: JsonValue) -> Event | UnknownEvent:
    """Return the event of ``event_type`` with ``data``.

    Raises:
        pydantic.ValidationError: the type is known and does not allow the data.
    """
    cls = EVENT_TYPES.get(event_type)
    if cls is None:
        return UnknownEvent(type=event_type, data=data)
    return cls.model_validate(data)
