"""A stream's state <-> bytes, so that the collector can store it and advance it later."""

import dataclasses
from typing import Any

from pydantic_core import from_json, to_json

from build_events import codec
from build_events.envelope import StreamHeader
from build_events.state import PhaseState, StreamState

# A store written by a release with another layout of the state is folded again from its events.
STATE_VERSION = 1


def dump(state: StreamState) -> bytes:
    """Return the state as JSON."""
    return to_json(
        {
            "version": STATE_VERSION,
            "header": dataclasses.asdict(state.header),
            "seen": state.seen,
            "phases": [dataclasses.asdict(phase) for phase in state.phases.values()],
            "kept": [codec.encode(record).decode() for record in state.kept],
        }
    )


def load(payload: bytes) -> StreamState | None:
    """Return the state that ``dump`` wrote, or ``None`` where another release wrote it."""
    document: dict[str, Any] = from_json(payload)
    if document["version"] != STATE_VERSION:
        return None
    phases = [PhaseState(**phase) for phase in document["phases"]]
    return StreamState(
        header=StreamHeader(**document["header"]),
        seen=tuple((low, high) for low, high in document["seen"]),
        phases={phase.phase_id: phase for phase in phases},
        kept=tuple(codec.decode(text.encode()) for text in document["kept"]),
    )
