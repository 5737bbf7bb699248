"""Rows of the store, as JSON objects, to the fold's rows and to records."""

import re
from typing import Any

import pydantic

from analytics.errors import EvidenceError
from build_events.codec import decode_event
from build_events.envelope import Recorded, StreamHeader
from build_events.state import ArtifactRow, CancellationRow, PhaseRow, Ranges, RunRow, StreamRow

_RANGE = re.compile(r"(\d+)(?:-(\d+))?")


def run_row(row: dict[str, Any]) -> RunRow:
    """Return a run's row."""
    return RunRow(**row)


def phase_row(row: dict[str, Any]) -> PhaseRow:
    """Return a phase's row."""
    return PhaseRow(**row)


def cancellation_row(row: dict[str, Any]) -> CancellationRow:
    """Return a cancellation's row."""
    return CancellationRow(**row)


def artifact_row(row: dict[str, Any]) -> ArtifactRow:
    """Return a file's row."""
    return ArtifactRow(**row)


def stream_row(row: dict[str, Any]) -> StreamRow:
    """Return a stream's row; the store keeps the missing sequences as text."""
    return StreamRow(**{**row, "missing": parse_ranges(row["missing"])})


def parse_ranges(text: str) -> Ranges:
    """Return what ``build_events.ranges.text`` wrote, e.g. ``3, 7-9``, as half-open ranges."""
    found = _RANGE.findall(text)
    return tuple((int(low), int(high or low) + 1) for low, high in found)


def recorded(row: dict[str, Any]) -> Recorded:
    """Return an event's record.

    Raises:
        EvidenceError: the data is not what the event's type allows.
    """
    header = StreamHeader(
        stream_id=row["stream_id"],
        role=row["role"],
        run_id=row["run_id"],
        route=row["route"],
        source=row["source"],
        boot_id=row["boot_id"],
    )
    try:
        event = decode_event(row["type"], row["data"])
    except pydantic.ValidationError as error:
        raise EvidenceError(
            f"event {row['stream_id']}/{row['sequence']} in the store is no {row['type']}: {error.errors()[0]['msg']}; "
            "build the store again with `enginetrail collect --replay`"
        ) from None
    return Recorded(
        stream=header,
        sequence=row["sequence"],
        wall_ns=row["wall_ns"],
        monotonic_ns=row["monotonic_ns"],
        event=event,
    )
