"""``source``: where the checkpoint came from. Pure."""

from collections.abc import Iterator

from analytics.cbat.candidate import Candidate
from analytics.policy import Source
from analytics.reasons import Code
from analytics.verdict import Finding, Reason
from build_events.events import InputFile, SourceRecorded
from build_events.facts import Fact


def source(candidate: Candidate) -> Finding:
    """Every model file that the build read has one recorded source, pinned and licensed as the policy says."""
    facts = sources(candidate)
    return candidate.conclude(
        "source",
        list(_problems(candidate)),
        met=f"checkpoint {', '.join(sorted({fact.event.checkpoint_revision for fact in facts}))}",
        evidence=[candidate.baseline, *facts],
    )


def sources(candidate: Candidate) -> list[Fact[SourceRecorded]]:
    """Return the sources on record of the files that the judged build read."""
    read = {file.sha256 for file in _models(candidate)}
    return [fact for fact in candidate.about_route.all(SourceRecorded) if fact.event.input_sha256 in read]


def _models(candidate: Candidate) -> list[InputFile]:
    baseline = candidate.baseline
    return [file for file in baseline.event.inputs if file.role == "model"] if baseline else []


def _problems(candidate: Candidate) -> Iterator[Reason]:
    bounds = candidate.policy.cbat.source
    if bounds is None:
        yield Reason(Code.EMPTY_POLICY, "the policy has no [cbat.source]", "add it to the policy")
    if candidate.judged is None:
        return
    if not _models(candidate):
        text = f"run {candidate.judged.run.run_id} names no model file that it read"
        yield Reason(Code.INPUTS_UNKNOWN, text, "build with run.build(..., inputs=[...]) or `enginetrail build`")
    facts = sources(candidate)
    record = f"record it: enginetrail evidence record {candidate.route} FILE, with a {SourceRecorded.type}"
    for file in _models(candidate):
        mine = [fact.event for fact in facts if fact.event.input_sha256 == file.sha256]
        if not mine:
            yield Reason(Code.SOURCE_MISSING, f"no source of {file.path} ({file.sha256[:12]})", record)
        revisions = sorted({(event.source_uri, event.checkpoint_revision) for event in mine})
        if len(revisions) > 1:
            text = f"{file.path} is on record as {', '.join(f'{uri} at {revision}' for uri, revision in revisions)}"
            yield Reason(Code.SOURCE_CONFLICT, text, "find out which is true; a new digest starts from nothing")
        if bounds is not None:
            yield from _judged_by(bounds, mine, record)


def _judged_by(bounds: Source, facts: list[SourceRecorded], record: str) -> Iterator[Reason]:
    moving = {name.casefold() for name in bounds.refused_revisions}
    allowed = None if bounds.allowed_licenses is None else {name.casefold() for name in bounds.allowed_licenses}
    if allowed is not None and not allowed:
        yield Reason(Code.EMPTY_POLICY, "the policy allows no license", "name some in [cbat.source] allowed_licenses")
    for event in facts:
        if event.checkpoint_revision.casefold() in moving:
            text = f"{event.source_uri}: revision {event.checkpoint_revision} moves"
            yield Reason(Code.REVISION_NOT_PINNED, text, f"pin a commit or a digest, build again, and {record}")
        if not allowed:
            continue
        if event.license is None:
            yield Reason(Code.LICENSE_MISSING, f"{event.source_uri}: no license on record", record)
        elif event.license.casefold() not in allowed:
            text = f"{event.source_uri}: license {event.license} is not among {', '.join(sorted(allowed))}"
            yield Reason(Code.LICENSE_REFUSED, text, "use another checkpoint, or change the policy")
