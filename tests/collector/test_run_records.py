"""What the store gives back of a run is what was recorded."""

from pathlib import Path

import pytest

from build_events.local_log import LocalLog
from collector.run_records import first_to_declare, run_records
from tests.build_events.log_files import content
from tests.collector.stores import payloads, store_of

GOLDEN = Path(__file__).parent.parent / "golden"


@pytest.mark.parametrize("history", sorted(folder.name for folder in GOLDEN.iterdir()))
@pytest.mark.parametrize("parsing", [1, 10_000], ids=["in SQL", "by pydantic"])
def test_the_events_of_a_run_come_back_as_they_were(history: str, parsing: int) -> None:
    """Of every type that was ever shipped, whichever way it went in."""
    records = content(LocalLog(GOLDEN / history)).records
    runs = {record.stream.run_id for record in records} - {None}
    assert runs
    with store_of(payloads(records), sql_from_payloads=parsing) as db:
        for run_id in runs:
            assert run_id is not None
            own = {(item.stream.stream_id, item.sequence): item for item in records if item.stream.run_id == run_id}
            assert run_records(db, run_id) == [own[key] for key in sorted(own)]


def test_who_first_declared_a_run_is_asked_of_the_order_of_the_log() -> None:
    """The golden fence stands behind the events of its run, and nobody declared the other history's."""
    records = content(LocalLog(GOLDEN / "v1_fenced")).records
    fences = [record for record in records if record.event.type in {"trt.build.run.fenced.v1", "trt.build.run.lost.v1"}]
    assert fences
    first = fences[0].stream
    assert first.run_id is not None
    with store_of(payloads(records)) as db:
        assert first_to_declare(db, first.run_id) == first.stream_id
        assert first_to_declare(db, "nobody's") is None
