"""A span before any SDK: what is exported, and what a trace lint reads."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

Attribute = str | int | float | bool | tuple[str, ...]
Attributes = Mapping[str, Attribute]


@dataclass(frozen=True, slots=True, kw_only=True)
class SpanEvent:
    """A moment inside a span."""

    name: str
    at_ns: int  # since 1970 UTC
    attributes: Attributes = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class SpanLink:
    """Another span that this one has to do with, in this trace or another."""

    trace_id: str
    span_id: str
    attributes: Attributes = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """One span. Ids are lower-case hexadecimal text, times nanoseconds since 1970 UTC."""

    name: str
    trace_id: str  # 32 digits
    span_id: str  # 16 digits
    parent_span_id: str | None  # null for the root of a trace
    kind: Literal["server", "internal"] = "internal"
    start_ns: int
    end_ns: int
    attributes: Attributes
    status: Literal["unset", "ok", "error"] = "unset"
    status_description: str | None = None
    events: tuple[SpanEvent, ...] = ()
    links: tuple[SpanLink, ...] = ()
    resource: Attributes = field(default_factory=dict)  # of the process that the span is about
