"""Which files an ONNX model consists of: the model and the external weight files that it names.

A scan of the protobuf wire format instead of the ``onnx`` package: a build worker does not have that
installed, protobuf reads no file over 2 GiB, and a scan skips the weights instead of loading them.
Field numbers: onnx.proto, unchanged since external data exists (IR version 3).
"""

import mmap
from collections.abc import Iterator
from pathlib import Path

from builder_agent.errors import AgentError

_VARINT, _I64, _LEN, _I32 = 0, 1, 2, 5  # wire types, protobuf.dev/programming-guides/encoding
_MAX_DEPTH = 100  # graphs in graphs; protobuf's own limit

# message: {field: message of its content}; only what leads to tensors.
_FIELDS: dict[str, dict[int, str]] = {
    "model": {7: "graph", 20: "training", 25: "function"},
    "training": {1: "graph", 2: "graph"},
    "function": {7: "node", 11: "attribute"},
    "graph": {1: "node", 5: "tensor", 15: "sparse_tensor"},
    "node": {5: "attribute"},
    "attribute": {5: "tensor", 6: "graph", 10: "tensor", 11: "graph", 22: "sparse_tensor", 23: "sparse_tensor"},
    "sparse_tensor": {1: "tensor", 2: "tensor"},
    "tensor": {13: "entry"},
}
_ENTRY_KEY, _ENTRY_VALUE = 1, 2


class ModelFileError(AgentError):
    """The file is no ONNX model, or names weight files that cannot be its own."""


def external_files(model: Path) -> list[Path]:
    """Return the external weight files that a model names, each once, in the order of the model.

    They need not exist: the parser tells of a missing one.

    Raises:
        ModelFileError: the file holds no protobuf message, or a location leads out of its folder.
        OSError: it cannot be read.
    """
    if model.stat().st_size == 0:
        return []
    with model.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
        try:
            locations = list(dict.fromkeys(_locations(data, 0, len(data), "model", 0)))
        except (IndexError, ValueError) as error:
            raise ModelFileError(f"{model}: not an ONNX model ({error}). Export it again.") from error
    return [_inside(model, location) for location in locations]


def _inside(model: Path, location: str) -> Path:
    path = Path(location)
    # The same rule as onnx's own loader: a model must not make a build read any file of the machine.
    if path.is_absolute() or ".." in path.parts:
        raise ModelFileError(f"{model}: external data at {location!r} leads out of the model's folder")
    return model.parent / path


def _locations(data: mmap.mmap, start: int, end: int, message: str, depth: int) -> Iterator[str]:
    """Yield the ``location`` entries of all tensors in one message."""
    if depth > _MAX_DEPTH:
        raise ValueError("messages are nested too deeply")
    below = _FIELDS[message]
    for field, value_start, value_end in _length_delimited(data, start, end):
        kind = below.get(field)
        if kind == "entry":
            key, value = _entry(data, value_start, value_end)
            if key == "location":
                yield value
        elif kind is not None:
            yield from _locations(data, value_start, value_end, kind, depth + 1)


def _entry(data: mmap.mmap, start: int, end: int) -> tuple[str, str]:
    texts = {field: data[low:high].decode() for field, low, high in _length_delimited(data, start, end)}
    return texts.get(_ENTRY_KEY, ""), texts.get(_ENTRY_VALUE, "")


def _length_delimited(data: mmap.mmap, position: int, end: int) -> Iterator[tuple[int, int, int]]:
    """Yield (field, start, end) of every length-delimited field of a message; skip all others."""
    while position < end:
        tag, position = _varint(data, position)
        field, wire_type = tag >> 3, tag & 7
        if wire_type == _LEN:
            length, position = _varint(data, position)
            if position + length > end:
                raise ValueError(f"field {field} at byte {position} is longer than its message")
            yield field, position, position + length
            position += length
        elif wire_type == _VARINT:
            _, position = _varint(data, position)
        elif wire_type in (_I64, _I32):
            position += 8 if wire_type == _I64 else 4
        else:
            raise ValueError(f"wire type {wire_type} at byte {position}")


def _varint(data: mmap.mmap, position: int) -> tuple[int, int]:
    result, shift = 0, 0
    while True:
        byte = data[position]
        position += 1
        result |= (byte & 0x7F) << shift
        if byte < 0x80:  # noqa: PLR2004 # the high bit says that more bytes follow
            return result, position
        shift += 7
