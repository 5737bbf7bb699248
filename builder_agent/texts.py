"""Texts of others in events: bounded, because one event has to fit into one record of every log."""

import hashlib
from typing import Final

MESSAGE_BYTES: Final = 64 << 10  # of UTF-8; an event may have 128 KiB


def cut(text: str) -> str:
    """Return ``text``, or its beginning with the length and SHA-256 of all of it.

    The result is at most ``MESSAGE_BYTES`` of UTF-8, plus one line.
    """
    data = text.encode(errors="replace")
    if len(data) <= MESSAGE_BYTES:
        return data.decode()
    head = data[:MESSAGE_BYTES].decode(errors="ignore")
    return f"{head}\n[cut: {len(data)} bytes, sha256 {hashlib.sha256(data).hexdigest()}]"
