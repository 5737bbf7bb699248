"""What an engine file says of itself, checked without TensorRT.

Measured on TensorRT-RTX 1.7.1 (little endian): ``'vtrt'`` at 0, format 2 as u64 at 8, the whole file's
size as u64 at 16, and the last four bytes are fixed. There is no checksum in it.
"""

import os
import struct
from pathlib import Path

_MAGIC = b"vtrt"
_FORMAT = 2  # another format is not judged by this one's rules
_SIZE_OFFSET = 16
_TRAILER = bytes.fromhex("998b8d8b")
_HEADER = struct.Struct("<4s4xQQ")


class EngineFileError(ValueError):
    """A file is not the engine that it should be."""


def layout_checks(path: Path) -> tuple[str, ...]:
    """Return the names of the checks that an engine file passed; none where its layout is not known.

    Raises:
        EngineFileError: a check failed, e.g. the file is cut short.
        OSError: it cannot be read.
    """
    size = path.stat().st_size
    with path.open("rb") as file:
        head = file.read(_HEADER.size)
        if len(head) < _HEADER.size:
            return ()
        magic, layout, promised = _HEADER.unpack(head)
        if magic != _MAGIC or layout != _FORMAT:
            return ()
        file.seek(-len(_TRAILER), os.SEEK_END)
        trailer = file.read()
    if promised != size:
        raise EngineFileError(f"the engine's header promises {promised} bytes and it holds {size}")
    if trailer != _TRAILER:
        raise EngineFileError(f"the engine ends in {trailer.hex()}, not in {_TRAILER.hex()}")
    return ("size_field", "trailer")
