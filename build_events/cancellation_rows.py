"""The winning cancellation request of a run and how long each leg took."""

from build_events.events import (
    BuilderReturned,
    CancelObserved,
    CancelRequested,
    CancelSignalled,
    CleanupFinished,
    Event,
    ProcessExited,
)
from build_events.facts import Fact, Facts, earliest, elapsed_ns
from build_events.state import AnomalyRow, CancellationRow


def winning_request(facts: Facts) -> Fact[CancelRequested] | None:
    """Return the request that the builder's process named, else the earliest; ``None`` without any."""
    requests = facts.all(CancelRequested)
    signalled = facts.own(CancelSignalled)
    if signalled is not None:
        named = [fact for fact in requests if fact.event.request_id == signalled.event.request_id]
        if named:
            return named[0]
    return earliest(requests)


def cancellation_row(run_id: str, facts: Facts) -> tuple[CancellationRow | None, tuple[AnomalyRow, ...]]:
    """Return the row, and an anomaly for each leg whose clocks do not compare."""
    request = winning_request(facts)
    if request is None:
        return None, ()
    anomalies: list[AnomalyRow] = []

    def leg(reached: Fact[Event] | None) -> int | None:
        if reached is None:
            return None
        elapsed = elapsed_ns(request.record, reached.record)
        if elapsed is None:
            detail = f"{reached.event.type} and the request {request.event.request_id} are of different boots"
            anomalies.append(
                AnomalyRow(run_id=run_id, stream_id=reached.record.stream.stream_id, code="clock_domain", detail=detail)
            )
            return None
        return max(elapsed, 0)  # before the request: nothing was left to wait for

    observed = facts.own(CancelObserved)
    row = CancellationRow(
        run_id=run_id,
        request_id=request.event.request_id,
        source=request.event.source,
        deadline=request.event.deadline,
        requested_at_ns=request.record.wall_ns,
        signalled_ns=leg(facts.own(CancelSignalled)),
        observed_ns=leg(observed),
        observed_phase_id=observed.event.phase_id if observed else None,
        returned_ns=leg(facts.own(BuilderReturned)),
        cleaned_ns=leg(facts.first(CleanupFinished)),
        exited_ns=leg(facts.first(ProcessExited)),
    )
    return row, tuple(anomalies)
