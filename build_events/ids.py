"""Identifiers: random ones from the kernel, derived ones from a run id.

The process's own random generators are never used: a host may have seeded or forked them.
"""

import hashlib
import os
import uuid

ROOT_ORDINAL = 0  # the run itself; its phases count from 1


def random_id() -> str:
    """Return a new random UUID (version 4) in text form, drawn from the kernel."""
    return str(uuid.UUID(bytes=os.urandom(16), version=4))


def trace_id() -> str:
    """Return a new W3C trace id: 32 lower-case hexadecimal digits, never all zero."""
    return uuid.UUID(bytes=os.urandom(16), version=4).hex


def span_id(run_id: str, ordinal: int) -> str:
    """Return the span id of a run's phase: 16 lower-case hexadecimal digits.

    ``ordinal`` is the phase id, or ``ROOT_ORDINAL`` for the run. Any process can compute it, so a
    span can be closed by somebody else than the process that opened it.
    """
    return named_span_id(run_id, str(ordinal))


def named_span_id(run_id: str, name: str) -> str:
    """Return the span id of a span of a run that is no phase, e.g. ``anchor`` or ``3/slice/2``."""
    return hashlib.sha256(f"{run_id}/{name}".encode()).hexdigest()[:16]


def event_id(stream_id: str, sequence: int) -> str:
    """Return the CloudEvents id of an event: the same for every delivery of it."""
    return f"{stream_id}/{sequence}"
