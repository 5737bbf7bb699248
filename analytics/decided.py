"""Decisions that were recorded before. Pure."""

from collections.abc import Iterable
from typing import Literal

from pydantic import BaseModel, ConfigDict

from build_events.events import Verdict


class Decided(BaseModel):
    """One recorded decision about a run or a route, without its report."""

    model_config = ConfigDict(frozen=True, extra="ignore")
    event_id: str
    stream_id: str
    subject: str  # run id of an SBAT decision, route of a CBAT decision
    kind: Literal["sbat", "cbat"]
    verdict: Verdict
    policy_sha256: str
    evaluator_version: str
    inputs_sha256: str
    artifact_sha256: str | None = None
    supersedes: list[str] = []


def current(decisions: Iterable[Decided], *, subject: str, kind: str) -> list[Decided]:
    """Return the decisions of a kind about a subject that no other one supersedes, by event id."""
    mine = [item for item in decisions if item.subject == subject and item.kind == kind]
    replaced = {event_id for item in mine for event_id in item.supersedes}
    return sorted((item for item in mine if item.event_id not in replaced), key=lambda item: item.event_id)
