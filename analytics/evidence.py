"""Evidence: what criteria and gates may know of runs and routes. Pure: no I/O, no clock.

Made of the fold's rows and of the facts of rare types; phases come as a summary, so that judging a
run costs the same however often its builder called back. Streams that hold decisions are no evidence.
"""

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from analytics.canonical import sha256_of
from build_events.envelope import Recorded
from build_events.events import ArtifactInventoried, Event, HeartbeatRecorded, InventoryEntry, ProcessObserved
from build_events.facts import Fact, latest
from build_events.state import ArtifactRow, CancellationRow, PhaseRow, Ranges, RunRow, StreamRow

E = TypeVar("E", bound=Event)

NAMED = 5  # so many phases are named in a text; the rest are counted


@dataclass(frozen=True, slots=True, kw_only=True)
class PhaseSummary:
    """A run's phase tree in numbers."""

    count: int
    roots: int
    without_start: tuple[str, ...]  # "3 Optimizing graph"
    without_end: tuple[str, ...]  # open although the run ended
    orphans: tuple[str, ...]  # whose parent is not in the tree
    longest_gap_ns: int | None
    longest_gap_phase: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class RunEvidence:
    """One run."""

    run: RunRow
    phases: PhaseSummary
    cancellation: CancellationRow | None
    artifacts: tuple[ArtifactRow, ...]
    streams: tuple[StreamRow, ...]
    events: tuple[Recorded, ...]  # main stream first, then by stream id; within a stream by sequence
    dead_letters: int

    def all(self, cls: type[E]) -> list[Fact[E]]:
        """Return every fact of a type, in the order of ``events``."""
        return facts(self.events, cls)

    def first(self, cls: type[E]) -> Fact[E] | None:
        """Return the first fact of a type."""
        return next(iter(self.all(cls)), None)

    def latest(self, cls: type[E]) -> Fact[E] | None:
        """Return the fact of a type that happened last, over all streams."""
        return latest(self.all(cls))

    def inventory(self, moment: str) -> list[InventoryEntry] | None:
        """Return the files at the target before or after the run; a sweep lists them after the build did."""
        found = [fact for fact in self.all(ArtifactInventoried) if fact.event.moment == moment]
        last = latest(found)
        return last.event.entries if last else None

    @property
    def order(self) -> tuple[int, str]:
        """Runs are ordered by start and then by id; a run without a start comes first."""
        return self.run.started_at_ns or 0, self.run.run_id


@dataclass(frozen=True, slots=True, kw_only=True)
class RouteEvidence:
    """The facts that were recorded about a route, without decisions."""

    route: str
    streams: tuple[StreamRow, ...]
    events: tuple[Recorded, ...]
    dead_letters: int

    def all(self, cls: type[E]) -> list[Fact[E]]:
        """Return every fact of a type."""
        return facts(self.events, cls)


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """Everything that one verdict stands on."""

    runs: tuple[RunEvidence, ...]  # by start
    routes: tuple[RouteEvidence, ...]
    behind: bool = False  # the store had not taken in the whole log

    def run(self, run_id: str) -> RunEvidence | None:
        """Return one run."""
        return next((item for item in self.runs if item.run.run_id == run_id), None)

    @property
    def streams(self) -> tuple[StreamRow, ...]:
        """Every stream that was used."""
        of_runs = [row for item in self.runs for row in item.streams]
        return (*of_runs, *(row for item in self.routes for row in item.streams))

    @property
    def inputs(self) -> dict[str, int]:
        """The highest sequence used of each stream."""
        highest = {row.stream_id: row.highest_sequence for row in self.streams}
        return {stream: highest[stream] or 0 for stream in sorted(highest) if highest[stream] is not None}

    @property
    def gaps(self) -> dict[str, Ranges]:
        """The sequences below the highest that were not there."""
        return {row.stream_id: row.missing for row in self.streams if row.missing}

    @property
    def dead_letters(self) -> dict[str, int]:
        """Bad records that counted, by run id or route."""
        counts = {item.run.run_id: item.dead_letters for item in self.runs}
        counts |= {item.route: item.dead_letters for item in self.routes}
        return {subject: count for subject, count in sorted(counts.items()) if count}

    @property
    def sha256(self) -> str:
        """Digest of the canonical bytes of all of it."""
        return sha256_of(
            {
                "behind": self.behind,
                "runs": [_canonical_run(item) for item in self.runs],
                "routes": [_canonical_route(item) for item in self.routes],
            }
        )


def facts(records: Iterable[Recorded], cls: type[E]) -> list[Fact[E]]:
    """Return the records whose event is of a type."""
    return [Fact(record, record.event) for record in records if isinstance(record.event, cls)]


def ordered(records: Iterable[Recorded]) -> tuple[Recorded, ...]:
    """Return records by role and stream, then by sequence, and of the many alike only what can matter.

    Of heartbeats: the one after the longest silence and the last; of observations during a build: the first.
    """
    rows = sorted(records, key=lambda item: (item.stream.role != "main", item.stream.stream_id, item.sequence))
    beats = facts(rows, HeartbeatRecorded)
    kept = {id(fact.record) for fact in beats[-1:]}
    if beats:
        kept.add(id(max(beats, key=lambda fact: fact.event.since_callback_ns or 0).record))
    during = [fact.record for fact in facts(rows, ProcessObserved) if fact.event.moment == "during"]
    dropped = {id(fact.record) for fact in beats} - kept | {id(record) for record in during[1:]}
    return tuple(record for record in rows if id(record) not in dropped)


def summarize(phases: Sequence[PhaseRow]) -> PhaseSummary:
    """Return a run's phase tree in numbers."""
    rows = sorted(phases, key=lambda row: row.phase_id)
    known = {row.phase_id for row in rows}
    # A phase is silent while the phases inside it are: of equal silences the innermost phase is named.
    silent = max((row for row in rows if row.longest_gap_ns is not None), key=_silence, default=None)
    return PhaseSummary(
        count=len(rows),
        roots=sum(row.parent_id is None for row in rows),
        without_start=tuple(_label(row) for row in rows if row.started_at_ns is None),
        without_end=tuple(_label(row) for row in rows if row.status == "open"),
        orphans=tuple(_label(row) for row in rows if row.parent_id is not None and row.parent_id not in known),
        longest_gap_ns=silent.longest_gap_ns if silent else None,
        longest_gap_phase=_label(silent) if silent else None,
    )


def _silence(row: PhaseRow) -> tuple[int, int]:
    return row.longest_gap_ns or 0, row.phase_id


def _label(row: PhaseRow) -> str:
    return f"{row.phase_id} {row.name}"


def _canonical_run(item: RunEvidence) -> dict[str, Any]:
    return {
        "run": dataclasses.asdict(item.run),
        "phases": dataclasses.asdict(item.phases),
        "cancellation": dataclasses.asdict(item.cancellation) if item.cancellation else None,
        "artifacts": [dataclasses.asdict(row) for row in item.artifacts],
        "streams": [dataclasses.asdict(row) for row in item.streams],
        "events": [_canonical_event(record) for record in item.events],
        "dead_letters": item.dead_letters,
    }


def _canonical_route(item: RouteEvidence) -> dict[str, Any]:
    return {
        "route": item.route,
        "streams": [dataclasses.asdict(row) for row in item.streams],
        "events": [_canonical_event(record) for record in item.events],
        "dead_letters": item.dead_letters,
    }


def _canonical_event(record: Recorded) -> Mapping[str, Any]:
    data = record.event.model_dump(mode="json")
    return {
        "id": record.event_id,
        "type": record.event.type,
        "wall_ns": record.wall_ns,
        "monotonic_ns": record.monotonic_ns,
        "data": data,
    }
