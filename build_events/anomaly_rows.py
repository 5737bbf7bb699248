"""What the contract does not allow but history holds: noted, never raised."""

from collections.abc import Iterator, Sequence

from build_events import ranges
from build_events.events import Outcome, RunStarted
from build_events.facts import Facts
from build_events.state import AnomalyRow, PhaseRow, StreamRow


def run_anomalies(run_id: str, facts: Facts) -> Iterator[AnomalyRow]:
    """Yield what is wrong with the run as a whole."""
    if facts.own(RunStarted) is None:
        yield AnomalyRow(
            run_id=run_id, stream_id=None, code="no_run_started", detail="the log holds no run.started of this run"
        )
    if len(facts.mains) > 1:
        detail = f"{len(facts.mains)} main streams; a run has one"
        yield AnomalyRow(run_id=run_id, stream_id=None, code="several_main_streams", detail=detail)


def stream_anomalies(run_id: str, streams: Sequence[StreamRow], outcome: Outcome | None) -> Iterator[AnomalyRow]:
    """Yield gaps, drops and ends that do not hold."""
    for row in streams:

        def note(code: str, detail: str, stream_id: str = row.stream_id) -> AnomalyRow:
            return AnomalyRow(run_id=run_id, stream_id=stream_id, code=code, detail=detail)

        if row.missing:
            yield note("missing_sequences", f"not in the log: {ranges.text(row.missing)}")
        if row.declared_events is not None and (row.highest_sequence or 0) >= row.declared_events:
            yield note(
                "events_after_end",
                f"declared {row.declared_events} events, yet sequence {row.highest_sequence} is there",
            )
        if row.dropped:
            yield note("dropped_events", f"the writer dropped {row.dropped}")
        if row.role == "observer" and row.declared_events is None and outcome is not None:
            yield note("unclosed_observer", "an observer's stream has no declared end")


def phase_anomalies(phases: Sequence[PhaseRow], outcome: Outcome | None) -> Iterator[AnomalyRow]:
    """Yield phases whose promise was broken."""
    for phase in phases:
        detail = f"phase {phase.phase_id} {phase.name}"
        if phase.started_at_ns is None:
            yield AnomalyRow(run_id=phase.run_id, stream_id=None, code="phase_without_start", detail=detail)
        if phase.status == "open" and outcome is not None:
            yield AnomalyRow(run_id=phase.run_id, stream_id=None, code="phase_unfinished", detail=detail)
