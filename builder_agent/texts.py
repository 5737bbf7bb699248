"""Texts of others in events: bounded, because one event has to fit into one record of every log."""

import hashlib
from typing import Final

from pydantic_core import to_json

MESSAGE_BYTES: Final = 64 << 10  # as JSON in UTF-8; an event may have 128 KiB
NAME_BYTES: Final = 1 << 10  # of a name, a reason or a setting, of which an event may have several


def cut(text: str, limit: int = MESSAGE_BYTES) -> str:
    """Return ``text``, or its beginning with the length and SHA-256 of all of it.

    The result is at most ``limit`` bytes of JSON, escapes included, plus one line. What is not
    Unicode in it becomes ``?``.
    """
    data = text.encode(errors="replace")
    head = data
    while (size := len(to_json(head.decode(errors="ignore")))) > limit:
        head = head[: len(head) * limit // size]
    if head is data:
        return data.decode()
    return f"{head.decode(errors='ignore')}\n[cut: {len(data)} bytes, sha256 {hashlib.sha256(data).hexdigest()}]"
