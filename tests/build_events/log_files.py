"""What tests read out of a local log, and how they damage one."""

import dataclasses
from collections.abc import Sequence
from pathlib import Path

from build_events import codec
from build_events.envelope import Recorded
from build_events.local_log import LocalLog
from build_events.log import Positions, Reject

PLENTY = 1 << 20  # bytes


@dataclasses.dataclass(frozen=True)
class Content:
    """What one pass over a log gives."""

    records: list[Recorded]
    rejects: list[Reject]
    positions: dict[str, int]

    @property
    def sequences(self) -> list[int]:
        """The sequence of each record."""
        return [record.sequence for record in self.records]

    @property
    def reasons(self) -> list[str]:
        """The reason of each reject."""
        return [reject.reason for reject in self.rejects]


def content(log: LocalLog, after: Positions | None = None, *, max_bytes: int = PLENTY) -> Content:
    """Read a log once."""
    chunks = list(log.read(after or {}, max_bytes=max_bytes))
    records = [codec.decode(payload) for chunk in chunks for payload in chunk.payloads]
    rejects = [reject for chunk in chunks for reject in chunk.rejects]
    return Content(records, rejects, {**(after or {}), **{chunk.source: chunk.next_offset for chunk in chunks}})


def segment(folder: Path, run_id: str, stream_id: str, number: int = 0) -> Path:
    """Return the path of a segment of a stream about a run."""
    return folder / "runs" / run_id / f"{stream_id}.{number:04d}.jsonl"


def replace_line(path: Path, index: int, line: bytes) -> None:
    """Put other bytes in the place of one line, without its line end."""
    lines = path.read_bytes().split(b"\n")
    lines[index] = line
    path.write_bytes(b"\n".join(lines))


def renumbered(record: Recorded, sequences: Sequence[int]) -> list[Recorded]:
    """Return copies of a record with these sequences."""
    return [dataclasses.replace(record, sequence=sequence) for sequence in sequences]
