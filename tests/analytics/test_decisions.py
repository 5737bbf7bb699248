"""Decisions: recorded once, superseding what stood, and reached again from the log."""

import dataclasses
from collections.abc import Callable

import pytest

from analytics import decisions
from analytics.canonical import sha256_of
from analytics.cbat import evaluate
from analytics.decisions import Decision, decide
from analytics.errors import EvidenceError
from analytics.replay import replay
from analytics.sbat import judge
from build_events import events as ev
from build_events.clock import NS_PER_S
from build_events.envelope import Recorded, StreamHeader
from build_events.events import DecisionRecorded
from tests.analytics.scenes import DIGEST, NOON, POLICY, ROUTE, Build, Entry, number, passing, source, validation
from tests.analytics.store import collected

AS_OF = NOON + 60 * NS_PER_S
HISTORY = [*passing(), source()]


def recorded(decision: Decision, name: str) -> list[Recorded]:
    """Return the records that a command would append: one short stream for each planned decision."""
    records = []
    for index, planned in enumerate(decision.planned):
        if planned.event is None:
            continue
        about_route = planned.subject == ROUTE
        header = StreamHeader(
            stream_id=f"{name}-{index}",
            role="route" if about_route else "observer",
            run_id=None if about_route else planned.subject,
            route=ROUTE if about_route else None,
            source="test",
            boot_id="boot-1",
        )
        for sequence, event in enumerate([planned.event, ev.StreamClosed(events=2, dropped=0)]):
            records.append(
                Recorded(stream=header, sequence=sequence, event=event, wall_ns=AS_OF, monotonic_ns=AS_OF - NOON)
            )
    return records


def sbat(records: list[Recorded], policy: object = POLICY) -> Decision:
    """Return the SBAT decision on a log."""
    return decide(judge(collected(records), ["run-1"], policy, as_of_ns=AS_OF))  # type: ignore[arg-type] # a policy


def cbat(records: list[Recorded], digest: str | None = None) -> Decision:
    """Return the CBAT decision on a log."""
    return decide(evaluate(collected(records), ROUTE, POLICY, as_of_ns=AS_OF, digest=digest))


def test_a_decision_names_policy_evaluator_inputs_and_time() -> None:
    """Everything that is needed to reach it again stands in the event."""
    [planned] = cbat(number(HISTORY)).planned
    event = planned.event
    assert event is not None
    assert (event.kind, event.verdict, event.artifact_sha256) == ("cbat", "hold", DIGEST)
    assert event.policy_sha256 == POLICY.sha256
    assert event.as_of_ns == AS_OF
    assert event.inputs == {
        "route/source": 0, "route/validation": 0, "run-2/main": 16, "run-2/observer": 1,
    }  # fmt: skip
    assert event.report["inputs_digest"] == event.inputs_sha256
    assert event.supersedes == []


def test_an_sbat_decision_is_recorded_about_every_judged_run() -> None:
    """Whoever looks at any run of the chain finds it."""
    assert [item.subject for item in sbat(number(HISTORY)).planned] == ["run-1", "run-2"]


@pytest.mark.parametrize("decided", [sbat, cbat])
def test_the_same_evidence_is_decided_once(decided: object) -> None:
    """Decisions are no inputs of the next evaluation: it finds the current one and records nothing."""
    assert callable(decided)
    records = number(HISTORY)
    first = decided(records)
    again = decided([*records, *recorded(first, "first")])
    assert [item.event for item in again.planned] == [None] * len(first.planned)
    assert [item.existing for item in again.planned] == [f"first-{index}/0" for index in range(len(first.planned))]
    assert again.report["supersedes"] == []
    assert again.report["inputs_digest"] == first.report["inputs_digest"]


@pytest.mark.parametrize("decided", [sbat, cbat])
def test_new_evidence_supersedes_every_current_decision(decided: object) -> None:
    """Two evaluators may have decided at once; the next decision replaces both."""
    assert callable(decided)
    records = number(HISTORY)
    first = decided(records)
    twice = [*records, *recorded(first, "first"), *recorded(first, "twin")]
    later = Entry("route/later", 22_000, validation(status="fail").event)
    changed = decided([*twice, *number([later])])
    assert changed.report["verdict"] == "reject"
    for index, planned in enumerate(changed.planned):
        assert planned.event is not None
        assert planned.event.supersedes == [f"first-{index}/0", f"twin-{index}/0"]
    third = decided([*twice, *number([later]), *recorded(changed, "changed")])
    assert all(item.existing == f"changed-{index}/0" for index, item in enumerate(third.planned))


def test_another_policy_is_another_decision() -> None:
    """The same evidence under another policy is decided anew."""
    records = number(HISTORY)
    other = POLICY.model_copy(update={"name": "other"})
    [planned, _] = sbat([*records, *recorded(sbat(records), "first")], other).planned
    assert planned.event is not None
    assert planned.event.supersedes == ["first-0/0"]


def test_a_stream_with_a_decision_and_a_gap_is_evidence_that_lacks_something() -> None:
    """What is missing beside a decision may be more than a decision."""
    records = number(HISTORY)
    first = recorded(cbat(records), "first")
    damaged = [dataclasses.replace(first[0], sequence=1), dataclasses.replace(first[1], sequence=2)]
    report = cbat([*records, *damaged]).report
    assert report["verdict"] == "hold"
    assert "missing_sequences" in str(report["gates"])


def test_replaying_a_decision_gives_its_verdict_although_the_log_went_on() -> None:
    """Inputs that came later, and gaps that were filled later, are left out."""
    whole = number(HISTORY)
    gone = {"run-1/main/6", "run-2/main/8"}
    for known in (whole, [record for record in whole if record.event_id not in gone]):
        decisions = [*sbat(known).planned, *cbat(known).planned]
        later = [
            *number([Entry("route/later", 22_000, validation(status="fail").event)]),
            *number(Build(run_id="run-3", start_ms=30_000, retry_of="run-2", digest="7" * 64).entries()),
            *recorded(cbat(known), "first"),
        ]
        query = collected([*whole, *later])
        for planned in decisions:
            assert planned.event is not None
            result = replay(query, planned.event)
            assert result.same
            assert result.inputs_match
            assert result.evaluator_match


@pytest.mark.parametrize("decided", [sbat, cbat])
def test_a_report_too_long_for_an_event_leaves_what_replaying_needs(
    decided: Callable[[list[Recorded]], Decision], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The printed report is whole; the recorded one has its digest, and gives the same verdict again."""
    whole = decided(number(HISTORY))
    monkeypatch.setattr(decisions, "_REPORT_BYTES", 1000)
    short = decided(number(HISTORY))
    assert short.report == whole.report
    event = short.planned[0].event
    assert event is not None
    assert event.report["cut"] == {"sha256": sha256_of(whole.report)}
    assert not {"criteria", "gates", "summary", "inputs"} & event.report.keys()
    replayed = replay(collected(number(HISTORY)), event)
    assert replayed.same
    assert replayed.inputs_match


def test_replaying_shows_a_changed_verdict_and_changed_inputs() -> None:
    """A decision that its inputs do not give is found out."""
    [planned] = cbat(number(HISTORY)).planned
    assert planned.event is not None
    forged = planned.event.model_copy(update={"verdict": "pass", "inputs_sha256": "0" * 64, "evaluator_version": "0"})
    result = replay(collected(number(HISTORY)), forged)
    assert not result.same
    assert not result.inputs_match
    assert not result.evaluator_match


def test_a_decision_without_its_report_cannot_be_replayed() -> None:
    """Replaying says what is missing instead of guessing."""
    [planned] = cbat(number(HISTORY)).planned
    assert isinstance(planned.event, DecisionRecorded)
    empty = planned.event.model_copy(update={"report": {}})
    with pytest.raises(EvidenceError, match="policy"):
        replay(collected(number(HISTORY)), empty)


def test_nothing_is_recorded_about_a_route_without_runs() -> None:
    """A mistyped route leaves no trace in the log."""
    assert cbat([]).planned == ()


def test_decisions_are_listed_with_the_current_ones_marked() -> None:
    """The view tells which decision nobody superseded."""
    records = number(HISTORY)
    first = recorded(cbat(records), "first")
    later = number([Entry("route/later", 22_000, validation(status="fail").event)])
    second = recorded(cbat([*records, *first, *later]), "second")
    query = collected([*records, *first, *later, *second])
    rows = query("SELECT event_id, route, kind, verdict, current FROM decisions ORDER BY event_id", [])
    assert [tuple(item.values()) for item in rows] == [
        ("first-0/0", ROUTE, "cbat", "hold", False),
        ("second-0/0", ROUTE, "cbat", "reject", True),
    ]
