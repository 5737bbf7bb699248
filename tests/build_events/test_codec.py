import contextlib
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from build_events import clock, codec
from build_events.envelope import Recorded
from build_events.errors import MalformedEventError
from build_events.events import HeartbeatRecorded, UnknownEvent
from tests.build_events.scenes import Scene
from tests.build_events.strategies import histories, json_values, names, records, unknown_events, wall_times

STARTED = Scene().play("open", [], 0)[0]


def wire(**changes: Any) -> bytes:
    """Return an encoded event with some attributes changed; ``None`` takes an attribute out."""
    attributes = {**json.loads(codec.encode(STARTED)), **changes}
    return json.dumps({name: value for name, value in attributes.items() if value is not None}).encode()


@given(record=records())
def test_every_record_comes_back_from_the_wire_as_it_was(record: Recorded) -> None:
    """Decoding what was encoded gives the same record, and the same bytes again."""
    encoded = codec.encode(record)
    decoded = codec.decode(encoded)
    assert decoded == record
    assert codec.encode(decoded) == encoded


@given(record=records(unknown_events()))
def test_an_unknown_type_is_kept_whole(record: Recorded) -> None:
    """A type that this release does not define keeps its name and all of its data."""
    decoded = codec.decode(codec.encode(record)).event
    assert isinstance(decoded, UnknownEvent)
    assert decoded == record.event


@given(record=records(), name=names, value=json_values)
def test_an_unknown_attribute_changes_nothing(record: Recorded, name: str, value: object) -> None:
    """Other producers' extensions are read past."""
    attributes = json.loads(codec.encode(record))
    with_extension = json.dumps({f"x{name}": value, **attributes}).encode()
    assert codec.decode(with_extension) == record


def test_an_unknown_field_of_a_known_type_is_ignored() -> None:
    """A newer release may add optional fields to a type."""
    data = json.loads(codec.encode(STARTED))["data"]
    assert codec.decode(wire(data={**data, "colour": "red"})) == STARTED


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"streamid": None}, "streamid"),
        ({"streamid": ""}, "streamid"),
        ({"sequence": "-1"}, "sequence"),
        ({"sequence": "seven"}, "sequence"),
        ({"sequence": str(2**31)}, "sequence"),
        ({"specversion": "0.3"}, "specversion"),
        ({"contract": 2}, "contract"),
        ({"streamrole": "spectator"}, "streamrole"),
        ({"traceid": "XYZ"}, "traceid"),
        ({"time": "yesterday"}, "yesterday"),
        ({"time": "2026-01-01T12:00:00"}, "offset"),
        ({"runid": None}, "run_id or route"),
        ({"route": "a/b"}, "run_id or route"),
        ({"data": {}}, "route"),
        ({"data": [1]}, "dictionary"),
        ({"monotonicns": "1.5"}, "monotonicns"),
    ],
)
def test_a_broken_event_is_refused_with_the_attribute_at_fault(changes: dict[str, Any], named: str) -> None:
    """The message names what is wrong, for the dead letter's reader."""
    with pytest.raises(MalformedEventError, match=named):
        codec.decode(wire(**changes))


@given(payload=st.binary() | json_values.map(lambda value: json.dumps(value).encode()))
def test_whatever_is_no_event_raises_one_kind_of_error(payload: bytes) -> None:
    """The collector needs to catch exactly one error to keep a poison record out of the way."""
    with contextlib.suppress(MalformedEventError):
        codec.decode(payload)


@pytest.mark.parametrize("number", [b"NaN", b"Infinity", b"-Infinity"])
def test_a_number_that_json_does_not_have_is_refused(number: bytes) -> None:
    """Some producers write NaN; it would come out of the log as text that no other reader takes."""
    payload = wire(type="somebody.elses.v1", data=["NUMBER"]).replace(b'"NUMBER"', number)
    with pytest.raises(MalformedEventError):
        codec.decode(payload)


@given(wall_ns=wall_times)
def test_wall_times_keep_their_nanoseconds(wall_ns: int) -> None:
    """ISO 8601 text of a moment gives the moment again."""
    assert clock.from_iso(clock.to_iso(wall_ns)) == wall_ns


@pytest.mark.parametrize("text", ["2026-01-01T13:00:00.5+01:00", "2026-01-01T12:00:00.500Z", "2026-01-01 12:00:00.5Z"])
def test_a_time_with_any_offset_and_precision_is_read(text: str) -> None:
    """CloudEvents of other producers write fewer decimals, or another zone."""
    assert clock.from_iso(text) == clock.from_iso("2026-01-01T12:00:00.500000000Z")


def test_sixty_four_bit_numbers_travel_as_text() -> None:
    """A JavaScript reader must not round nanoseconds."""
    event = HeartbeatRecorded(since_callback_ns=2**63 - 1, cancel_state="none")
    assert b'"since_callback_ns":"9223372036854775807"' in codec.encode(
        Recorded(stream=STARTED.stream, sequence=0, wall_ns=0, monotonic_ns=0, event=event)
    )


@given(history=histories())
def test_a_history_numbers_each_stream_without_gaps(history: list[Recorded]) -> None:
    """The generator gives what a log holds: within a stream, sequences from 0 in order."""
    streams: dict[str, list[int]] = {}
    for record in history:
        streams.setdefault(record.stream.stream_id, []).append(record.sequence)
    assert all(sequences == list(range(len(sequences))) for sequences in streams.values())
