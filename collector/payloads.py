"""Payloads of the log on their way to the parser: a block for each chunk, and marks where another stream begins."""

import itertools
from array import array
from bisect import bisect_right
from collections.abc import Sequence
from typing import NamedTuple

import pyarrow as pa

_BEGIN = b'{"specversion":"1.0","id":"'  # what follows is the stream's id, a slash and the sequence
_LONGEST_BEGIN = 1_000  # what is kept of each stream is bounded
NO_BEGIN = b"\0"  # begins no payload


class Stretch(NamedTuple):
    """Payloads that follow each other and begin alike, up to the sequence in their id."""

    first: int
    begin: bytes


class Payloads:
    """Payloads in the order in which they were read, to be added to.

    Each is copied as soon as it is read, so that the memory of the many small values that a log gives is used
    for the next ones: taken anew from the kernel, it cost a fifth of all CPU.
    """

    def __init__(self, payloads: Sequence[bytes] = ()) -> None:
        self._arrays: list[pa.BinaryArray] = []
        self._firsts: list[int] = []  # where each array begins
        self.stretches: list[Stretch] = []
        self.count = 0
        if payloads:
            self.add(payloads)

    def __getitem__(self, index: int) -> bytes:
        number = bisect_right(self._firsts, index) - 1
        payload: bytes = self._arrays[number][index - self._firsts[number]].as_py()
        return payload

    def add(self, payloads: Sequence[bytes]) -> int:
        """Add payloads, and return how long they are together."""
        begin = self.stretches[-1].begin if self.stretches else None
        for index, payload in enumerate(payloads, self.count):
            if begin is None or not payload.startswith(begin):
                begin = _begin_of(payload)
                self.stretches.append(Stretch(index, begin))
        ends = array("i", itertools.accumulate(map(len, payloads), initial=0))
        buffers = [None, pa.py_buffer(ends), pa.py_buffer(b"".join(payloads))]
        self._arrays.append(pa.Array.from_buffers(pa.binary(), len(payloads), buffers))
        self._firsts.append(self.count)
        self.count += len(payloads)
        return ends[-1]

    def column(self) -> pa.ChunkedArray:
        """Return them all, as binary."""
        return pa.chunked_array(self._arrays, pa.binary())


def _begin_of(payload: bytes) -> bytes:
    """Return the text up to the sequence in the id, or what no payload begins with."""
    id_end = payload.find(b'","source":', 0, _LONGEST_BEGIN)
    if id_end < 0 or not payload.startswith(_BEGIN):
        return NO_BEGIN
    return payload[: payload.rfind(b"/", 0, id_end) + 1] or NO_BEGIN
