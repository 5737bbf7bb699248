"""The contract check in SQL, for the event types that make up nearly all of a log.

A row passes when its text equals, byte for byte, what ``build_events.codec.encode`` writes for the
header of its stream and the values that were read out of it. Equal text leaves no room for what
DuckDB's JSON reader lets through (a number for a text, 1.7 for 2, doubled keys, a comma too many), so
what passes here passes pydantic with the same values. What does not pass is no verdict: pydantic
decides on those (``parsing.py``).
Values must be compared because the ranges are typed: all numbers are 64-bit.
"""

from collections.abc import Iterable

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
    "type": "VARCHAR",
    "time": "VARCHAR",
    "sequence": "UINTEGER",
    "spanid": "VARCHAR",
    "monotonicns": "BIGINT",
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


# The pieces of StreamText around the event's own values. A sequence has ten digits at most (_VALUES): added to the
# first number of eleven, its last ten have the zeros.
_ENVELOPE_TEXT = f"""
    before_id_sequence, e.sequence, before_type, e.type, '","time":"', e.time,
    before_sequence, right((10000000000 + e.sequence)::VARCHAR, 10), after_sequence,
    {_if_known("e.spanid", '","spanid":"')}, '","monotonicns":"', e.monotonicns, before_data"""


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


# What the models ask of values; null counts as no. The header's were asked of the event that it was read from.
_VALUES = """
    e.sequence <= 2147483647 AND e.monotonicns >= 0
    AND coalesce(regexp_full_match(e.spanid, '[0-9a-f]{16}'), true)
    AND strftime(moment, '%Y-%m-%dT%H:%M:%S.%nZ') = e.time
    AND d.cancel_state IN ('none', 'requested', 'observed')
    AND coalesce(least(d.phase_id, d.parent_id), 1) >= 1
    AND coalesce(least(d.steps_total, d.steps_seen, d.callbacks, d.longest_gap_ns), 0) >= 0
    AND coalesce(least(d.duration_ns, d.since_callback_ns), 0) >= 0
"""

# The inner projections stay apart, and the filter above them: from_json and the cast run once per row (seen in the
# plan; a materialized CTE does the same and costs a tenth more). Whoever runs parse_sql's query sets this.
SETTINGS = "SET disabled_optimizers = 'filter_pushdown'"


def parse_sql(*, malformed: bool) -> str:
    """Return the query that reads the rows that may be believed out of the table ``payloads``, in its order.

    Its columns are ``place`` and ``stream``, which are given back, ``j``, the text, and the pieces of StreamText.
    The result has the columns of base.events but for those of the header and the payload. Without ``malformed``
    a text that is no JSON fails the query; with it, such a row is not believed, and all cost a fifth more.
    """
    read = f"from_json(j, '{_structure()}')"
    return f"""
SELECT
    place, stream, e.sequence AS sequence, e.type AS type, moment AS time,
    e.monotonicns AS monotonic_ns, e.spanid AS span_id,
    coalesce(d.phase_id, d.open_phase_id) AS phase_id, d.parent_id AS parent_id, d.name AS name,
    d.steps_total AS steps_total, d.steps_seen AS steps_seen, d.thread_id AS thread_id, d.build_id AS build_id,
    d.cancel_state AS cancel_state, d.callbacks AS callbacks, d.longest_gap_ns AS longest_gap_ns,
    d.duration_ns AS duration_ns, d.after_error AS after_error, d.since_callback_ns AS since_callback_ns
FROM (SELECT *, e.data AS d, TRY_CAST(e.time AS TIMESTAMP_NS) AS moment
      FROM (SELECT *, {f"TRY({read})" if malformed else read} AS e FROM payloads))
WHERE {_VALUES} AND CASE WHEN {_equals_phase()} THEN true ELSE {_equals_heartbeat()} END
"""  # noqa: S608 - made of this module's own tables
