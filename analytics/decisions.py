"""From a report to the decisions that are to be recorded. Pure: it appends nothing and makes no ids."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

from pydantic import JsonValue

from analytics.canonical import canonical_bytes, sha256_of
from analytics.decided import Decided, current
from analytics.evidence import Evidence
from analytics.policy import Policy
from analytics.report import EVALUATOR_VERSION
from build_events.codec import MAX_EVENT_BYTES
from build_events.events import DecisionRecorded, Verdict

_REPORT_BYTES = MAX_EVENT_BYTES // 2  # the other half is for the inputs
_REPLAYED = (
    *("kind", "verdict", "policy", "evaluator_version", "as_of", "inputs_digest", "context", "supersedes"),
    *("runs", "route", "requested_digest", "run_id"),
)


class Report(Protocol):
    """What a decision needs of a report."""

    @property
    def kind(self) -> Literal["sbat", "cbat"]:
        """The acceptance test."""
        ...

    @property
    def verdict(self) -> Verdict:
        """Its verdict."""
        ...

    @property
    def evidence(self) -> Evidence:
        """What it stands on."""
        ...

    @property
    def policy(self) -> Policy:
        """What was asked for."""
        ...

    @property
    def as_of_ns(self) -> int:
        """The time that it was judged at."""
        ...

    @property
    def subjects(self) -> tuple[str, ...]:
        """Run ids or the route that a decision is recorded about."""
        ...

    @property
    def artifact_sha256(self) -> str | None:
        """The judged artifact."""
        ...

    @property
    def decisions(self) -> Sequence[Decided]:
        """The decisions recorded before about the subjects."""
        ...

    def to_json(self, *, supersedes: Sequence[str] = ()) -> dict[str, JsonValue]:
        """Return the report as it is printed."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Planned:
    """What to do about one subject: append ``event`` in a fresh stream, or nothing where ``existing`` says it."""

    subject: str  # run id (an observer stream of the run) or route (a stream of the route)
    event: DecisionRecorded | None
    existing: str | None  # event id of the current decision that already says the same


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """A report as it is printed, and what is to be recorded of it."""

    report: dict[str, JsonValue]
    planned: tuple[Planned, ...]


def decide(report: Report) -> Decision:
    """Return the decision on a report.

    Every decision supersedes all current ones about its subject. Nothing is recorded where all current
    ones already stand on the same artifact, policy, evaluator and inputs.
    """
    inputs_sha256 = report.evidence.sha256
    standing = {subject: current(report.decisions, subject=subject, kind=report.kind) for subject in report.subjects}
    existing = {subject: _same(report, inputs_sha256, items) for subject, items in standing.items()}
    replaced = {subject: [item.event_id for item in items] for subject, items in standing.items()}
    supersedes = sorted(
        {event_id for subject in standing if existing[subject] is None for event_id in replaced[subject]}
    )
    printed = report.to_json(supersedes=supersedes)
    # Once: the same report is recorded about each of its subjects, and it grows with their number.
    recorded = _recordable(printed) if None in existing.values() else {}
    inputs = report.evidence.inputs
    planned = [
        Planned(
            subject=subject,
            existing=existing[subject],
            event=None if existing[subject] else _event(report, inputs, inputs_sha256, replaced[subject], recorded),
        )
        for subject in report.subjects
    ]
    return Decision(report=printed, planned=tuple(planned))


def _same(report: Report, inputs_sha256: str, standing: Sequence[Decided]) -> str | None:
    """Return the current decision that says what the report says; ``None`` where one of them says otherwise."""
    key = (report.artifact_sha256, report.policy.sha256, EVALUATOR_VERSION, inputs_sha256)
    keys = {(item.artifact_sha256, item.policy_sha256, item.evaluator_version, item.inputs_sha256) for item in standing}
    return standing[0].event_id if keys == {key} else None


def _event(
    report: Report,
    inputs: dict[str, int],
    inputs_sha256: str,
    supersedes: Sequence[str],
    recorded: dict[str, JsonValue],
) -> DecisionRecorded:
    return DecisionRecorded(
        kind=report.kind,
        verdict=report.verdict,
        policy_sha256=report.policy.sha256,
        evaluator_version=EVALUATOR_VERSION,
        as_of_ns=report.as_of_ns,
        inputs=inputs,
        inputs_sha256=inputs_sha256,
        supersedes=list(supersedes),
        artifact_sha256=report.artifact_sha256,
        report=recorded,
    )


def _recordable(printed: dict[str, JsonValue]) -> dict[str, JsonValue]:
    """Return the report, or of one too long for an event what replaying needs, and the digest of all of it."""
    if len(canonical_bytes(printed)) <= _REPORT_BYTES:
        return printed
    return {name: printed[name] for name in _REPLAYED if name in printed} | {"cut": {"sha256": sha256_of(printed)}}
