"""JSON Schema of every event type, as its ``data`` stands on the wire, and of the envelope.

``python -m build_events.schemas`` writes ``build_events/schema/``; ``--check`` says whether the files
there are what this release writes.
"""

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, Literal, NotRequired

from pydantic import Field, JsonValue, TypeAdapter
from typing_extensions import TypedDict  # pydantic needs this one before Python 3.12

from build_events.envelope import StreamRole
from build_events.events import EVENT_TYPES

FOLDER = Path(__file__).parent / "schema"
DIALECT = "https://json-schema.org/draft/2020-12/schema"
ENVELOPE = "cloudevent.v1"
COMMAND = "python -m build_events.schemas"

_Text = Annotated[str, Field(min_length=1)]
_Decimal = Annotated[str, Field(pattern="^[0-9]+$")]


class CloudEvent(TypedDict):
    """The attributes of every event: CloudEvents 1.0 in JSON with this contract's extensions.

    Exactly one of ``runid`` and ``route`` is there. ``data`` is described by the schema that ``type``
    names. In a segment of the local log the last member is ``crc``: see ``build_events/local_log/lines.py``.
    """

    specversion: Literal["1.0"]
    id: _Text
    source: _Text
    type: _Text
    time: Annotated[str, Field(pattern=r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{9}Z$")]
    subject: _Text
    datacontenttype: Literal["application/json"]
    streamid: _Text
    streamrole: StreamRole
    sequence: Annotated[str, Field(pattern="^[0-9]{10}$")]
    runid: NotRequired[_Text]
    route: NotRequired[_Text]
    traceid: NotRequired[Annotated[str, Field(pattern="^[0-9a-f]{32}$")]]
    spanid: NotRequired[Annotated[str, Field(pattern="^[0-9a-f]{16}$")]]
    monotonicns: _Decimal
    bootid: _Text
    contract: Literal[1]
    data: JsonValue


def schemas() -> dict[str, dict[str, Any]]:
    """Return each schema by its name: the event's type, or ``ENVELOPE``."""
    found = {ENVELOPE: TypeAdapter(CloudEvent).json_schema(mode="serialization")}
    for event_type, cls in EVENT_TYPES.items():
        found[event_type] = cls.model_json_schema(mode="serialization")
    return {name: {"$schema": DIALECT, **schema} for name, schema in sorted(found.items())}


def files() -> dict[str, str]:
    """Return the text of each schema file by its name."""
    return {f"{name}.json": json.dumps(schema, indent=2) + "\n" for name, schema in schemas().items()}


def differences(folder: Path) -> list[str]:
    """Return what is wrong with the files in ``folder``, one line each; nothing where they are right."""
    wanted = files()
    present = {path.name: path.read_text(encoding="utf-8") for path in folder.glob("*.json")}
    missing = [f"{folder / name}: missing" for name in wanted if name not in present]
    other = [f"{folder / name}: differs" for name, text in wanted.items() if present.get(name, text) != text]
    unknown = [f"{folder / name}: no event type of this release" for name in sorted(present) if name not in wanted]
    return missing + other + unknown


def write(folder: Path) -> None:
    """Make ``folder`` hold exactly the schema files of this release."""
    wanted = files()
    folder.mkdir(exist_ok=True)
    for path in folder.glob("*.json"):
        if path.name not in wanted:
            path.unlink()
    for name, text in wanted.items():
        (folder / name).write_text(text, encoding="utf-8")


def main(arguments: Sequence[str], folder: Path = FOLDER) -> int:
    """Write or check the files; return the exit code: 0 done or equal, 1 they differ, 2 wrong usage."""
    if list(arguments) == ["--check"]:
        wrong = differences(folder)
        if wrong:
            sys.stderr.write("\n".join([*wrong, f"Run `{COMMAND}` and commit what it writes.", ""]))
        return 1 if wrong else 0
    if arguments:
        sys.stderr.write(f"usage: {COMMAND} [--check]\n")
        return 2
    write(folder)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
