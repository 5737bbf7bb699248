"""The laws of the store: how the log was cut, ordered and repeated changes no table."""

from collections.abc import Sequence

from hypothesis import given, settings
from hypothesis import strategies as st

from build_events.envelope import Recorded, StreamHeader
from build_events.events import Event, PhaseFinished, PhaseProgressed, PhaseStarted
from build_events.fold import fold
from collector.ingest import Sizes
from tests.build_events.strategies import events, histories, records, several_histories
from tests.collector.stores import content, folded, payloads, store_of

# One event has about 900 bytes.
SIZES = st.builds(
    Sizes,
    chunk_bytes=st.integers(1, 10_000),
    batch_records=st.integers(1, 20),
    commit_records=st.integers(1, 50),
    commit_bytes=st.sampled_from([5_000, 1 << 20]),
    commit_s=st.sampled_from([0.0, 60.0]),
)


def cut(draw: st.DataObject, arrived: Sequence[bytes]) -> list[Sequence[bytes]]:
    """Return what arrived, in pieces of any size."""
    pieces: list[Sequence[bytes]] = []
    while arrived:
        size = draw.draw(st.integers(1, len(arrived)))
        pieces.append(arrived[:size])
        arrived = arrived[size:]
    return pieces


@settings(max_examples=25)
@given(history=several_histories(), data=st.data())
def test_batches_order_and_redelivery_change_no_table(history: list[Recorded], data: st.DataObject) -> None:
    """Any cut of any permutation with any duplicates gives the tables of one clean pass."""
    redelivered = data.draw(st.lists(st.sampled_from(history), max_size=20))
    arrived = payloads(data.draw(st.permutations(history + redelivered)))
    with store_of(*cut(data, arrived), sizes=data.draw(SIZES)) as db:
        incremental = content(db)
    with store_of(payloads(history)) as db:
        assert content(db) == incremental


@settings(max_examples=15)
@given(history=several_histories(), data=st.data())
def test_the_store_holds_what_the_fold_says(history: list[Recorded], data: st.DataObject) -> None:
    """The fold's tables hold exactly the rows of ``build_events.fold.fold`` over the whole history."""
    with store_of(*cut(data, payloads(history))) as db:
        expected = folded(fold(history).values(), db)
        found = content(db)
        assert {name: found[name] for name in expected} == expected


@settings(max_examples=15)
@given(history=histories(), data=st.data())
def test_python_and_sql_store_the_same(history: list[Recorded], data: st.DataObject) -> None:
    """Whether a batch is large enough for the check in SQL changes no row."""
    arrived = cut(data, payloads(history))
    with store_of(*arrived, sql_from_payloads=1) as db:
        in_sql = content(db)
    with store_of(*arrived, sql_from_payloads=10**9) as db:
        assert content(db) == in_sql


@settings(max_examples=25)
@given(wild=st.lists(records(), max_size=30), data=st.data())
def test_events_that_make_no_sense_together_are_stored_and_replay_alike(
    wild: list[Recorded], data: st.DataObject
) -> None:
    """Any events of any streams, contradicting each other in every way, never stop the collector."""
    first_of_each = list({(record.stream, record.sequence): record for record in reversed(wild)}.values())
    arrived = payloads(first_of_each)
    with store_of(*cut(data, arrived)) as db:
        incremental = content(db)
    with store_of(payloads(data.draw(st.permutations(first_of_each)))) as db:
        assert content(db) == incremental


_phases = events(PhaseStarted, PhaseProgressed, PhaseFinished)


@settings(max_examples=25)
@given(said=st.lists(st.tuples(_phases, st.integers(1, 3)), max_size=30), data=st.data())
def test_phases_that_go_on_after_their_end_replay_alike(said: list[tuple[Event, int]], data: st.DataObject) -> None:
    """A phase that was written as settled and is heard of again gives the rows of one clean pass."""
    header = StreamHeader(stream_id="main", role="main", run_id="run-1", source="tests", boot_id="boot-1")
    events_of_few = [event.model_copy(update={"phase_id": phase_id}) for event, phase_id in said]
    history = [
        Recorded(stream=header, sequence=number, wall_ns=number, monotonic_ns=number, event=event)
        for number, event in enumerate(events_of_few)
    ]
    with store_of(*cut(data, payloads(history))) as db:
        incremental = content(db)
    with store_of(payloads(history)) as db:
        assert content(db) == incremental
