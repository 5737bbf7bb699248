from hypothesis import given

from build_events import codec
from build_events.envelope import Recorded
from tests.build_events.strategies import histories, records


@given(record=records())
def test_every_record_comes_back_from_the_wire_as_it_was(record: Recorded) -> None:
    """Decoding what was encoded gives the same record, and the same bytes again."""
    wire = codec.encode(record)
    decoded = codec.decode(wire)
    assert decoded == record
    assert codec.encode(decoded) == wire


@given(history=histories())
def test_a_history_numbers_each_stream_without_gaps(history: list[Recorded]) -> None:
    """The generator gives what a log holds: within a stream, sequences from 0 in order."""
    streams: dict[str, list[int]] = {}
    for record in history:
        streams.setdefault(record.stream.stream_id, []).append(record.sequence)
    assert all(sequences == list(range(len(sequences))) for sequences in streams.values())
