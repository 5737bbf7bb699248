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
from build_events.envelope import Recorded
from build_events.errors import MalformedEventError
from build_events.events import Event
from collector.contract_sql import parse_sql
from collector.event_rows import HOT_TYPES, ROW_SCHEMA

# Below this many payloads, planning the SQL (about 10 ms) costs more than pydantic (about 25 us each).
_SQL_FROM_PAYLOADS = 400
# Room for one more on top (an end is declared as a last sequence), and TIMESTAMP_NS keeps its extremes.
_INT64_LIMIT = 2**63 - 2
_PARSE, _PARSE_MALFORMED = parse_sql(malformed=False), parse_sql(malformed=True)


@dataclass(frozen=True, slots=True)
class Decoded:
    """An event that pydantic accepted."""

    record: Recorded
    payload: str | None  # its data as JSON; null for the types whose columns hold all of it


@dataclass(frozen=True, slots=True)
class Parsed:
    """What a sequence of payloads held. Every payload is in exactly one of the three."""

    rows: pa.Table  # what the check in SQL accepted: ROW_SCHEMA without payload
    decoded: Sequence[Decoded]  # what only pydantic accepted
    bad: Sequence[tuple[int, str]]  # index of the payload, and why it holds no event


class Parser:
    """Parses payloads with a private in-memory database. One thread at a time."""

    def __init__(self, *, sql_from_payloads: int = _SQL_FROM_PAYLOADS) -> None:
        self._sql_from_payloads = sql_from_payloads
        self._db: duckdb.DuckDBPyConnection | None = None

    def close(self) -> None:
        """Give the database's memory back; a later ``parse`` makes a new one."""
        if self._db is not None:
            self._db.close()
            self._db = None

    def parse(self, payloads: Sequence[bytes]) -> Parsed:
        """Return the rows, the decoded events and the bad records of ``payloads``."""
        if len(payloads) < self._sql_from_payloads:
            rows, doubted = _NO_ROWS, range(len(payloads))
        else:
            checked = self._checked(_texts(payloads))
            believed = checked.column("believed").combine_chunks()
            doubted = pc.indices_nonzero(pc.invert(believed)).to_pylist()
            rows = checked.drop_columns(["believed"])
            if doubted:
                rows = rows.filter(believed)
        decoded: list[Decoded] = []
        bad: list[tuple[int, str]] = []
        for index in doubted:
            try:
                decoded.append(_decode(payloads[index]))
            except MalformedEventError as error:
                bad.append((index, str(error)))
        return Parsed(rows, decoded, bad)

    def _checked(self, texts: pa.Array) -> pa.Table:
        if self._db is None:
            # One thread: the others read the log and write the store meanwhile.
            self._db = duckdb.connect(":memory:", config={"enable_external_access": "false", "threads": "1"})
        self._db.register("payloads", pa.table({"j": texts}))
        try:
            return self._db.sql(_PARSE).to_arrow_table()
        except (duckdb.InvalidInputException, UnicodeDecodeError):
            # One of them is no JSON. DuckDB quotes it in its message, cut by bytes: the message may be no UTF-8.
            return self._db.sql(_PARSE_MALFORMED).to_arrow_table()
        finally:
            self._db.unregister("payloads")


_NO_ROWS = pa.schema([field for field in ROW_SCHEMA if field.name != "payload"]).empty_table()


def _texts(payloads: Sequence[bytes]) -> pa.Array:
    """Return the payloads as text; empty where one is not UTF-8, which is then left to pydantic."""
    try:
        return pa.array(payloads, pa.binary()).cast(pa.string())
    except pa.ArrowInvalid:
        return pa.array([_text(payload) for payload in payloads], pa.string())


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
    if abs(record.wall_ns) > _INT64_LIMIT:
        msg = "attribute time: outside the years 1678 to 2261"
        raise MalformedEventError(msg)
    if isinstance(record.event, Event):
        _check_numbers(record.event)
    if record.event.type in HOT_TYPES:
        return Decoded(record, None)
    return Decoded(record, to_json(from_json(payload).get("data")).decode())


def _check_numbers(event: Event) -> None:
    for name, value in event:
        if isinstance(value, int) and abs(value) > _INT64_LIMIT:
            msg = f"attribute data.{name}: does not fit a 64-bit column"
            raise MalformedEventError(msg)
