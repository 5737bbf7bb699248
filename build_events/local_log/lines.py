"""One line of a segment: a CloudEvents JSON object whose last member is its checksum.

``{...,"crc":"89abcdef"}``: CRC-32 of the bytes before ``,"crc":``, in lower-case hexadecimal.
"""

from dataclasses import dataclass, field
from zlib import crc32

from pydantic_core import from_json

from build_events.local_log.layout import StreamPlace
from build_events.log import Reject

TAIL = b',"crc":"%08x"}'
TAIL_BYTES = 18  # without the line end
_TAIL_START = b',"crc":"'


def frame(payload: bytes) -> bytes:
    """Return the line of a non-empty JSON object, line end included."""
    body = payload[:-1]
    return body + TAIL % crc32(body) + b"\n"


@dataclass(slots=True)
class Lines:
    """The lines of a piece of a segment: events' JSON with where each begins, and bad lines."""

    payloads: list[bytes] = field(default_factory=list)  # the checksum member is taken out
    offsets: list[int] = field(default_factory=list)
    rejects: list[Reject] = field(default_factory=list)


def split(data: bytes, start: int, place: StreamPlace) -> Lines:
    """Check and split ``data``, whole lines that begin at byte ``start`` of a segment.

    A checksum that fits vouches for the JSON: only its first byte is looked at. This loop bounds how
    fast a log is read, so it makes no call that it can avoid.
    """
    found = Lines()
    add_payload, add_offset = found.payloads.append, found.offsets.append
    all_utf8 = _is_utf8(data)
    offset = start
    lines = data.split(b"\n")
    lines.pop()  # after the last line end
    for line in lines:
        body = line[:-TAIL_BYTES]
        if line[-TAIL_BYTES:] == TAIL % crc32(body) and body[:1] == b"{" and (all_utf8 or _is_utf8(body)):
            add_payload(body + b"}")
            add_offset(offset)
        else:
            found.rejects.append(reject(offset, line, _defect(line), place))
        offset += len(line) + 1
    return found


def reject(offset: int, payload: bytes, reason: str, place: StreamPlace) -> Reject:
    """Return bytes that hold no event, with the stream that they stand in."""
    return Reject(offset, payload, reason, stream_id=place.stream_id, run_id=place.run_id, route=place.route)


def _defect(line: bytes) -> str:
    """Return why a line holds no event."""
    if not _is_utf8(line):
        return "not_utf8"
    tail = line[-TAIL_BYTES:]
    if tail.startswith(_TAIL_START) and tail != TAIL % crc32(line[:-TAIL_BYTES]):
        return "bad_checksum"
    try:
        value = from_json(line)
    except ValueError:
        return "not_json"
    return "no_checksum" if isinstance(value, dict) else "not_object"


def _is_utf8(data: bytes) -> bool:
    if data.isascii():  # ten times as fast, and the usual case
        return True
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True
