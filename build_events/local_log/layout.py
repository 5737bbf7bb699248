"""Names in a log folder: ``{runs|routes}/KEY/STREAM.NNNN.jsonl`` and ``STREAM.lock``.

Where the log is the spool of another one, ``STREAM.drain`` and ``STREAM.cursor`` lie beside them.
KEY and STREAM are percent-encoded, so no id or route can name a place outside the folder.
"""

import os
import urllib.parse
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from build_events.envelope import StreamHeader

Kind = Literal["runs", "routes"]
KINDS: tuple[Kind, ...] = ("runs", "routes")
LOCK_SUFFIX = ".lock"
SEGMENT_SUFFIX = ".jsonl"
DRAIN_SUFFIX = ".drain"
CURSOR_SUFFIX = ".cursor"


NAME_MAX = 255  # bytes of a file name, NAME_MAX of Linux file systems


def check_route(route: str) -> None:
    """Refuse a route that cannot name a folder or stand on one line.

    Raises:
        ValueError: it is empty, not UTF-8, holds control characters or is too long.
    """
    if not route.strip():
        raise ValueError("it is empty; name the path under review, e.g. resnet50/fp16/sm89")
    if not route.isprintable():
        raise ValueError(f"{route!r} holds characters that are not text; give a printable name")
    length = len(quote(route))
    if length > NAME_MAX:
        raise ValueError(f"{route[:40]!r}... is {length} bytes long when percent-encoded, {NAME_MAX} at most")


@dataclass(frozen=True, slots=True)
class StreamPlace:
    """Where one stream lies. ``key`` and ``name`` are as on disk."""

    root: str  # the log folder
    kind: Kind
    key: str
    name: str

    @property
    def folder(self) -> str:
        """The folder of the run or route, shared with its other streams."""
        return f"{self.root}/{self.kind}/{self.key}"

    @property
    def lock(self) -> str:
        """The lock file: it exists while the stream has a writer that nobody declared lost."""
        return f"{self.folder}/{self.name}{LOCK_SUFFIX}"

    @property
    def drain(self) -> str:
        """The file whose lock the stream's one drainer holds."""
        return f"{self.folder}/{self.name}{DRAIN_SUFFIX}"

    @property
    def cursor(self) -> str:
        """The file that says how far the stream is drained."""
        return f"{self.folder}/{self.name}{CURSOR_SUFFIX}"

    def segment(self, number: int) -> str:
        """Return the path of a segment; they count from 0."""
        return f"{self.root}/{self.source(number)}"

    def source(self, number: int) -> str:
        """Return a segment's name in positions: its path within the log folder."""
        return f"{self.kind}/{self.key}/{self.name}.{number:04d}{SEGMENT_SUFFIX}"

    @property
    def stream_id(self) -> str:
        """The stream's id."""
        return urllib.parse.unquote(self.name)

    @property
    def run_id(self) -> str | None:
        """The run that the stream is about, ``None`` for a route stream."""
        return urllib.parse.unquote(self.key) if self.kind == "runs" else None

    @property
    def route(self) -> str | None:
        """The route that the stream is about, ``None`` for a stream of a run."""
        return urllib.parse.unquote(self.key) if self.kind == "routes" else None


def place_of(folder: Path, header: StreamHeader) -> StreamPlace:
    """Return where the stream of ``header`` belongs."""
    kind: Kind = "routes" if header.run_id is None else "runs"
    return StreamPlace(os.fspath(folder), kind, quote(header.subject), quote(header.stream_id))


def run_stream(folder: Path, run_id: str, stream_id: str) -> StreamPlace:
    """Return where a stream about a run belongs."""
    return StreamPlace(os.fspath(folder), "runs", quote(run_id), quote(stream_id))


def quote(text: str) -> str:
    """Return ``text`` as one file name: all but letters, digits and ``_.-~`` percent-encoded.

    Raises:
        ValueError: the text is empty, or holds a lone surrogate.
    """
    if not text:
        raise ValueError("an empty run id, route or stream id names no place in the log")
    name = urllib.parse.quote(text, safe="")
    # "." and ".." are the only names that the encoding leaves with a meaning of their own.
    return name if name.strip(".") else name.replace(".", "%2E")


def parse_segment(file_name: str) -> tuple[str, int] | None:
    """Return the stream's name and the segment's number, or ``None`` for another file."""
    if not file_name.endswith(SEGMENT_SUFFIX):
        return None
    name, _, digits = file_name[: -len(SEGMENT_SUFFIX)].rpartition(".")
    if not name or not (digits.isascii() and digits.isdigit()) or f"{int(digits):04d}" != digits:
        return None
    return name, int(digits)
