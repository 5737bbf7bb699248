"""What a spool could not hand on for its size or its form: kept here with the reason, and counted.

``log/deadletters/{runs|routes}/KEY/STREAM.jsonl``: one file per stream, written by the stream's one
drainer. A stream with a letter here has a gap in the log behind the spool, and a gate holds on it.
"""

import base64
import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from build_events.local_log.layout import KINDS, StreamPlace
from build_events.local_log.storage import names, sync_folder
from builder_agent.spool.pieces import Item

FOLDER = "deadletters"


def bury(place: StreamPlace, items: Sequence[Item], reasons: Sequence[str]) -> int:
    """Return how many of the items are new here, once all are durable. Call with the stream's drain lock held.

    Raises:
        OSError: they cannot be written.
    """
    path = Path(place.root) / FOLDER / place.kind / place.key / f"{place.name}.jsonl"
    known = {(letter.get("source"), letter.get("offset")) for letter in _read(path)}
    lines = [
        json.dumps(_letter(place, item, reason), ensure_ascii=False).encode() + b"\n"
        for item, reason in zip(items, reasons, strict=True)
        if (item.source, item.offset) not in known
    ]
    if not lines:
        return 0
    fresh = not path.exists()
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    try:
        # The line end in front parts them from half a line that an earlier, killed writer left.
        os.write(descriptor, b"".join(lines) if fresh else b"\n" + b"".join(lines))
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
    if fresh:
        sync_folder(path.parent)
    return len(lines)


def dead_letters(log_folder: Path) -> list[dict[str, Any]]:
    """Return every dead letter of a spool: stream, run or route, source, offset, reason and payload."""
    found = []
    for kind in KINDS:
        folder = log_folder / FOLDER / kind
        for key in names(folder):
            for name in names(folder / key):
                found += _read(folder / key / name)
    return found


def payload_of(letter: dict[str, Any]) -> bytes:
    """Return the bytes of a dead letter."""
    text: str | None = letter.get("payload")
    return base64.b64decode(letter["payload_base64"]) if text is None else text.encode()


def _letter(place: StreamPlace, item: Item, reason: str) -> dict[str, Any]:
    subject = {"run": place.run_id} if place.run_id is not None else {"route": place.route}
    head = {"stream": place.stream_id, **subject, "source": item.source, "offset": item.offset, "reason": reason}
    try:
        return {**head, "payload": item.payload.decode()}
    except UnicodeDecodeError:
        return {**head, "payload_base64": base64.b64encode(item.payload).decode("ascii")}


def _read(path: Path) -> list[dict[str, Any]]:
    try:
        lines = path.read_bytes().split(b"\n")
    except FileNotFoundError:
        return []
    letters = []
    for line in lines:
        try:
            letters.append(json.loads(line))
        except ValueError:  # half a line, written again by the next drainer; or an empty one
            continue
    return letters
