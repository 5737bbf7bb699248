"""The contract check in SQL, for the event types that make up nearly all of a log.

A row passes when its text equals, byte for byte, what ``build_events.codec.encode`` writes for the
values that were read out of it. Equal text leaves no room for what DuckDB's JSON reader lets through
(a number for a text, 1.7 for 2, doubled keys, a comma too many), so what passes here passes pydantic
with the same values. What does not pass is no verdict: pydantic decides on those (``parsing.py``).
Values must be compared because the ranges are typed: all numbers are 64-bit.
"""

from collections.abc import Iterable

from build_events.envelope import CONTRACT_VERSION
from build_events.events import HeartbeatRecorded, Phase, PhaseFinished, PhaseProgressed, PhaseStarted

# How a field of the data is written: see _written().
_PHASE = (
    ("phase_id", "number"),
    ("parent_id", "number or null"),
    ("name", "text"),
    ("unit", "step"),
    ("steps_total", "number"),
    ("steps_seen", "number"),
    ("thread_id", "number"),
    ("build_id", "text"),
    ("cancel_state", "text"),
)
# What follows in some of the phase events, in an order that is that of each of them, and in which.
_OF_SOME_PHASES: tuple[tuple[str, str, tuple[type[Phase], ...]], ...] = (
    ("callbacks", "number", (PhaseProgressed,)),
    ("duration_ns", "digits", (PhaseFinished,)),
    ("longest_gap_ns", "digits", (PhaseProgressed, PhaseFinished)),
    ("after_error", "boolean", (PhaseFinished,)),
)
_HEARTBEAT = (
    ("open_phase_id", "number or null"),
    ("since_callback_ns", "digits or null"),
    ("cancel_state", "text"),
)

_SQL_TYPES = {"text": "VARCHAR", "boolean": "BOOLEAN"}  # all others are 64-bit numbers
_FIELDS = (*_PHASE, *((name, kind) for name, kind, _ in _OF_SOME_PHASES), *_HEARTBEAT)
_COLUMNS = {name: _SQL_TYPES.get(kind, "BIGINT") for name, kind in _FIELDS}
del _COLUMNS["unit"]  # a constant

_ENVELOPE = {
    "source": "VARCHAR",
    "type": "VARCHAR",
    "time": "VARCHAR",
    "streamid": "VARCHAR",
    "streamrole": "VARCHAR",
    "sequence": "UINTEGER",
    "runid": "VARCHAR",
    "route": "VARCHAR",
    "traceid": "VARCHAR",
    "spanid": "VARCHAR",
    "monotonicns": "BIGINT",
    "bootid": "VARCHAR",
}


def _structure() -> str:
    """Return what ``from_json`` reads out of a record."""
    data = ",".join(f'"{name}":"{kind}"' for name, kind in _COLUMNS.items())
    envelope = ",".join(f'"{name}":"{kind}"' for name, kind in _ENVELOPE.items())
    return f'{{{envelope},"data":{{{data}}}}}'


def _written(field: str, kind: str) -> str:
    """Return the SQL pieces that write a field as the codec does, after its comma."""
    value = f"d.{field}"
    match kind:
        case "step":
            return f"""'"{field}":"step"'"""
        case "text" | "digits":
            return f"""'"{field}":"', {value}, '"'"""
        case "number" | "boolean":
            return f"""'"{field}":', {value}"""
        case "number or null":
            return f"""'"{field}":', coalesce({value}::VARCHAR, 'null')"""
        case "digits or null":
            return f"""'"{field}":', coalesce('"' || {value} || '"', 'null')"""
        case _:
            msg = f"no rule to write {kind}"
            raise ValueError(msg)


def _if_known(value: str, before: str, after: str = "") -> str:
    """Return the pieces of a value with what stands around it, all of them empty where it is null."""
    pieces = f"CASE WHEN {value} IS NULL THEN '' ELSE '{before}' END, {value}"
    return f"{pieces}, CASE WHEN {value} IS NULL THEN '' ELSE '{after}' END" if after else pieces


def _list(fields: Iterable[tuple[str, str]]) -> str:
    return ", ',', ".join(_written(name, kind) for name, kind in fields)


# An attribute that may be missing stands between the quote that ends the one before it and the one that begins the
# next. A sequence has ten digits at most (_VALUES): added to the first number of eleven, its last ten have the zeros.
_ENVELOPE_TEXT = f"""
    '{{"specversion":"1.0","id":"', e.streamid, '/', e.sequence, '","source":"', e.source, '","type":"', e.type,
    '","time":"', e.time, '","subject":"', coalesce(e.runid, e.route),
    '","datacontenttype":"application/json","streamid":"', e.streamid, '","streamrole":"', e.streamrole,
    '","sequence":"', right((10000000000 + e.sequence)::VARCHAR, 10),
    {", ".join(_if_known(f"e.{name}", f'","{name}":"') for name in ("runid", "route", "traceid", "spanid"))},
    '","monotonicns":"', e.monotonicns, '","bootid":"', e.bootid, '","contract":{CONTRACT_VERSION},"data":{{'"""


def _equals_phase() -> str:
    """Return whether the text is what the codec writes of a phase event.

    One text for the three types and no case by type: DuckDB copies all columns for each branch of a case.
    """
    pieces, conditions = [_ENVELOPE_TEXT, _list(_PHASE)], []
    for name, kind, classes in _OF_SOME_PHASES:
        quote = '"' if kind == "digits" else ""
        pieces.append(_if_known(f"d.{name}", f',"{name}":{quote}', quote))
        types = ", ".join(f"'{cls.type}'" for cls in classes)
        conditions.append(f"(d.{name} IS NOT NULL) = (e.type IN ({types}))")
    types = ", ".join(f"'{cls.type}'" for cls in (PhaseStarted, PhaseProgressed, PhaseFinished))
    return f"concat({', '.join(pieces)}, '}}}}') = j AND {' AND '.join(conditions)} AND e.type IN ({types})"


def _equals_heartbeat() -> str:
    return f"concat({_ENVELOPE_TEXT}, {_list(_HEARTBEAT)}, '}}}}') = j AND e.type = '{HeartbeatRecorded.type}'"


# What the models ask of values; null counts as no.
_VALUES = """
    e.streamrole IN ('main', 'observer', 'route') AND (e.runid IS NULL) <> (e.route IS NULL)
    AND e.streamid <> '' AND e.source <> '' AND e.bootid <> ''
    AND coalesce(e.runid, '-') <> '' AND coalesce(e.route, '-') <> ''
    AND e.sequence <= 2147483647 AND e.monotonicns >= 0
    AND coalesce(regexp_full_match(e.traceid, '[0-9a-f]{32}'), true)
    AND coalesce(regexp_full_match(e.spanid, '[0-9a-f]{16}'), true)
    AND strftime(TRY_CAST(e.time AS TIMESTAMP_NS), '%Y-%m-%dT%H:%M:%S.%nZ') = e.time
    AND d.cancel_state IN ('none', 'requested', 'observed')
    AND coalesce(d.phase_id, 1) >= 1 AND coalesce(d.parent_id, 1) >= 1
    AND coalesce(d.steps_total, 0) >= 0 AND coalesce(d.steps_seen, 0) >= 0
    AND coalesce(d.callbacks, 0) >= 0 AND coalesce(d.longest_gap_ns, 0) >= 0
    AND coalesce(d.duration_ns, 0) >= 0 AND coalesce(d.since_callback_ns, 0) >= 0
"""


def parse_sql(*, malformed: bool) -> str:
    """Return the query that reads the table ``payloads(j)``: one row for each of its rows, in its order.

    The columns are the typed ones of base.events, and whether they may be believed. Without ``malformed`` a
    text that is no JSON fails the query; with it, such a row is not believed, and all cost a fifth more.

    The inner projections stay apart, so from_json runs once per row (seen in the plan); a materialized CTE
    does the same and costs a tenth more.
    """
    read = f"from_json(j, '{_structure()}')"
    return f"""
SELECT
    e.streamid AS stream_id, e.streamrole AS stream_role, e.sequence AS sequence, e.type AS type,
    e.runid AS run_id, e.route AS route, e.source AS source, TRY_CAST(e.time AS TIMESTAMP_NS) AS time,
    e.monotonicns AS monotonic_ns, e.bootid AS boot_id, e.traceid AS trace_id, e.spanid AS span_id,
    coalesce(d.phase_id, d.open_phase_id) AS phase_id, d.parent_id AS parent_id, d.name AS name,
    d.steps_total AS steps_total, d.steps_seen AS steps_seen, d.thread_id AS thread_id, d.build_id AS build_id,
    d.cancel_state AS cancel_state, d.callbacks AS callbacks, d.longest_gap_ns AS longest_gap_ns,
    d.duration_ns AS duration_ns, d.after_error AS after_error, d.since_callback_ns AS since_callback_ns,
    coalesce({_VALUES} AND CASE WHEN {_equals_phase()} THEN true ELSE {_equals_heartbeat()} END, false) AS believed
FROM (SELECT j, e, e.data AS d FROM (SELECT j, {f"TRY({read})" if malformed else read} AS e FROM payloads))
"""  # noqa: S608 - made of this module's own tables
