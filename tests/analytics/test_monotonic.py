"""Less evidence never helps: whatever is removed from the log, no criterion and no gate turns to pass."""

from hypothesis import given, settings
from hypothesis import strategies as st

from analytics.cbat.candidate import Candidate
from analytics.cbat.evaluate import CBAT_TYPES
from analytics.cbat.gates import GATES
from analytics.evidence import Evidence
from analytics.from_records import evidence_of
from analytics.sbat.criteria import CRITERIA
from analytics.sbat.judge import SBAT_TYPES
from analytics.sbat.trial import Trial
from build_events import events as ev
from build_events.clock import NS_PER_S
from build_events.envelope import Recorded
from tests.analytics.scenes import NOON, POLICY, ROUTE, Build, End, Entry, number, passing, source, validation
from tests.build_events.strategies import several_histories

AS_OF = NOON + 60 * NS_PER_S
ENDS: tuple[End, ...] = ("completed", "completed_despite_cancel", "cancelled", "failed", "killed")


def _closed(name: str, entries: list[Entry]) -> list[Entry]:
    """Return facts about the route as a command records them: one stream with its end."""
    facts = [Entry(f"route/{name}", item.at_ms, item.event) for item in entries]
    return [*facts, Entry(f"route/{name}", facts[-1].at_ms, ev.StreamClosed(events=0, dropped=0))]


@st.composite
def route_histories(draw: st.DrawFn) -> list[Recorded]:
    """Return complete histories, often with something that never happened or that speaks against the run."""
    mode = draw(st.sampled_from(["supervised", "embedded"]))
    entries = (
        passing(mode=mode)[:-1]
        if draw(st.booleans())
        else Build(run_id="run-1", end=draw(st.sampled_from(ENDS))).entries()
    )
    lost = draw(st.sets(st.integers(0, len(entries) - 1), max_size=2))
    entries = [item for index, item in enumerate(entries) if index not in lost or _frame(item.event)]
    for index in range(draw(st.integers(0, 2))):
        status = draw(st.sampled_from(["pass", "fail"]))
        entries += _closed(
            f"validation-{index}", [validation(status=status, runtime_target=draw(st.sampled_from(["sm89", "cpu"])))]
        )
    if draw(st.booleans()):
        entries += _closed("source", [source(checkpoint_revision=draw(st.sampled_from(["4f2a9c1", "main"])))])
    return number(entries)


def _frame(event: ev.Event) -> bool:
    return isinstance(event, ev.RunStarted | ev.StreamClosed | ev.ProcessExited)


def sbat(evidence: Evidence) -> dict[str, str]:
    """Return the verdict of each criterion."""
    trial = Trial(evidence=evidence, policy=POLICY, as_of_ns=AS_OF)
    return {finding.id: finding.verdict for finding in (criterion(trial) for criterion in CRITERIA)}


def cbat(evidence: Evidence) -> dict[str, str]:
    """Return the verdict of each gate."""
    candidate = Candidate(route=ROUTE, digest=None, evidence=evidence, policy=POLICY, as_of_ns=AS_OF)
    return {finding.id: finding.verdict for finding in (gate(candidate) for gate in GATES)}


@settings(max_examples=300, deadline=None)
@given(history=route_histories(), data=st.data())
def test_removing_an_event_never_turns_hold_or_reject_into_pass(history: list[Recorded], data: st.DataObject) -> None:
    """The gap that a removed event leaves holds, also where the event spoke against the run."""
    gone = data.draw(st.sampled_from(history))
    rest = [record for record in history if record is not gone]
    before = sbat(evidence_of(history, SBAT_TYPES)) | cbat(evidence_of(history, CBAT_TYPES, routes=[ROUTE]))
    after = sbat(evidence_of(rest, SBAT_TYPES)) | cbat(evidence_of(rest, CBAT_TYPES, routes=[ROUTE]))
    assert not {name for name, verdict in after.items() if verdict == "pass" and before[name] != "pass"}


@settings(max_examples=50, deadline=None)
@given(history=several_histories())
def test_any_history_is_judged_without_an_error(history: list[Recorded]) -> None:
    """Criteria and gates are total: nothing that the log may hold makes them fail."""
    route = next(iter({record.event.route for record in history if isinstance(record.event, ev.RunStarted)}), ROUTE)
    assert len(sbat(evidence_of(history, SBAT_TYPES))) == len(CRITERIA)
    evidence = evidence_of(history, CBAT_TYPES, routes=[route])
    candidate = Candidate(route=route, digest=None, evidence=evidence, policy=POLICY, as_of_ns=AS_OF)
    assert [gate(candidate).verdict for gate in GATES]
