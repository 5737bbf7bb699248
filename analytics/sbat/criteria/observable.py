"""``observable``: the whole phase tree was seen. Pure."""

from collections.abc import Iterator, Sequence

from analytics.evidence import NAMED, RunEvidence
from analytics.reasons import Code
from analytics.sbat.trial import Trial, counted
from analytics.verdict import Finding, Reason
from build_events.events import ErrorRecorded, Event, ProcessExited, RunFinished, RunStarted
from build_events.facts import Fact


def observable(trial: Trial) -> Finding:
    """Every phase has its start and its end or the run's outcome, under a root, and our callbacks had no fault."""
    phases, runs = sum(item.phases.count for item in trial.runs), counted(len(trial.runs), "run")
    return trial.conclude(
        "observable",
        [reason for item in trial.runs for reason in _problems(item)],
        met=f"{counted(phases, 'phase')} in {runs}, each with its start and its end or the run's",
        evidence=[fact for item in trial.runs for fact in _ends(item)],
    )


def _ends(item: RunEvidence) -> Sequence[Fact[Event] | None]:
    return [item.first(RunStarted), item.first(RunFinished), item.first(ProcessExited)]


def _problems(item: RunEvidence) -> Iterator[Reason]:
    name, tree = f"run {item.run.run_id}", item.phases
    see = f"enginetrail show {item.run.run_id}"
    monitor_errors = [fact.event.message for fact in item.all(ErrorRecorded) if fact.event.component == "monitor"]
    if item.run.error_type == "monitor_fault":
        text = f"{name}: {monitor_errors[0] if monitor_errors else item.run.error_message or 'a callback failed'}"
        yield Reason(Code.MONITOR_FAULT, text, "report the fault; the build itself is not judged by it")
    if tree.count == 0:
        yield Reason(Code.NO_CALLBACKS, f"{name}: the builder never called back", f"read the builder's words: {see}")
        return
    if tree.roots == 0:
        yield Reason(Code.PHASE_TREE_BROKEN, f"{name}: the phase tree has no root", see)
    for code, what, labels in (
        (Code.PHASE_TREE_BROKEN, "whose parent is not there", tree.orphans),
        (Code.PHASE_INCOMPLETE, "without a start", tree.without_start),
        (Code.PHASE_INCOMPLETE, "without an end", tree.without_end),
    ):
        if labels:
            more = ", ..." if len(labels) > NAMED else ""
            text = f"{name}: {counted(len(labels), 'phase')} {what}: {', '.join(labels[:NAMED])}{more}"
            yield Reason(code, text, see)
