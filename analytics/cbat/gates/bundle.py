"""``bundle``: the artifact stands where it was published, verified, and a manifest names it. Pure."""

from collections.abc import Iterator

from analytics.cbat.candidate import Candidate
from analytics.evidence import RunEvidence
from analytics.reasons import Code
from analytics.verdict import Finding, Reason
from build_events.events import ArtifactInventoried, ArtifactPublished, Event, InventoryEntry
from build_events.facts import Fact

AGAIN = "build again: a new artifact is judged under its own digest"


def bundle(candidate: Candidate) -> Finding:
    """The run itself published the digest, checked as the policy asks; it still stood there; a manifest names it.

    No release records manifests yet, so this gate holds.
    """
    judged = candidate.judged
    return candidate.conclude(
        "bundle",
        list(_problems(candidate)),
        met=f"artifact {(candidate.judged_digest or '')[:12]} with its manifest",
        evidence=_evidence(judged) if judged else [],
    )


def _evidence(judged: RunEvidence) -> list[Fact[Event]]:
    kinds: tuple[type[Event], ...] = (ArtifactPublished, ArtifactInventoried)
    return [fact for kind in kinds for fact in judged.all(kind)]


def _problems(candidate: Candidate) -> Iterator[Reason]:
    bounds, judged, digest = candidate.policy.cbat.bundle, candidate.judged, candidate.judged_digest
    if bounds is None or not bounds.required_checks:
        yield Reason(
            Code.EMPTY_POLICY, "the policy asks for no check of the artifact", "add [cbat.bundle] required_checks"
        )
    step = "this release of EngineTrail records none; the gate holds until one does"
    yield Reason(Code.MANIFEST_MISSING, f"no bundle manifest for {(digest or 'an artifact')[:12]}", step)
    if judged is None or digest is None:
        return
    published = [fact.event for fact in judged.all(ArtifactPublished) if fact.event.by == "build"]
    mine = [event for event in published if event.sha256 == digest]
    if not mine:
        yield Reason(Code.ARTIFACT_UNPUBLISHED, f"run {judged.run.run_id} did not publish {digest[:12]} itself", AGAIN)
        return
    made = {check for event in mine for check in event.checks}
    unmade = [check for check in (bounds.required_checks if bounds else []) if check not in made]
    if unmade:
        yield Reason(Code.CHECK_MISSING, f"{digest[:12]} was published without {', '.join(unmade)}", AGAIN)
    yield from _standing_problems(judged, digest, mine[-1].target)


def _standing_problems(judged: RunEvidence, digest: str, target: str) -> Iterator[Reason]:
    withdrawn = [row for row in judged.artifacts if row.path == target and row.state in {"quarantined", "removed"}]
    for row in withdrawn:
        text = f"{target} was {row.state} after it was published: {row.reason or 'no reason given'}"
        yield Reason(Code.ARTIFACT_WITHDRAWN, text, AGAIN)
    entries = judged.inventory("after")
    if entries is None:
        yield Reason(Code.INVENTORY_MISSING, f"the files at {target} were not listed after the build", AGAIN)
        return
    stands = _at(entries, target)
    if stands is not None and stands.sha256 is None:
        yield Reason(Code.TARGET_UNVERIFIED, f"the file at {target} has no digest on record", AGAIN)
    elif stands is None or stands.sha256 != digest:
        found = (stands.sha256 or "")[:12] if stands else "nothing"
        yield Reason(Code.DIGEST_MISMATCH, f"{digest[:12]} was published, and at {target} stands {found}", AGAIN)


def _at(entries: list[InventoryEntry], target: str) -> InventoryEntry | None:
    return next((entry for entry in entries if entry.role == "target" and entry.path == target), None)
