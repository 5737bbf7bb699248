"""Rows of the ``phases`` view as a tree. Pure."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class PhaseNode:
    """One phase with the phases inside it. Times are milliseconds; null where they are not known."""

    phase_id: int
    name: str
    status: str
    duration_ms: float | None
    longest_gap_ms: float | None
    steps_seen: int
    steps_total: int
    children: "tuple[PhaseNode, ...]"  # by phase id, which is the order in which they began


def phase_tree(rows: Iterable[Mapping[str, Any]]) -> tuple[PhaseNode, ...]:
    """Return the root phases of one run, by phase id.

    A phase whose parent is not among the rows, or did not begin before it, stands as a root: nothing is hidden.
    """
    by_id = {row["phase_id"]: row for row in rows}
    children: dict[int | None, list[PhaseNode]] = {}
    # Parents begin before their children, so from the last phase to the first all children are there already.
    for phase_id in sorted(by_id, reverse=True):
        row = by_id[phase_id]
        parent = row["parent_id"]
        place = parent if parent in by_id and parent < phase_id else None
        inside = tuple(reversed(children.pop(phase_id, [])))
        children.setdefault(place, []).append(_node(row, inside))
    return tuple(reversed(children.get(None, [])))


def _node(row: Mapping[str, Any], children: tuple[PhaseNode, ...]) -> PhaseNode:
    return PhaseNode(
        phase_id=row["phase_id"],
        name=row["name"],
        status=row["status"],
        duration_ms=row["duration_ms"],
        longest_gap_ms=row["longest_gap_ms"],
        steps_seen=row["steps_seen"],
        steps_total=row["steps_total"],
        children=children,
    )
