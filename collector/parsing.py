"""Payloads of the log to rows of ``base.events``: most in SQL, the rest one by one by pydantic.

Needs no store. What is accepted, and with which values, is what ``build_events.codec.decode`` accepts,
but for numbers and times that no 64-bit column holds.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import duckdb
import pyarrow as pa
import pyarrow.compute as pc
from pydantic_core import from_json, to_json

from build_events import codec
from build_events.envelope import Recorded, StreamHeader
from build_events.errors import MalformedEventError
from build_events.events import Event
from collector.contract_sql import SETTINGS, parse_sql
from collector.event_rows import HEADER_COLUMNS, HOT_TYPES, ROW_SCHEMA
from collector.payloads import NO_BEGIN, Payloads, Stretch
from collector.stream_text import NO_STREAM, StreamText

# Below this many payloads, planning the SQL (about 10 ms) costs more than pydantic (about 25 us each).
_SQL_FROM_PAYLOADS = 400
_INT64 = range(-(2**63), 2**63)
_MOST_STREAMS = 10_000  # whose header is kept
_NOBODYS = (None, NO_STREAM)
_PARSE, _PARSE_MALFORMED = parse_sql(malformed=False), parse_sql(malformed=True)


@dataclass(frozen=True, slots=True)
class Decoded:
    """An event that pydantic accepted."""

    record: Recorded
    payload: str | None  # its data as JSON; null for the types whose columns hold all of it


@dataclass(frozen=True, slots=True)
class Parsed:
    """What a sequence of payloads held. Every payload is in exactly one of the three."""

    rows: pa.Table  # what the check in SQL accepted: ROW_SCHEMA without payload, the header's columns as dictionaries
    decoded: Sequence[Decoded]  # what only pydantic accepted
    bad: Sequence[tuple[int, str]]  # index of the payload, and why it holds no event


class Parser:
    """Parses payloads with a private in-memory database. One thread at a time."""

    def __init__(self, *, sql_from_payloads: int = _SQL_FROM_PAYLOADS) -> None:
        self._sql_from_payloads = sql_from_payloads
        self._db: duckdb.DuckDBPyConnection | None = None
        self._streams: dict[bytes, tuple[StreamHeader, StreamText]] = {}

    def close(self) -> None:
        """Give the database's memory back; a later ``parse`` makes a new one."""
        if self._db is not None:
            self._db.close()
            self._db = None

    def parse(self, payloads: Payloads) -> Parsed:
        """Return the rows, the decoded events and the bad records of ``payloads``."""
        if payloads.count < self._sql_from_payloads:
            rows, doubted = _NO_ROWS, [*range(payloads.count)]
        else:
            rows, doubted = self._checked(payloads)
        decoded: list[Decoded] = []
        bad: list[tuple[int, str]] = []
        for index in doubted:
            try:
                decoded.append(_decode(payloads[index]))
            except MalformedEventError as error:
                bad.append((index, str(error)))
        return Parsed(rows, decoded, bad)

    def _checked(self, payloads: Payloads) -> tuple[pa.Table, list[int]]:
        """Return the rows that the check in SQL believes, and the places of the others."""
        streams = [self._stream_of(payloads, stretch) for stretch in payloads.stretches]
        believed = self._run(_asked(payloads, [text for _, text in streams]))
        rows = _with_headers(believed, [header for header, _ in streams])
        return rows, _missing(believed.column("place"), payloads.count)

    def _stream_of(self, payloads: Payloads, stretch: Stretch) -> tuple[StreamHeader | None, StreamText]:
        """Return whose payloads begin like this, as the first of them says if pydantic accepts it, else nobody's."""
        known = self._streams.get(stretch.begin)
        if known is not None:
            return known
        if stretch.begin == NO_BEGIN:
            return _NOBODYS
        try:
            header = codec.decode(payloads[stretch.first]).stream
        except MalformedEventError:
            return _NOBODYS
        text = StreamText.of(header)
        if text.before_id_sequence.encode() != stretch.begin:
            return _NOBODYS  # an event that says two things, or is spelt otherwise: it speaks for no other one
        if len(self._streams) >= _MOST_STREAMS:
            self._streams.clear()
        self._streams[stretch.begin] = (header, text)
        return header, text

    def _run(self, payloads: pa.Table) -> pa.Table:
        if self._db is None:
            # One thread: the others read the log and write the store meanwhile.
            self._db = duckdb.connect(":memory:", config={"enable_external_access": "false", "threads": "1"})
            self._db.execute(SETTINGS)
        self._db.register("payloads", payloads)
        try:
            return self._db.sql(_PARSE).to_arrow_table()
        except (duckdb.InvalidInputException, UnicodeDecodeError):
            # One of them is no JSON. DuckDB quotes it in its message, cut by bytes: the message may be no UTF-8.
            return self._db.sql(_PARSE_MALFORMED).to_arrow_table()
        finally:
            self._db.unregister("payloads")


# The header's columns have one value for thousands of rows.
_CODED = pa.dictionary(pa.int32(), pa.string())
_FIELDS = [field.with_type(_CODED) if field.name in HEADER_COLUMNS else field for field in ROW_SCHEMA]
_NO_ROWS = pa.schema([field for field in _FIELDS if field.name != "payload"]).empty_table()


def _asked(payloads: Payloads, streams: Sequence[StreamText]) -> pa.Table:
    """Return the table that the check in SQL reads, given the text of the stream of each stretch."""
    ends = [*(stretch.first for stretch in payloads.stretches[1:]), payloads.count]
    numbers = pa.arange(0, len(streams)).cast(pa.int32())
    stream = pc.run_end_decode(pa.RunEndEncodedArray.from_arrays(pa.array(ends, pa.int32()), numbers))
    columns = {"place": pa.arange(0, payloads.count), "stream": stream, "j": _texts(payloads.column())}
    for name, pieces in zip(StreamText._fields, zip(*streams, strict=True), strict=True):
        columns[name] = pa.DictionaryArray.from_arrays(stream, pa.array(pieces, pa.string()))
    return pa.table(columns)


def _with_headers(believed: pa.Table, headers: Sequence[StreamHeader | None]) -> pa.Table:
    """Return rows of what the check in SQL believes, given the header of each stream."""
    columns = dict(zip(believed.column_names, believed.columns, strict=True))
    stream = believed.column("stream").combine_chunks()
    for name, attribute in HEADER_COLUMNS.items():
        values = pa.array([getattr(header, attribute, None) for header in headers], pa.string()).dictionary_encode()
        columns[name] = pa.DictionaryArray.from_arrays(values.indices.take(stream), values.dictionary)
    return pa.table({name: columns[name] for name in _NO_ROWS.column_names})


def _missing(places: pa.ChunkedArray, count: int) -> list[int]:
    """Return the numbers below ``count`` that do not stand in ``places``, which ascends."""
    edges = pa.concat_arrays([pa.array([-1]), *places.chunks, pa.array([count])])
    gaps = pc.indices_nonzero(pc.greater(pc.subtract(edges[1:], edges[:-1]), 1)).to_pylist()
    return [place for gap in gaps for place in range(edges[gap].as_py() + 1, edges[gap + 1].as_py())]


def _texts(payloads: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return the payloads as text; empty where one is not UTF-8, which is then left to pydantic."""
    try:
        return payloads.cast(pa.string())
    except pa.ArrowInvalid:
        return pa.chunked_array([[_text(payload) for payload in payloads.to_pylist()]], pa.string())


def _text(payload: bytes) -> str:
    try:
        return payload.decode()
    except UnicodeDecodeError:
        return ""


def _decode(payload: bytes) -> Decoded:
    """Return the event of ``payload``.

    Raises:
        MalformedEventError: it breaks the contract, or holds a number that no column can.
    """
    record = codec.decode(payload)
    if record.wall_ns not in _INT64[2:-1]:  # TIMESTAMP_NS keeps its extremes for itself
        msg = "attribute time: outside the years 1678 to 2261"
        raise MalformedEventError(msg)
    if isinstance(record.event, Event):
        _check_numbers(record.event)
    if record.event.type in HOT_TYPES:
        return Decoded(record, None)
    return Decoded(record, to_json(from_json(payload).get("data")).decode())


def _check_numbers(event: Event) -> None:
    # Those of hot types are stored as they are. Others are counted with: an end is declared as a last sequence.
    fits = _INT64 if event.type in HOT_TYPES else _INT64[:-1]
    for name, value in event:
        if isinstance(value, int) and value not in fits:
            msg = f"attribute data.{name}: does not fit a 64-bit column"
            raise MalformedEventError(msg)
