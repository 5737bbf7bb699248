"""What a building process that is gone left beside its target: published, or quarantined.

Used by the supervisor right after the end and by the next start. Safe to repeat: what an earlier
sweep moved but did not record is found in quarantine and recorded then.
"""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Literal, TypeVar

from build_events.envelope import Recorded
from build_events.events import (
    ArtifactPublished,
    ArtifactPublishing,
    ArtifactQuarantined,
    CleanupFinished,
    CleanupStatus,
    ErrorRecorded,
    Event,
    RunStarted,
)
from builder_agent.files.output_folder import inventory, quarantine, quarantine_folder, sha256_of, temp_path

E = TypeVar("E", bound=Event)
_REASON = "the build ended without saying what this file is"
_FOUND = "found in quarantine; whoever moved it ended before recording it"


def is_swept(records: Iterable[Recorded]) -> bool:
    """Say whether somebody already recorded that this run's files are in order."""
    return any(isinstance(record.event, CleanupFinished) for record in records)


def sweep(records: Iterable[Recorded], *, by: Literal["supervisor", "next_start"]) -> list[Event]:
    """Put the files of a run in order and return the facts, ``cleanup.finished`` last.

    ``records`` are all events of the run so far. Nothing without a ``run.started`` among them. The
    run's process must be gone: a temporary file is known by its run id, so no other build is touched.
    """
    records = list(records)
    place = _place(records)
    if place is None:
        return []
    target, run_id = place
    facts: list[Event] = []
    status: CleanupStatus = "cleaned"
    try:
        facts.extend(_published(records, target))
        quarantined = [*_moved_before(records, target, run_id), *_move(target, run_id)]
        facts.extend(quarantined)
        if quarantined:
            status = "quarantined"
    except OSError as error:
        status = "failed"
        facts.append(_fault(error, target, f"Look for {temp_path(target, run_id).name} beside the target."))
    return [*facts, CleanupFinished(status=status, by=by)]


def inventory_after(records: Iterable[Recorded]) -> list[Event]:
    """Return the files of the run's target as they are now; reads them, so it may take a while."""
    place = _place(list(records))
    if place is None:
        return []
    try:
        return [*inventory(*place, "after")]
    except OSError as error:
        return [_fault(error, place[0], "Make the folder readable to see what is in it.")]


def _place(records: list[Recorded]) -> tuple[Path, str] | None:
    """Return the run's target and id, ``None`` without a ``run.started``."""
    for record in records:
        if isinstance(record.event, RunStarted) and record.stream.run_id is not None:
            return Path(record.event.output), record.stream.run_id
    return None


def _fault(error: OSError, target: Path, advice: str) -> ErrorRecorded:
    where = error.filename or target.parent
    return ErrorRecorded(component="agent", code="sweep", message=f"{where}: {error.strerror}. {advice}")


def _published(records: list[Recorded], target: Path) -> Iterator[Event]:
    """Yield that the target holds this run's artifact, where the process ended before it could say so."""
    publishing = _first(records, ArtifactPublishing)
    if publishing is None or _first(records, ArtifactPublished) is not None:
        return
    try:
        if target.stat().st_size != publishing.size_bytes or sha256_of(target) != publishing.sha256:
            return
    except FileNotFoundError:
        return
    yield ArtifactPublished(
        target=str(target), sha256=publishing.sha256, size_bytes=publishing.size_bytes, by="sweep", checks=["sha256"]
    )


def _moved_before(records: list[Recorded], target: Path, run_id: str) -> Iterator[ArtifactQuarantined]:
    known = {record.event.quarantine for record in records if isinstance(record.event, ArtifactQuarantined)}
    folder = quarantine_folder(target, run_id)
    if not folder.is_dir():
        return
    temp = temp_path(target, run_id)
    for path in sorted(folder.iterdir()):
        if str(path) not in known and path.name.startswith(temp.name):
            yield ArtifactQuarantined(
                original=str(temp), quarantine=str(path), size_bytes=path.stat().st_size, reason=_FOUND
            )


def _move(target: Path, run_id: str) -> Iterator[ArtifactQuarantined]:
    temp = temp_path(target, run_id)
    if temp.exists():
        yield quarantine(temp, target, run_id, _REASON)


def _first(records: list[Recorded], cls: type[E]) -> E | None:
    return next((record.event for record in records if isinstance(record.event, cls)), None)
