"""Hypothesis strategies of the contract: any event, any record, and whole histories of one run.

Events are generated from the models themselves, so a new type is covered without a change here.
"""

import types
from typing import Any, Literal, TypeVar, Union, cast, get_args, get_origin

import annotated_types
from hypothesis import strategies as st
from pydantic import BaseModel, JsonValue
from pydantic.fields import FieldInfo

from build_events.envelope import Recorded, StreamHeader
from build_events.events import EVENT_CLASSES, EVENT_TYPES, Event, UnknownEvent
from tests.build_events.scenes import ENDS, End, Scene, flatten

E = TypeVar("E", bound=BaseModel)

# What a JSON text in UTF-8 can hold: every character but lone surrogates.
texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
names = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=20)
nanoseconds = st.integers(0, 2**63 - 1)
# 9999 is the last year that ISO 8601 writes with four digits.
wall_times = st.integers(0, 253_402_300_799_999_999_999)
_json_scalars = (
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | texts
)
json_values = st.recursive(
    _json_scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=5,
)


def models(cls: type[E]) -> st.SearchStrategy[E]:
    """Return instances of a pydantic model; optional fields are sometimes left out."""
    values = {name: _values(field.annotation, field) for name, field in cls.model_fields.items()}
    required = {name: value for name, value in values.items() if cls.model_fields[name].is_required()}
    optional = {name: value for name, value in values.items() if name not in required}
    return st.fixed_dictionaries(required, optional=optional).map(lambda fields: cls(**fields))


def events(*classes: type[Event]) -> st.SearchStrategy[Event]:
    """Return events of these classes, of every class without an argument."""
    return st.one_of([models(cls) for cls in classes or EVENT_CLASSES])


def unknown_events() -> st.SearchStrategy[UnknownEvent]:
    """Return events of types that this release does not define."""
    kinds = names.filter(lambda name: name not in EVENT_TYPES)
    return st.builds(UnknownEvent, type=kinds, data=json_values)


def headers() -> st.SearchStrategy[StreamHeader]:
    """Return stream identities of every role."""
    common = {
        "stream_id": names,
        "trace_id": st.none() | st.uuids().map(lambda value: value.hex),
        "source": names,
        "boot_id": names,
    }
    runs = st.builds(StreamHeader, role=st.sampled_from(["main", "observer"]), run_id=names, **common)
    routes = st.builds(StreamHeader, role=st.just("route"), route=names, **common)
    return runs | routes


def records(what: st.SearchStrategy[Event | UnknownEvent] | None = None) -> st.SearchStrategy[Recorded]:
    """Return single records: any event at any place of any stream."""
    return st.builds(
        Recorded,
        stream=headers(),
        sequence=st.integers(0, 2**31 - 1),
        wall_ns=wall_times,
        monotonic_ns=nanoseconds,
        span_id=st.none() | st.text("0123456789abcdef", min_size=16, max_size=16),
        event=events() | unknown_events() if what is None else what,
    )


@st.composite
def histories(draw: st.DrawFn, *, ends: tuple[End, ...] = ENDS) -> list[Recorded]:
    """Return every record of one run, in the order in which they were written.

    The run has a main stream, and observer streams where its end has them. Sequences have no gaps,
    times never run backwards, and each end in ``ends`` looks as the contract says it looks.
    """
    end = draw(st.sampled_from(ends))
    supervised = end in {"killed", "crashed", "oom_killed"} or draw(st.booleans())
    operations = flatten(draw(_trees))
    scene = Scene(
        run_id=draw(st.uuids()).hex,
        supervised=supervised,
        # One step a record, taken in turn: cheap to draw and to shrink.
        steps_ns=draw(st.lists(st.integers(0, 3_000_000_000), min_size=1, max_size=8)),
        steps_total=draw(st.integers(0, 40)),
    )
    stop = draw(st.integers(0, len(operations)))
    return scene.play(end, operations, stop)


@st.composite
def several_histories(draw: st.DrawFn, *, max_runs: int = 3) -> list[Recorded]:
    """Return the records of several runs, one run after the other."""
    runs = draw(st.lists(histories(), min_size=1, max_size=max_runs, unique_by=lambda run: run[0].stream.run_id))
    return [record for run in runs for record in run]


# A phase is the tuple of its children; the root is no phase.
_trees: st.SearchStrategy[Any] = st.recursive(
    st.just(()), lambda inner: st.lists(inner, min_size=1, max_size=3).map(tuple), max_leaves=6
)


def _values(annotation: Any, field: FieldInfo | None = None) -> st.SearchStrategy[Any]:
    """Return what a field's annotation allows."""
    origin, arguments = get_origin(annotation), get_args(annotation)
    if annotation is JsonValue:
        values: st.SearchStrategy[Any] = json_values
    elif origin is Literal:
        values = st.sampled_from(arguments)
    elif origin in {Union, types.UnionType}:
        values = st.one_of([_values(argument, field) for argument in arguments])
    elif origin is list:
        values = st.lists(_values(arguments[0]), max_size=3)
    elif origin is dict:
        values = st.dictionaries(_values(arguments[0]), _values(arguments[1]), max_size=3)
    elif hasattr(annotation, "__metadata__"):
        values = _scalars(arguments[0], arguments[1:])
    elif isinstance(annotation, type) and issubclass(annotation, BaseModel):
        values = models(annotation)
    else:
        values = _scalars(annotation, tuple(field.metadata) if field else ())
    return values


def _scalars(kind: Any, metadata: tuple[Any, ...]) -> st.SearchStrategy[Any]:
    """Return plain values within the bounds that a field's metadata states."""
    rules = [rule for item in metadata for rule in (item.metadata if isinstance(item, FieldInfo) else [item])]
    if kind is str:
        pattern = next((rule.pattern for rule in rules if hasattr(rule, "pattern") and rule.pattern), None)
        if pattern is not None:
            return st.from_regex(pattern, fullmatch=True)
        return names if any(isinstance(rule, annotated_types.MinLen) for rule in rules) else texts
    if kind is int:
        low = next((rule.ge for rule in rules if isinstance(rule, annotated_types.Ge)), -(2**63))
        return st.integers(cast("int", low), 2**63 - 1)
    if kind is bool:
        return st.booleans()
    if kind is type(None):
        return st.none()
    msg = f"no strategy for {kind!r}: add one here"
    raise TypeError(msg)
