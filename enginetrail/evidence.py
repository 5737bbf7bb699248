"""``enginetrail evidence``: facts about a route that no build can see."""

from pathlib import Path

import click
import pydantic
from pydantic import JsonValue, TypeAdapter

from build_events.codec import decode_event
from build_events.events import Event, SourceRecorded, ValidationRecorded
from enginetrail.home import Home
from enginetrail.streams import append_route_events
from enginetrail.usage import check_route

EVIDENCE: tuple[type[Event], ...] = (SourceRecorded, ValidationRecorded)
_TYPES = ", ".join(cls.type for cls in EVIDENCE)


class _Fact(pydantic.BaseModel):
    model_config = pydantic.ConfigDict(extra="forbid")
    type: str
    data: dict[str, JsonValue]


@click.group()
def evidence() -> None:
    """Record evidence about a route; gates read it."""


@evidence.command(epilog=f"Types: {_TYPES}. Their fields: build_events/schema/.")
@click.argument("route")
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.pass_obj
def record(home: Home, route: str, file: Path) -> None:
    """Record the facts in FILE about ROUTE.

    FILE holds a JSON array of {"type": ..., "data": {...}}. All are recorded, or none.
    """
    check_route(route)
    records = append_route_events(home, route, _read(file))
    for item in records[:-1]:  # the last one closes the stream
        click.echo(f"{item.event_id} {item.event.type}")


def _read(file: Path) -> list[Event]:
    try:
        facts = TypeAdapter(list[_Fact]).validate_json(file.read_bytes())
    except pydantic.ValidationError as error:
        raise click.UsageError(f'{file}: {_first(error)}; expected [{{"type": ..., "data": {{...}}}}]') from None
    if not facts:
        raise click.UsageError(f"{file}: holds no fact; expected at least one")
    return [_event(file, index, fact) for index, fact in enumerate(facts)]


def _event(file: Path, index: int, fact: _Fact) -> Event:
    try:
        event = decode_event(fact.type, fact.data)
    except pydantic.ValidationError as error:
        raise click.UsageError(f"{file}: fact {index} ({fact.type}): {_first(error)}") from None
    if not isinstance(event, EVIDENCE):
        raise click.UsageError(f"{file}: fact {index}: {fact.type!r} is no evidence; choose from {_TYPES}")
    return event


def _first(error: pydantic.ValidationError) -> str:
    detail = error.errors()[0]
    where = ".".join(str(part) for part in detail["loc"])
    return f"{where}: {detail['msg']}" if where else str(detail["msg"])
