"""Verdicts and findings. Pure: no I/O, no clock, no ids."""

from collections.abc import Iterable
from dataclasses import dataclass

from pydantic import JsonValue

from analytics.reasons import Code
from build_events.events import Verdict

ORDER: tuple[Verdict, ...] = ("pass", "hold", "reject")  # best to worst


def worst(verdicts: Iterable[Verdict]) -> Verdict:
    """Return the worst verdict; ``hold`` of none, because nothing passes without data."""
    return max(verdicts, key=ORDER.index, default="hold")


@dataclass(frozen=True, slots=True)
class Reason:
    """Why a check says what it says, and what to do next."""

    code: Code
    text: str  # for people, with the numbers and names
    next: str | None = None  # the next command or step; none where nothing is to be done

    def to_json(self) -> dict[str, JsonValue]:
        """Return the reason as reports carry it."""
        return {"code": self.code.value, "text": self.text, "next": self.next}


@dataclass(frozen=True, slots=True)
class Finding:
    """One criterion or gate: its reasons, worst first, and the events that it stands on."""

    id: str
    reasons: tuple[Reason, ...]
    evidence: tuple[str, ...]  # event ids

    @property
    def verdict(self) -> Verdict:
        """The worst that a reason says; ``hold`` without any reason."""
        return worst(reason.code.effect for reason in self.reasons)

    def to_json(self) -> dict[str, JsonValue]:
        """Return the finding as reports carry it."""
        return {
            "id": self.id,
            "verdict": self.verdict,
            "reasons": [reason.to_json() for reason in self.reasons],
            "evidence": list(self.evidence),
        }


def conclude(finding_id: str, problems: Iterable[Reason], *, met: str, evidence: Iterable[str]) -> Finding:
    """Return a finding that passes with the text ``met`` if and only if there is no problem.

    Each problem is named once, the worst first; evidence ids stand once, by stream and sequence.
    """
    distinct = dict.fromkeys(problems)
    ordered = sorted(distinct, key=lambda reason: ORDER.index(reason.code.effect), reverse=True)
    reasons = tuple(ordered) or (Reason(Code.MET, met),)
    return Finding(finding_id, reasons, tuple(sorted(set(evidence), key=_place)))


def _place(event_id: str) -> tuple[str, int]:
    stream, _, sequence = event_id.rpartition("/")
    return stream, int(sequence)
