"""The operator's four questions about each run, answered with evidence. Pure."""

from dataclasses import dataclass
from typing import Literal

from pydantic import JsonValue

from analytics.evidence import RunEvidence
from analytics.sbat.trial import Trial
from build_events.clock import NS_PER_MS, NS_PER_S
from build_events.events import Event, HeartbeatRecorded, RetryPlanned, RetryPolicy, RunStarted
from build_events.facts import Fact


@dataclass(frozen=True, slots=True)
class Answer:
    """One answer; ``unknown`` is an answer too."""

    answer: Literal["yes", "no", "unknown"]
    because: str
    evidence: tuple[str, ...] = ()

    def to_json(self) -> JsonValue:
        """Return the answer as reports carry it."""
        return {"answer": self.answer, "because": self.because, "evidence": list(self.evidence)}


def answers(trial: Trial, item: RunEvidence) -> dict[str, JsonValue]:
    """Return the answers for one run: let it continue, cancel it, retry with the cache, go back to a known engine."""
    alive, stop = _while_open(trial, item) if item.run.outcome is None else _after_the_end(item)
    return {
        "run_id": item.run.run_id,
        "continue": alive.to_json(),
        "cancel": stop.to_json(),
        "retry_with_cache": _planned(item, "retry_with_cache").to_json(),
        "known_engine": _planned(item, "rollback").to_json(),
    }


def _after_the_end(item: RunEvidence) -> tuple[Answer, Answer]:
    ended = Answer("no", f"it ended {item.run.outcome}")
    return ended, ended


def _while_open(trial: Trial, item: RunEvidence) -> tuple[Answer, Answer]:
    """Return whether to let the run continue and whether to cancel it."""
    started = item.first(RunStarted)
    beats = sorted(item.all(HeartbeatRecorded), key=lambda fact: fact.record.sequence)
    last: Fact[Event] | None = beats[-1] if beats else started
    if started is None or last is None:
        return Answer("unknown", "the log holds no start of it"), Answer("unknown", "the log holds no start of it")
    heard_ns = max(trial.as_of_ns - last.record.wall_ns, 0)
    evidence = (last.record.event_id,)
    heard = f"last heard {heard_ns / NS_PER_S:.0f} s ago"
    if heard_ns > started.event.lease_ns:
        why = f"{heard}, longer than its lease of {started.event.lease_ns / NS_PER_S:.0f} s: see whether it lives"
        return Answer("unknown", why, evidence), Answer("unknown", why, evidence)
    silence_ns = heard_ns + ((beats[-1].event.since_callback_ns or 0) if beats else 0)
    bounds = trial.policy.sbat.explainable
    limit_ms = bounds.max_silence_ms if bounds else None
    why = f"{heard}; no callback for {silence_ns / NS_PER_S:.0f} s"
    if limit_ms is not None and silence_ns > limit_ms * NS_PER_MS:
        return Answer("no", why, evidence), Answer("yes", f"{why}; the policy allows {limit_ms:g} ms", evidence)
    return Answer("yes", f"its process lives: {why}", evidence), Answer("no", f"slow is not stuck: {why}", evidence)


def _planned(item: RunEvidence, policy: RetryPolicy) -> Answer:
    if item.run.outcome is None:
        return Answer("no", "it has not ended")
    if item.run.artifact_sha256 is not None:
        return Answer("no", f"it gave engine {item.run.artifact_sha256[:12]}")
    plan = item.latest(RetryPlanned)
    if plan is None:
        return Answer("unknown", "the run recorded no plan")
    answer: Literal["yes", "no"] = "yes" if plan.event.policy == policy else "no"
    return Answer(answer, f"planned: {plan.event.policy} ({plan.event.reason})", (plan.record.event_id,))
