"""Evidence: the same from the store's rows and from the records, whatever the history."""

import random

from hypothesis import given, settings
from hypothesis import strategies as st

from analytics.from_records import evidence_of
from analytics.gather import gather, records
from analytics.gather_rows import parse_ranges
from build_events import ranges
from build_events.envelope import Recorded
from build_events.events import EVENT_TYPES, Phase
from tests.analytics.store import collected
from tests.build_events.strategies import several_histories

TYPES = frozenset(name for name, cls in EVENT_TYPES.items() if not issubclass(cls, Phase))


@settings(max_examples=30, deadline=None)
@given(history=several_histories(), data=st.data())
def test_rows_and_records_come_to_the_same_evidence(history: list[Recorded], data: st.DataObject) -> None:
    """Gaps included: what the store answers equals what the fold makes of the records."""
    lost = data.draw(st.sets(st.sampled_from(range(len(history))), max_size=3))
    kept = [record for index, record in enumerate(history) if index not in lost]
    run_ids = sorted({record.stream.run_id for record in kept if record.stream.run_id})
    query = collected(kept)
    routes = sorted(row["route"] for row in query("SELECT DISTINCT route FROM runs WHERE route IS NOT NULL", []))
    gathered = gather(query, run_ids, routes, TYPES).evidence
    again = evidence_of(random.sample(kept, len(kept)), TYPES)
    assert gathered.sha256 == again.sha256
    assert gathered.inputs == again.inputs
    streams = sorted(gathered.inputs)
    assert evidence_of(records(query, streams), TYPES).sha256 == again.sha256


@given(st.sets(st.integers(0, 50)))
def test_the_stores_text_of_missing_sequences_is_read_back(numbers: set[int]) -> None:
    """Text for people is still exact."""
    assert parse_ranges(ranges.text(ranges.of(numbers))) == ranges.of(numbers)
