"""A baseline's input files as they fit into its event. Pure.

A model may have thousands of external weight files. ``buildConfigHash`` is over all of them in any case.
"""

import hashlib
from collections.abc import Sequence

from build_events.codec import MAX_EVENT_BYTES
from build_events.events import BaselineRecorded, InputFile

_AROUND_BYTES = 8 << 10  # the attributes of the event, and the entries that stand for many files
_UNOBSERVED_BYTES = 8 << 10


def fitted(event: BaselineRecorded) -> BaselineRecorded:
    """Return the baseline as one event can hold it.

    Weight files beyond its room become one entry: their number, all their bytes, and the SHA-256 of their
    digests, one a line. Where models or other files go the same way, ``inputs`` is named in ``unobserved``,
    because a gate has to see each of them.
    """
    names = _names(event.unobserved)
    bare = event.model_copy(update={"inputs": [], "unobserved": names})
    room = MAX_EVENT_BYTES - _AROUND_BYTES - len(bare.model_dump_json().encode())
    own = [file for file in event.inputs if file.role != "external_weights"]
    kept = own[: _fitting(own, room)]
    if len(kept) < len(own):
        names = [*names, "inputs"]
    weights = [file for file in event.inputs if file.role == "external_weights"]
    some = weights[: _fitting(weights, room - sum(map(_size, kept)))]
    rest = [*_summary(own[len(kept) :]), *_summary(weights[len(some) :])]
    return event.model_copy(update={"inputs": [*kept, *some, *rest], "unobserved": names})


def _names(unobserved: Sequence[str]) -> list[str]:
    """Return the names, or as many as fit and how many more there are."""
    size = 0
    for number, name in enumerate(unobserved):
        size += len(name.encode(errors="replace"))
        if size > _UNOBSERVED_BYTES:
            return [*unobserved[:number], f"{len(unobserved) - number} more"]
    return list(unobserved)


def _fitting(files: Sequence[InputFile], room: int) -> int:
    """Return how many of the first files fit into ``room`` bytes."""
    for number, file in enumerate(files):
        room -= _size(file)
        if room < 0:
            return number
    return len(files)


def _size(file: InputFile) -> int:
    return len(file.model_dump_json().encode()) + 1


def _summary(files: Sequence[InputFile]) -> list[InputFile]:
    """Return one entry for many files of a role; none for none."""
    if not files:
        return []
    digests = "".join(f"{file.sha256}\n" for file in files)
    return [
        InputFile(
            path=f"[cut: {len(files)} files, sha256 of their digests]",
            role=files[0].role,
            size_bytes=sum(file.size_bytes for file in files),
            sha256=hashlib.sha256(digests.encode()).hexdigest(),
        )
    ]
