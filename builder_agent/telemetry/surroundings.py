"""What a run is told of its surroundings: the trace that it is part of, when it was queued, which run it retries."""

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import Final

from build_events import ids
from build_events.clock import NS_PER_S, from_iso
from build_events.errors import EngineTrailError
from build_events.local_log import read_run

QUEUED_AT: Final = "ENGINETRAIL_QUEUED_AT"
_TRACEPARENT: Final = re.compile(
    r"(?!ff)(?P<version>[0-9a-f]{2})-(?P<trace>[0-9a-f]{32})-(?P<parent>[0-9a-f]{16})-[0-9a-f]{2}(?P<more>-.*)?"
)
_LATEST_S: Final = 1 << 33  # the year 2242; what is larger is milliseconds


@dataclass(frozen=True, slots=True)
class TraceContext:
    """The trace of a run, and the span in it that the run is a child of; ``None`` = the run is a trace of its own."""

    trace_id: str
    parent_span_id: str | None = None


def trace_context_from(environment: Mapping[str, str]) -> TraceContext:
    """Return what ``TRACEPARENT`` says, or a new trace where it is not valid.

    Source: https://www.w3.org/TR/trace-context-1/ section 3.2; a later version may have more fields.
    """
    match = _TRACEPARENT.fullmatch(environment.get("TRACEPARENT", ""))
    usable = match is not None and match["trace"].strip("0") and match["parent"].strip("0")
    if match is None or not usable or (match["version"] == "00" and match["more"] is not None):
        return TraceContext(ids.trace_id())
    return TraceContext(match["trace"], match["parent"])


def queued_at_ns(text: str) -> int:
    """Return nanoseconds since 1970 of ISO 8601 with an offset, or of a decimal number of seconds since 1970.

    Raises:
        ValueError: with what to give instead.
    """
    try:
        seconds = Decimal(text)
    except InvalidOperation:
        try:
            return from_iso(text)
        except ValueError:
            seconds = Decimal(math.nan)
    if not (seconds.is_finite() and 0 <= seconds < _LATEST_S):
        raise ValueError(f"{text!r} is no time: give ISO 8601 with an offset, or seconds since 1970")
    return int(seconds * NS_PER_S)


def trace_id_of(log_folder: Path, run_id: str) -> str | None:
    """Return the trace id of a run, ``None`` where the folder does not hold it (any more)."""
    try:
        records = read_run(log_folder, run_id)
    except (EngineTrailError, OSError, ValueError):
        return None
    return next((record.stream.trace_id for record in records if record.stream.role == "main"), None)
