"""``clean``: nothing of a run is left but what it published or put aside. Pure."""

from collections.abc import Iterator

from analytics.evidence import RunEvidence
from analytics.reasons import Code
from analytics.sbat.trial import Trial, counted
from analytics.verdict import Finding, Reason
from build_events.events import (
    ArtifactInventoried,
    ArtifactPublished,
    ArtifactQuarantined,
    ArtifactRemoved,
    CleanupFinished,
    Event,
    InventoryEntry,
)
from build_events.facts import Fact

AT_START = "the next build of this output sweeps it and says what it found"


def clean(trial: Trial) -> Finding:
    """Inventories before and after; no temporary left; the target unchanged, or what was published."""
    problems = [reason for item in trial.runs for reason in _problems(item)]
    return trial.conclude(
        "clean",
        problems,
        met=f"{counted(len(trial.runs), 'run')} left nothing at the target but what was published",
        evidence=[fact for item in trial.runs for fact in _evidence(item)],
    )


def cleanup(item: RunEvidence) -> Fact[CleanupFinished] | None:
    """Return how the cleanup ended: a sweep comes after what the build itself could do."""
    return item.latest(CleanupFinished)


def _evidence(item: RunEvidence) -> list[Fact[Event]]:
    kinds: tuple[type[Event], ...] = (
        ArtifactInventoried,
        ArtifactPublished,
        ArtifactQuarantined,
        ArtifactRemoved,
        CleanupFinished,
    )
    return [fact for kind in kinds for fact in item.all(kind)]


def _problems(item: RunEvidence) -> Iterator[Reason]:
    name = f"run {item.run.run_id}"
    ended = cleanup(item)
    if ended is None:
        yield Reason(Code.CLEANUP_MISSING, f"{name}: no end of its cleanup was recorded", AT_START)
    elif ended.event.status == "failed":
        text = f"{name}: the cleanup by {ended.event.by} failed"
        yield Reason(Code.CLEANUP_FAILED, text, f"look at the target's folder; {AT_START}")
    before, after = item.inventory("before"), item.inventory("after")
    missing = [moment for moment, found in (("before", before), ("after", after)) if found is None]
    if missing:
        text = f"{name}: the files at its target were not listed {' and '.join(missing)} the build"
        yield Reason(Code.INVENTORY_MISSING, text, AT_START)
    if before is not None and after is not None:
        yield from _leftovers(name, before, after)
        yield from _target_problems(name, item, before, after)


def _leftovers(name: str, before: list[InventoryEntry], after: list[InventoryEntry]) -> Iterator[Reason]:
    already = {entry.path for entry in before}
    for entry in after:
        # What another run left before this one began is not this run's fault.
        if entry.role == "temporary" and entry.path not in already:
            yield Reason(Code.LEFTOVER, f"{name} left {entry.path} ({entry.size_bytes} bytes)", AT_START)


def _target_problems(
    name: str, item: RunEvidence, before: list[InventoryEntry], after: list[InventoryEntry]
) -> Iterator[Reason]:
    published = item.latest(ArtifactPublished)
    old, new = _target(before), _target(after)
    if published is not None:
        yield from _published_problems(name, published.event, new)
    elif old is None and new is None:
        return
    elif old is None or new is None:
        text = f"{name} published nothing, and its target {'disappeared' if old else 'appeared'}"
        yield Reason(Code.TARGET_CHANGED, text, "find out who wrote to the target during the run")
    elif old.size_bytes != new.size_bytes:
        text = f"{name} published nothing, and its target went from {old.size_bytes} to {new.size_bytes} bytes"
        yield Reason(Code.TARGET_CHANGED, text, "find out who wrote to the target during the run")
    elif old.sha256 is None or new.sha256 is None:
        yield Reason(Code.TARGET_UNVERIFIED, f"{name}: the file at the target has no digest on record", AT_START)
    elif old.sha256 != new.sha256:
        text = f"{name} published nothing, and its target changed from {old.sha256[:12]} to {new.sha256[:12]}"
        yield Reason(Code.TARGET_CHANGED, text, "find out who wrote to the target during the run")


def _published_problems(name: str, published: ArtifactPublished, new: InventoryEntry | None) -> Iterator[Reason]:
    if new is not None and new.sha256 is None:
        yield Reason(Code.TARGET_UNVERIFIED, f"{name}: the published file has no digest on record", AT_START)
    elif new is None or new.sha256 != published.sha256:
        found = new.sha256[:12] if new and new.sha256 else "nothing"
        text = f"{name} published {published.sha256[:12]}, and at its target stands {found}"
        yield Reason(Code.DIGEST_MISMATCH, text, "do not use the file at the target; build again")


def _target(entries: list[InventoryEntry]) -> InventoryEntry | None:
    return next((entry for entry in entries if entry.role == "target"), None)
