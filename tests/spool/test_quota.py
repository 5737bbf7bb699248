"""A full spool: progress goes first, then phases, never what says how the run ended; all is counted."""

from pathlib import Path

import pytest

from build_events.clock import Instant
from build_events.events import CancelRequested, CleanupFinished, Event
from build_events.kafka_settings import KafkaSettingsError
from builder_agent.recording.backlog import Backlog, Waiting
from builder_agent.spool.quota import DEFAULT_BYTES, Pressure, SpoolQuota, spool_limit
from tests.spool.test_drain import one_run

PROGRESS = "trt.build.phase.progressed.v1"


def events(prefix: str) -> list[Event]:
    """Return the events of a run whose type begins so."""
    return [
        record.event for record in one_run() if record.event.type.startswith(prefix) and isinstance(record.event, Event)
    ]


@pytest.mark.parametrize(("pressure", "progress", "phases"), [("none", 1, 1), ("full", 0, 1), ("overfull", 0, 0)])
def test_pressure_drops_progress_first_then_phases_never_ends(pressure: Pressure, progress: int, phases: int) -> None:
    """The policy of a full spool, one event of each kind."""
    backlog = Backlog(100)
    ends = [CleanupFinished(status="cleaned", by="build"), CancelRequested(request_id="1", source="ci")]
    kinds = [*events(PROGRESS)[:1], *events("trt.build.phase.started")[:1], *ends]
    for event in kinds:
        backlog.add(Waiting(event, Instant(0, 0), None), pressure)
    assert len(backlog) == len(kinds) - (1 - progress) - (1 - phases)
    assert backlog.dropped == (1 - progress) + (1 - phases)


@pytest.mark.parametrize(("size", "pressure"), [(99, "none"), (100, "full"), (124, "full"), (125, "overfull")])
def test_pressure_follows_the_bytes_in_the_spool(tmp_path: Path, size: int, pressure: Pressure) -> None:
    """Streams of runs and routes count together."""
    for kind, length in (("runs", 40), ("routes", size - 40)):
        (tmp_path / kind / "key").mkdir(parents=True)
        (tmp_path / kind / "key" / "stream.0000.jsonl").write_bytes(b"x" * length)
    assert SpoolQuota(tmp_path, 100).pressure() == pressure


def test_a_spool_that_is_not_there_is_empty(tmp_path: Path) -> None:
    """The first event of a home meets no quota."""
    assert SpoolQuota(tmp_path / "spool", 1).pressure() == "none"


def test_the_limit_comes_from_the_environment() -> None:
    """A number of bytes, or the default; anything else is refused."""
    assert spool_limit({}) == DEFAULT_BYTES
    assert spool_limit({"ENGINETRAIL_SPOOL_BYTES": "4096"}) == 4096
    with pytest.raises(KafkaSettingsError, match="ENGINETRAIL_SPOOL_BYTES is '1G'"):
        spool_limit({"ENGINETRAIL_SPOOL_BYTES": "1G"})
