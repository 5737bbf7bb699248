"""The check in SQL says what pydantic says, value by value; whatever it doubts, pydantic decides."""

import dataclasses
import json
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from build_events import codec
from build_events.envelope import Recorded
from build_events.events import HeartbeatRecorded, PhaseFinished, PhaseProgressed, PhaseStarted
from collector.event_rows import HOT_TYPES, ROW_SCHEMA, to_table
from collector.parsing import Parsed, Parser
from collector.payloads import Payloads
from tests.build_events.strategies import events, json_values, records
from tests.collector.scenes import beat
from tests.collector.stores import store_of

HOT = events(PhaseStarted, PhaseProgressed, PhaseFinished, HeartbeatRecorded)
hot_records = records(HOT)
DAMAGES = [b"", b"nope", b"null", b"[]", b"{}", b"\xff", b'"text"', b'{"specversion":"1.0"', b"1" * 30]


def parse(payloads: list[bytes], *, sql: bool) -> Parsed:
    """Parse with the check in SQL, or by pydantic alone."""
    parser = Parser(sql_from_payloads=1 if sql else 10**9)
    try:
        return parser.parse(Payloads(payloads))
    finally:
        parser.close()


def accepted(parsed: Parsed) -> list[dict[str, Any]]:
    """Return the rows of everything accepted, in an order of their own."""
    decoded = to_table((item.record, item.payload) for item in parsed.decoded)
    stored = parsed.rows.append_column("payload", pa.nulls(parsed.rows.num_rows, pa.string())).cast(ROW_SCHEMA)
    rows = pa.concat_tables([stored, decoded])
    rows = rows.set_column(ROW_SCHEMA.names.index("time"), "time", rows.column("time").cast(pa.int64()))
    return sorted(rows.to_pylist(), key=repr)


@st.composite
def damaged(draw: st.DrawFn, of: st.SearchStrategy[Recorded] = hot_records) -> bytes:
    """Return the JSON of an event of a hot type with something wrong, or only unusual, about it."""
    document = json.loads(codec.encode(draw(of)))
    how = draw(st.sampled_from(["value", "data value", "gone", "more", "twice", "order", "spaces", "byte", "comma"]))
    place = document["data"] if how == "data value" or draw(st.booleans()) else document
    key = draw(st.sampled_from(sorted(place)))
    if how in {"value", "data value"}:
        near: list[Any] = [
            0,
            1,
            -1,
            1.0,
            1.5,
            2**63,
            True,
            None,
            "",
            "1",
            "1.0",
            " 1",
            "01",
            "1e2",
            "true",
            [],
            {},
            10**30,
        ]
        place[key] = draw(st.sampled_from(near) | json_values)
    elif how == "gone":
        del place[key]
    elif how == "more":
        place[draw(st.text(max_size=5))] = draw(json_values)
    elif how == "order":
        place[key] = place.pop(key)
    text = json.dumps(document, separators=(", ", ": ") if how == "spaces" else (",", ":"), ensure_ascii=False)
    if how == "twice":
        text = f"{text[:-1]},{json.dumps(key)}:{json.dumps(draw(json_values))}}}"
    if how == "comma":
        text = text[:-1] + ",}"
    raw = bytearray(text.encode())
    if how == "byte":
        raw[draw(st.integers(0, len(raw) - 1))] = draw(st.integers(0, 255))
    return bytes(raw)


def of_one_stream(record: Recorded) -> st.SearchStrategy[list[bytes]]:
    """Return lists of an event with damaged copies of it and others of its stream, itself first or anywhere."""
    others = hot_records.map(lambda other: dataclasses.replace(other, stream=record.stream))
    sound = st.just(record) | others
    tail = st.lists(damaged(sound) | sound.map(codec.encode), min_size=1, max_size=20)
    return st.builds(lambda first, rest: [*first, *rest], st.sampled_from([[], [codec.encode(record)]]), tail)


@settings(max_examples=60)
@given(batch=hot_records.flatmap(of_one_stream))
def test_what_is_known_of_a_stream_passes_for_no_other_text(batch: list[bytes]) -> None:
    """Events that begin like one that was accepted, with something else about them, are read as pydantic does."""
    in_sql, alone = parse(batch, sql=True), parse(batch, sql=False)
    assert accepted(in_sql) == accepted(alone)
    assert in_sql.bad == alone.bad


@settings(max_examples=60)
@given(batch=st.lists(damaged() | records().map(codec.encode) | st.sampled_from(DAMAGES), min_size=1, max_size=30))
def test_the_check_in_sql_accepts_what_pydantic_accepts_with_the_same_values(batch: list[bytes]) -> None:
    """With the check in SQL and without it, the same records are accepted, refused, and read alike."""
    in_sql, alone = parse(batch, sql=True), parse(batch, sql=False)
    assert accepted(in_sql) == accepted(alone)
    assert in_sql.bad == alone.bad
    assert in_sql.rows.num_rows + len(in_sql.decoded) + len(in_sql.bad) == len(batch)


plain = st.text(st.characters(codec="utf-8", exclude_characters='"\\', exclude_categories=["Cs", "Cc"]), max_size=20)
usual_times = st.integers(0, 2**62)


@settings(max_examples=40)
@given(batch=st.lists(st.tuples(hot_records, plain, usual_times), min_size=1, max_size=20))
def test_what_the_codec_writes_of_a_hot_type_needs_no_python(batch: list[tuple[Recorded, str, int]]) -> None:
    """The usual event passes the check in SQL, or the collector would be slow without anybody noticing."""
    payloads = []
    for number, (record, name, wall_ns) in enumerate(batch):
        document = json.loads(codec.encode(record))
        document["time"] = json.loads(codec.encode(_at(record, wall_ns)))["time"]
        for key in ("source", "bootid", "streamid", "runid", "route"):
            if key in document:
                document[key] = f"x{name}"
        document["streamid"] += str(number)  # all that goes on under one id is one stream
        document["id"] = f"{document['streamid']}/{int(document['sequence'])}"
        document["subject"] = document.get("runid") or document.get("route")
        for key in ("name", "build_id"):
            if key in document["data"]:
                document["data"][key] = name
        payloads.append(json.dumps(document, separators=(",", ":"), ensure_ascii=False).encode())
    parsed = parse(payloads, sql=True)
    assert (parsed.rows.num_rows, len(parsed.decoded), parsed.bad) == (len(batch), 0, [])


def _at(record: Recorded, wall_ns: int) -> Recorded:
    return Recorded(
        stream=record.stream,
        sequence=record.sequence,
        wall_ns=wall_ns,
        monotonic_ns=record.monotonic_ns,
        span_id=record.span_id,
        event=record.event,
    )


def test_the_columns_of_rows_are_those_of_the_store() -> None:
    """The Arrow schema that Python makes rows with fits the table in schema.sql, name by name."""
    with store_of() as db:
        schema = (
            db.sql("SELECT * REPLACE (payload::VARCHAR AS payload) FROM base.events LIMIT 0").to_arrow_table().schema
        )
    assert [(field.name, field.type) for field in schema] == [(field.name, field.type) for field in ROW_SCHEMA]


def test_every_field_of_a_hot_type_has_a_column() -> None:
    """A field added to a hot type must get a column, for these types keep no payload."""
    renamed = {"open_phase_id": "phase_id"}
    for cls in (PhaseStarted, PhaseProgressed, PhaseFinished, HeartbeatRecorded):
        assert cls.type in HOT_TYPES
        assert {renamed.get(name, name) for name in cls.model_fields} - {"unit"} <= set(ROW_SCHEMA.names)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"time": "2400-01-01T00:00:00Z"}, "attribute time: outside the years 1678 to 2261"),
        ({"data": {"open_phase_id": 2**63, "cancel_state": "none"}}, "attribute data.open_phase_id: does not fit"),
        ({"contract": 2}, "attribute contract"),
        ({"data": {"cancel_state": "perhaps"}}, "attribute cancel_state"),
        ({"streamid": None}, "attribute streamid"),
    ],
)
def test_a_record_that_breaks_the_contract_is_refused_by_name(change: dict[str, Any], reason: str) -> None:
    """The reason names the attribute, whichever way the record was checked."""
    document = {**json.loads(codec.encode(beat())), **change}
    for sql in (True, False):
        [(index, said)] = parse([json.dumps(document).encode()], sql=sql).bad
        assert index == 0
        assert said.startswith(reason)


@pytest.mark.parametrize("shift", range(4))
def test_a_broken_text_of_any_script_takes_no_other_event_with_it(shift: int) -> None:
    """DuckDB quotes what is no JSON in its error, cut by bytes, so inside a character: that must not end the parse."""
    broken = b"\x00" + b"x" * shift + "\u0080\u20ac\U0001f600".encode() * 60
    parsed = parse([broken, codec.encode(beat(0))], sql=True)
    assert [index for index, _reason in parsed.bad] == [0]
    assert len(accepted(parsed)) == 1


def test_an_odd_event_slows_no_later_one_of_its_stream() -> None:
    """An event that pydantic accepts, but whose id names another stream than it says, speaks for no stream."""
    sound = [codec.encode(beat(number)) for number in range(5)]
    odd = {**json.loads(sound[0]), "streamid": "another"}
    parser = Parser(sql_from_payloads=1)
    first = parser.parse(Payloads([json.dumps(odd, separators=(",", ":")).encode(), *sound]))
    assert (first.rows.num_rows + len(first.decoded), first.bad) == (6, [])
    assert parser.parse(Payloads(sound)).rows.num_rows == 5
    parser.close()


def test_what_is_kept_of_streams_is_bounded() -> None:
    """Other spellings of an event, and whatever else, begin no stream."""
    event = json.loads(codec.encode(beat()))
    spaced = json.dumps({**event, "note": "x/" * 50_000}).encode()
    long_id = json.dumps({**event, "id": "x" * 100_000 + "/0"}, separators=(",", ":")).encode()
    nothing = b"\0" * 10
    payloads = Payloads([spaced, long_id, nothing, nothing])
    assert max(len(stretch.begin) for stretch in payloads.stretches) < 1_000
    assert [index for index, _ in parse([spaced, long_id, nothing, nothing], sql=True).bad] == [2, 3]
