"""What a store holds, in numbers: the same whoever asks, so a collector that starts again goes on counting.

Every number is asked from the store, none is kept beside it: nothing is counted twice after a crash.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from itertools import product
from typing import Final, get_args

import duckdb

from build_events.events import ExportFinished, Outcome, RunFenced, Verdict
from build_events.telemetry import metrics, names
from build_events.telemetry.measurements import DROPPED_BY_SIGNAL, Measurement
from build_events.telemetry.metrics import Metric

OPEN: Final = "open"
_TESTS: Final = ("sbat", "cbat")
_EVENTS = "SELECT count(*) FROM base.events"
_DEAD_LETTERS = "SELECT count(*) FROM base.dead_letters"
_FENCED = "SELECT count(DISTINCT run_id) FROM base.events WHERE type = ?"
_RUNS = "SELECT coalesce(outcome, ?), count(*) FROM base.runs GROUP BY ALL"
_VERDICTS = (
    "SELECT payload->>'$.kind', payload->>'$.verdict', count(*) FROM base.events "
    "WHERE type = 'trt.decision.recorded.v1' GROUP BY ALL"
)
_DROPPED_EVENTS = "SELECT coalesce(sum(dropped), 0)::BIGINT FROM base.streams"
_DROPPED_EXPORTS = (
    "SELECT payload->>'$.signal', sum((payload->>'$.dropped')::BIGINT)::BIGINT FROM base.events "
    "WHERE type = ? GROUP BY ALL"
)

Key = tuple[Metric, tuple[tuple[str, str], ...]]


def totals(db: duckdb.DuckDBPyConnection) -> list[Measurement]:
    """Return what the store holds now; what it holds none of is 0, for the labels that are known ahead.

    Raises:
        duckdb.Error: the store cannot be read.
    """

    def number(sql: str, *values: str) -> int:
        row = db.execute(sql, list(values)).fetchone()
        return int(row[0]) if row is not None else 0

    runs = dict.fromkeys((*get_args(Outcome), OPEN), 0) | dict(db.execute(_RUNS, [OPEN]).fetchall())
    verdicts = dict.fromkeys(product(_TESTS, get_args(Verdict)), 0)
    verdicts |= {(kind, verdict): count for kind, verdict, count in db.execute(_VERDICTS).fetchall()}
    exports = dict(db.execute(_DROPPED_EXPORTS, [ExportFinished.type]).fetchall())
    dropped = {"event": number(_DROPPED_EVENTS)}
    dropped |= {kind: exports.get(signal, 0) for signal, kind in DROPPED_BY_SIGNAL.items()}
    return [
        Measurement(metrics.COLLECTOR_EVENTS, number(_EVENTS)),
        Measurement(metrics.COLLECTOR_DEAD_LETTERS, number(_DEAD_LETTERS)),
        Measurement(metrics.COLLECTOR_FENCED, number(_FENCED, RunFenced.type)),
        *(Measurement(metrics.COLLECTOR_RUNS, count, {names.BUILD_OUTCOME: key}) for key, count in runs.items()),
        *(
            Measurement(metrics.COLLECTOR_VERDICTS, count, {names.VERDICT_KIND: kind, names.VERDICT: verdict})
            for (kind, verdict), count in verdicts.items()
        ),
        *(Measurement(metrics.COLLECTOR_DROPPED, count, {names.DROPPED_KIND: key}) for key, count in dropped.items()),
    ]


@dataclass(slots=True)
class Changes:
    """From totals to what counters are to be moved by. Pure."""

    _before: dict[Key, float] = field(default_factory=dict)

    def since(self, found: Iterable[Measurement]) -> list[Measurement]:
        """Return the totals' differences to those of the last call; the first are the totals themselves."""
        moved = []
        for item in found:
            key = (item.metric, tuple(sorted(item.labels.items())))
            moved.append(Measurement(item.metric, item.value - self._before.get(key, 0), item.labels))
            self._before[key] = item.value
        return moved


def lag_of(behind: Mapping[str, int], *, in_bytes: bool) -> Measurement:
    """Return how far a store is behind its log, over all its sources; see ``status.lag``."""
    return Measurement(metrics.COLLECTOR_LAG_BYTES if in_bytes else metrics.COLLECTOR_LAG, sum(behind.values()))
