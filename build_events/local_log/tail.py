"""Follows one stream of a run live, from another process than its writer's."""

import contextlib
import os
from pathlib import Path

from build_events import codec
from build_events.envelope import Recorded
from build_events.errors import MalformedEventError
from build_events.local_log.layout import run_stream
from build_events.local_log.lines import split

BLOCK_BYTES = 1 << 20


class SegmentTail:
    """Returns what a stream's writer added since the last poll. Cheap where that is nothing.

    A stream that is not there yet is an empty one. Not thread-safe.
    """

    def __init__(self, folder: Path, run_id: str, stream_id: str) -> None:
        self._place = run_stream(folder, run_id, stream_id)
        self._number = 0
        self._descriptor: int | None = None
        self._unfinished = b""

    def poll(self) -> list[Recorded]:
        """Return the records of all whole lines written since the last poll, in order.

        Lines that hold no event are left to the collector, which records them.

        Raises:
            OSError: a segment cannot be read.
        """
        records: list[Recorded] = []
        if self._descriptor is None:
            self._descriptor = self._open(self._number)
        while self._descriptor is not None:
            records += self._decode(self._read_to_end())
            following = self._open(self._number + 1)
            if following is None:
                break
            # The writer left this segment before it made the next one: what stands in it now is all.
            records += self._decode(self._read_to_end())
            self.close()
            self._descriptor, self._number = following, self._number + 1
        return records

    def close(self) -> None:
        """Close the segment; a half line read of it is forgotten."""
        if self._descriptor is not None:
            os.close(self._descriptor)
        self._descriptor, self._unfinished = None, b""

    def _open(self, number: int) -> int | None:
        try:
            return os.open(self._place.segment(number), os.O_RDONLY)
        except FileNotFoundError:
            return None

    def _read_to_end(self) -> bytes:
        """Return the whole lines that were added, and keep the half line after them."""
        assert self._descriptor is not None
        blocks = [self._unfinished]
        while block := os.read(self._descriptor, BLOCK_BYTES):
            blocks.append(block)
        data = b"".join(blocks)
        cut = data.rfind(b"\n") + 1
        self._unfinished = data[cut:]
        return data[:cut]

    def _decode(self, data: bytes) -> list[Recorded]:
        records: list[Recorded] = []
        for payload in split(data, 0, self._place).payloads:
            with contextlib.suppress(MalformedEventError):
                records.append(codec.decode(payload))
        return records
