"""Evidence from the records themselves: by the fold, and equal to what the store's rows come to. Pure."""

from collections.abc import Iterable, Mapping, Sequence

from analytics.evidence import Evidence, RouteEvidence, RunEvidence, ordered, summarize
from build_events.envelope import Recorded
from build_events.events import DecisionRecorded, StreamClosed
from build_events.fold import advance, fold
from build_events.run_rows import stream_row
from build_events.state import StreamRow, StreamState


def evidence_of(
    records: Iterable[Recorded],
    types: frozenset[str],
    *,
    phases: bool = True,
    routes: Iterable[str] = (),
    dead_letters: Mapping[str, int] | None = None,
    behind: bool = False,
) -> Evidence:
    """Return the evidence in records of any runs and routes.

    ``types`` are the event types that the judging test reads; without ``phases`` it asks nothing about the phase
    trees, and finds them empty. ``routes`` are judged even where nothing was
    recorded about them, like the runs' own. ``dead_letters`` counts by run id or route.
    """
    letters = dead_letters or {}
    subjects: dict[tuple[str | None, str | None], list[Recorded]] = {}
    for items in _streams(records).values():
        if not is_decision_stream(items):
            header = items[0].stream
            subjects.setdefault((header.run_id, header.route), []).extend(items)
    runs = [
        _run(run_id, items, types, letters, phases=phases)
        for (run_id, _), items in subjects.items()
        if run_id is not None
    ]
    about = {route: items for (_, route), items in subjects.items() if route is not None}
    named = {item.run.route for item in runs if item.run.route is not None}
    return Evidence(
        runs=tuple(sorted(runs, key=lambda item: item.order)),
        routes=tuple(
            _route(route, about.get(route, []), types, letters) for route in sorted({*routes, *named, *about})
        ),
        behind=behind,
    )


def is_decision_stream(records: Sequence[Recorded]) -> bool:
    """Say whether a whole stream, without a gap, holds decisions and nothing else but its end."""
    decided = any(isinstance(record.event, DecisionRecorded) for record in records)
    only = all(isinstance(record.event, DecisionRecorded | StreamClosed) for record in records)
    return decided and only and records[0].stream.role != "main" and not _stream_row(records).missing


def _stream_row(records: Sequence[Recorded]) -> StreamRow:
    return stream_row(advance(StreamState(header=records[0].stream), records))


def _streams(records: Iterable[Recorded]) -> dict[str, list[Recorded]]:
    streams: dict[str, dict[int, Recorded]] = {}
    for record in records:
        streams.setdefault(record.stream.stream_id, {})[record.sequence] = record
    return {stream_id: list(by_sequence.values()) for stream_id, by_sequence in streams.items()}


def _run(
    run_id: str, items: list[Recorded], types: frozenset[str], letters: Mapping[str, int], *, phases: bool
) -> RunEvidence:
    count = letters.get(run_id, 0)
    state = fold(items, dead_letters=count)[run_id]
    return RunEvidence(
        run=state.run,
        phases=summarize(state.phases if phases else ()),
        cancellation=state.cancellation,
        artifacts=state.artifacts,
        streams=state.streams,
        events=ordered(record for record in items if record.event.type in types),
        dead_letters=count,
    )


def _route(route: str, items: list[Recorded], types: frozenset[str], letters: Mapping[str, int]) -> RouteEvidence:
    rows = [_stream_row(part) for part in _streams(items).values()]
    return RouteEvidence(
        route=route,
        streams=tuple(sorted(rows, key=lambda row: row.stream_id)),
        events=ordered(record for record in items if record.event.type in types),
        dead_letters=letters.get(route, 0),
    )
