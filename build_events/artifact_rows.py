"""What became of a run's files."""

from build_events.events import (
    ArtifactPublished,
    ArtifactPublishing,
    ArtifactQuarantined,
    ArtifactRemoved,
    RunFinished,
)
from build_events.facts import Facts
from build_events.state import ArtifactRow

# The later a state comes in a file's life, the higher it ranks.
_RANK = {"publishing": 0, "published": 1, "quarantined": 2, "removed": 3}


def judged_digest(facts: Facts) -> str | None:
    """Return the SHA-256 of the artifact that gates may judge.

    Only the run's own end names it: what a sweep found at the target of a killed or lost run counts
    for no gate.
    """
    finished = facts.own(RunFinished)
    return finished.event.artifact_sha256 if finished else None


def artifact_rows(run_id: str, facts: Facts) -> tuple[ArtifactRow, ...]:
    """Return one row for every path that the run's events name, by path."""
    best: dict[str, ArtifactRow] = {}
    for row in _mentions(run_id, facts):
        known = best.get(row.path)
        if known is None or _RANK[row.state] > _RANK[known.state]:
            best[row.path] = row
    return tuple(best[path] for path in sorted(best))


def _mentions(run_id: str, facts: Facts) -> list[ArtifactRow]:
    def row(path: str, state: str, **values: object) -> ArtifactRow:
        empty: dict[str, object] = {"moved_to": None, "sha256": None, "size_bytes": None, "by": None, "reason": None}
        return ArtifactRow(**{"run_id": run_id, "path": path, "state": state, **empty, **values})  # type: ignore[arg-type] # named fields of one dataclass

    return [
        *(
            row(e.target, "publishing", sha256=e.sha256, size_bytes=e.size_bytes)
            for _, e in facts.all(ArtifactPublishing)
        ),
        *(
            row(e.target, "published", sha256=e.sha256, size_bytes=e.size_bytes, by=e.by)
            for _, e in facts.all(ArtifactPublished)
        ),
        *(
            row(
                e.original,
                "quarantined",
                moved_to=e.quarantine,
                sha256=e.sha256,
                size_bytes=e.size_bytes,
                reason=e.reason,
            )
            for _, e in facts.all(ArtifactQuarantined)
        ),
        *(row(e.path, "removed", reason=e.reason) for _, e in facts.all(ArtifactRemoved)),
    ]
