"""What a reader and the collector say to each other over Flight: one request, one table."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa

from collector.errors import QueryLimitError, QueryRefusedError, StoreError

_BEHIND = b"enginetrail.behind"
_ERRORS: dict[bytes, type[StoreError]] = {b"refused": QueryRefusedError, b"limit": QueryLimitError}


@dataclass(frozen=True, slots=True)
class Request:
    """A query, and how far into the log its answer must reach."""

    sql: str
    params: Sequence[object]  # texts, numbers, booleans, nulls, and lists of them
    ends: Mapping[str, int]  # the log's ends as the asker saw them: source -> next offset


def encode(request: Request) -> bytes:
    """Return a Flight ticket."""
    return json.dumps({"sql": request.sql, "params": list(request.params), "ends": dict(request.ends)}).encode()


def decode(ticket: bytes) -> Request:
    """Return the request of a ticket.

    Raises:
        QueryRefusedError: it is none of ours.
    """
    try:
        document = json.loads(ticket)
        return Request(str(document["sql"]), list(document["params"]), dict(document["ends"]))
    except (ValueError, KeyError, TypeError) as error:
        msg = f"the request cannot be read ({error}): asker and collector are of different releases."
        raise QueryRefusedError(msg) from None


def mark(table: pa.Table, *, behind: bool) -> pa.Table:
    """Return the answer with what the asker must know beside it."""
    metadata = {**(table.schema.metadata or {}), _BEHIND: b"1" if behind else b"0"}
    return table.replace_schema_metadata(metadata)


def unmark(table: pa.Table) -> tuple[pa.Table, bool]:
    """Return the answer as it was, and whether it may lack what the asker saw in the log."""
    metadata = dict(table.schema.metadata or {})
    behind = metadata.pop(_BEHIND, b"0") == b"1"
    return table.replace_schema_metadata(metadata or None), behind


def error_kind(error: StoreError) -> bytes:
    """Return how the kind of an error travels."""
    return next((kind for kind, cls in _ERRORS.items() if isinstance(error, cls)), b"")


def error_of(kind: bytes, message: str) -> StoreError:
    """Return the error that travelled."""
    return _ERRORS.get(kind, StoreError)(message)
