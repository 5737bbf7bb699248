"""The contract of ``EventWriter`` and ``EventReader``, one suite over every adapter."""

import dataclasses
import itertools
import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from build_events import codec
from build_events.envelope import Recorded
from build_events.events import UnknownEvent
from build_events.log import Chunk, EventReader, Positions
from tests.build_events.scenes import ENDS, End, Scene, flatten
from tests.build_events.strategies import several_histories
from tests.contract.logs import KAFKA, LOGS, LogUnderTest

PLENTY = 1 << 20  # bytes
EXAMPLES = {KAFKA: 8}  # of a law; each makes a topic
every_log = pytest.mark.parametrize(
    "kind", [pytest.param(kind, marks=pytest.mark.service) if kind == KAFKA else kind for kind in LOGS]
)


@contextmanager
def empty_log(kind: str) -> Iterator[LogUnderTest]:
    """Give a log that nothing was written to."""
    with tempfile.TemporaryDirectory() as folder, closing(LOGS[kind](Path(folder))) as log:
        yield log


def read_all(reader: EventReader, after: Positions | None = None, *, max_bytes: int = PLENTY) -> list[Chunk]:
    """Return every chunk after these positions."""
    return list(reader.read(after or {}, max_bytes=max_bytes))


def decoded(chunks: list[Chunk]) -> list[Recorded]:
    """Return the records of chunks."""
    return [codec.decode(payload) for chunk in chunks for payload in chunk.payloads]


def positions(chunks: list[Chunk]) -> dict[str, int]:
    """Return where a reader stands after chunks."""
    return {chunk.source: chunk.next_offset for chunk in chunks}


def by_stream(records: list[Recorded]) -> dict[str, list[Recorded]]:
    """Return each stream's records in their order."""
    streams: dict[str, list[Recorded]] = {}
    for record in records:
        streams.setdefault(record.stream.stream_id, []).append(record)
    return streams


def one_run(run_id: str = "run-1") -> list[Recorded]:
    """Return a run of two streams and some forty records."""
    operations = flatten((((), ()), ()))
    return Scene(run_id=run_id).play("cancelled", operations, 9)


@every_log
def test_every_stream_comes_back_whole_and_in_order(kind: str) -> None:
    """However appends and chunks are cut, each stream is read as it was written."""

    @settings(max_examples=EXAMPLES.get(kind, 100))
    @given(history=several_histories(), size=st.integers(1, 5), max_bytes=st.sampled_from([1, 700, 4_000, PLENTY]))
    def law(history: list[Recorded], size: int, max_bytes: int) -> None:
        with empty_log(kind) as log:
            writer = log.writer()
            for first in range(0, len(history), size):
                writer.append(history[first : first + size])
            chunks = read_all(log.reader(), max_bytes=max_bytes)
            assert by_stream(decoded(chunks)) == by_stream(history)
            assert not any(chunk.rejects for chunk in chunks)

    law()


@every_log
def test_a_chunk_stays_within_its_bound_or_holds_one_record(kind: str) -> None:
    """``max_bytes`` bounds a chunk's payloads; a longer record comes alone, with all events that it holds."""
    with empty_log(kind) as log:
        log.writer().append(one_run())
        for max_bytes in (1, 500, 1_000, 3_000):
            for chunk in read_all(log.reader(), max_bytes=max_bytes):
                assert len(set(chunk.offsets)) == 1 or sum(map(len, chunk.payloads)) <= max_bytes


@every_log
def test_offsets_say_where_each_record_begins(kind: str) -> None:
    """Offsets rise inside a chunk, from where the one before ended to below its own end.

    They are equal only where one record of the log holds several events of one stream.
    """
    with empty_log(kind) as log:
        log.writer().append(one_run())
        ends: dict[str, int] = {}
        for chunk in read_all(log.reader(), max_bytes=1_500):
            offsets = [*chunk.offsets, chunk.next_offset]
            assert len(chunk.offsets) == len(chunk.payloads)
            assert offsets[0] == ends.get(chunk.source, 0)
            assert all(low <= high for low, high in itertools.pairwise(offsets))
            assert offsets[-1] > max(chunk.offsets)
            by_offset = zip(chunk.offsets, decoded([chunk]), strict=True)
            for _, together in itertools.groupby(by_offset, key=lambda pair: pair[0]):
                assert len({record.stream for _, record in together}) == 1
            ends[chunk.source] = chunk.next_offset


@every_log
def test_a_reader_resumes_from_any_record(kind: str) -> None:
    """From the position of a record on, exactly that record and those after it are read."""
    with empty_log(kind) as log:
        log.writer().append(one_run())
        whole = read_all(log.reader())
        for chunk in whole:
            others = {source: end for source, end in positions(whole).items() if source != chunk.source}
            for offset in sorted(set(chunk.offsets)):
                index = list(chunk.offsets).index(offset)
                again = read_all(log.reader(), {**others, chunk.source: offset})
                assert [payload for part in again for payload in part.payloads] == chunk.payloads[index:]


@every_log
def test_only_what_is_new_is_read_after_stored_positions(kind: str) -> None:
    """Positions taken between two appends part the first append's records from the second's."""
    first, second = one_run("run-1"), one_run("run-2")
    with empty_log(kind) as log:
        writer = log.writer()
        writer.append(first)
        seen = positions(read_all(log.reader()))
        writer.append(second)
        assert by_stream(decoded(read_all(log.reader(), seen))) == by_stream(second)


@every_log
def test_a_stream_that_is_still_written_is_read_as_far_as_it_goes(kind: str) -> None:
    """A reader need not wait for the end of a stream, and meets each record once."""
    with empty_log(kind) as log:
        writer, reader = log.writer(), log.reader()
        seen: dict[str, int] = {}
        got: list[Recorded] = []
        for record in one_run():
            writer.append([record])
            chunks = read_all(reader, seen)
            seen.update(positions(chunks))
            got += decoded(chunks)
        assert got == one_run()


@every_log
def test_the_ends_are_where_a_reader_comes_to_rest(kind: str) -> None:
    """Whoever has read everything stands at ``ends()``, and nothing is left behind them."""
    with empty_log(kind) as log:
        log.writer().append(one_run()[:-3])  # both streams are still open
        reader = log.reader()
        chunks = read_all(reader)
        assert reader.ends() == positions(chunks)
        assert read_all(reader, reader.ends()) == []


@every_log
def test_an_empty_log_has_nothing_to_read(kind: str) -> None:
    """Before the first append there is no chunk, and no end beyond zero."""
    with empty_log(kind) as log:
        reader = log.reader()
        assert read_all(reader) == []
        assert not any(reader.ends().values())


@every_log
def test_the_identity_stays_and_tells_logs_apart(kind: str) -> None:
    """Every opening of a log sees the same identity; it does not change with what is written."""
    with empty_log(kind) as log:
        log.writer()
        before = log.reader().identity()
        log.writer().append(one_run())
        assert log.reader().identity() == before != ""


@every_log
@pytest.mark.parametrize("end", ENDS)
def test_appending_the_same_again_adds_nothing_but_duplicates(kind: str, end: End) -> None:
    """A repeated append is safe: by stream and sequence the log holds what it held."""
    run = Scene().play(end, flatten(((),)), 2)
    with empty_log(kind) as log:
        writer = log.writer()
        writer.append(run)
        writer.append(run)
        chunks = read_all(log.reader())
        assert not any(chunk.rejects for chunk in chunks)
        for records in by_stream(decoded(chunks)).values():
            unique = {record.sequence: record for record in records}
            assert len(records) == 2 * len(unique)
            assert all(unique[record.sequence] == record for record in records)


@every_log
def test_an_event_of_an_unknown_type_is_kept_whole(kind: str) -> None:
    """What a newer release wrote passes through an older one unchanged."""
    news = UnknownEvent(type="trt.build.dreamt.v7", data={"deep": [1, 2.5, None, {"ß": "\n"}]})
    record = dataclasses.replace(one_run()[0], event=news)
    with empty_log(kind) as log:
        log.writer().append([record])
        assert decoded(read_all(log.reader())) == [record]


@every_log
def test_names_of_any_kind_have_their_place(kind: str) -> None:
    """No route or id can leave the log, hide in it or meet another."""
    header = one_run()[0].stream
    subjects = ["..", ".", "a/b", "a%2Fb", "../../x", "ß ☃", "a\nb", "-", "A.lock"]
    streams = [
        dataclasses.replace(header, role="route", run_id=None, route=subject, stream_id=stream_id)
        for subject in subjects
        for stream_id in (f"{subject}", f"{subject}.0001")
    ]
    records = [dataclasses.replace(one_run()[0], stream=stream) for stream in streams]
    with empty_log(kind) as log:
        writer = log.writer()
        for record in records:
            writer.append([record])
        got = decoded(read_all(log.reader()))
        assert sorted(record.stream.subject for record in got) == sorted(subjects * 2)
        assert by_stream(got) == by_stream(records)
