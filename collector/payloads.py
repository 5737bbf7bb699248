"""Payloads of the log on their way to the parser: in Arrow's memory, and cut where another stream begins."""

import itertools
from array import array
from bisect import bisect_right
from collections.abc import Sequence
from typing import NamedTuple

import pyarrow as pa

_BEGIN = b'{"specversion":"1.0","id":"'  # what follows is the stream's id, a slash and the sequence
_NO_STREAM = b"\0"  # begins no JSON


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
        self.size_bytes = 0
        if payloads:
            self.add(payloads)

    def __getitem__(self, index: int) -> bytes:
        number = bisect_right(self._firsts, index) - 1
        payload: bytes = self._arrays[number][index - self._firsts[number]].as_py()
        return payload

    def add(self, payloads: Sequence[bytes]) -> None:
        """Add payloads."""
        begin = self.stretches[-1].begin if self.stretches else _NO_STREAM
        for index, payload in enumerate(payloads, self.count):
            if not payload.startswith(begin):
                begin = _begin_of(payload)
                self.stretches.append(Stretch(index, begin))
        ends = array("i", itertools.accumulate(map(len, payloads), initial=0))
        buffers = [None, pa.py_buffer(ends), pa.py_buffer(b"".join(payloads))]
        self._arrays.append(pa.Array.from_buffers(pa.binary(), len(payloads), buffers))
        self._firsts.append(self.count)
        self.count += len(payloads)
        self.size_bytes += ends[-1]

    def column(self) -> pa.ChunkedArray:
        """Return them all, as binary."""
        return pa.chunked_array(self._arrays, pa.binary())


def _begin_of(payload: bytes) -> bytes:
    """Return the text up to the sequence in the id, or what no payload begins with."""
    end = payload.rfind(b"/", 0, payload.find(b'","source":')) + 1
    return payload[:end] if end and payload.startswith(_BEGIN) else _NO_STREAM
