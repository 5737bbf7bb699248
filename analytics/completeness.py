"""Whether the log holds all of what is judged. Pure."""

from collections.abc import Iterator

from analytics.evidence import Evidence, RunEvidence
from analytics.reasons import Code
from analytics.verdict import Reason
from build_events import ranges
from build_events.state import StreamRow

RECOVER = "bring back the missing part of the log and run `enginetrail collect`, or judge another run"


def problems(evidence: Evidence) -> Iterator[Reason]:
    """Yield why nothing can be said for certain: an open or lost run, a gap, drops, dead letters, a store behind."""
    if evidence.behind:
        yield Reason(
            Code.STORE_BEHIND, "the store had not taken in the whole log", "ask again when the collector caught up"
        )
    for item in evidence.runs:
        yield from run_problems(item)
    for route in evidence.routes:
        yield from _stream_problems(f"route {route.route}", route.streams)
        yield from _dead_letter_problems(f"route {route.route}", route.dead_letters)


def run_problems(item: RunEvidence) -> Iterator[Reason]:
    """Yield what one run lacks."""
    run = item.run
    name = f"run {run.run_id}"
    if run.outcome is None:
        yield Reason(Code.RUN_OPEN, f"{name} has not ended", f"wait for its end: enginetrail show {run.run_id}")
    if run.outcome == "lost":
        step = f"retry it: enginetrail build ... --retry-of {run.run_id}"
        yield Reason(Code.RUN_LOST, f"{name} is lost: nobody saw its end", step)
    mains = [row for row in item.streams if row.role == "main"]
    if not mains:
        yield Reason(Code.NO_MAIN_STREAM, f"{name} has no main stream", RECOVER)
    if run.outcome not in {None, "lost"} and any(row.declared_events is None for row in mains):
        yield Reason(Code.NO_DECLARED_END, f"the main stream of {name} has no declared end", RECOVER)
    yield from _stream_problems(name, item.streams)
    yield from _dead_letter_problems(name, item.dead_letters)


def _stream_problems(subject: str, streams: tuple[StreamRow, ...]) -> Iterator[Reason]:
    for row in streams:
        where = f"{row.role} stream {row.stream_id}"
        if row.missing:
            text = f"{subject}: {where} lacks sequence {ranges.text(row.missing)}"
            yield Reason(Code.MISSING_SEQUENCES, text, RECOVER)
        if row.dropped:
            yield Reason(Code.DROPPED_EVENTS, f"{subject}: the writer of {where} dropped {row.dropped} events", RECOVER)


def _dead_letter_problems(subject: str, count: int) -> Iterator[Reason]:
    if count:
        step = 'look at them: enginetrail query "SELECT * FROM dead_letters"'
        yield Reason(Code.DEAD_LETTERS, f"{subject}: {count} records of its log are damaged", step)
