"""What the reader makes of a real topic: events, dead letters, gaps, and topics that are no longer themselves."""

import subprocess
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest
from kafka import KafkaProducer

from build_events import codec, kafka_record
from build_events.envelope import Recorded
from build_events.errors import LogCorruptError, LogUnavailableError
from build_events.log import Chunk
from collector.collect import collect_once
from collector.errors import StoreIdentityError
from collector.kafka.reader import KafkaReader
from collector.steady import SteadyReader
from deploy.services import Services
from tests.build_events.scenes import Scene, flatten
from tests.collector_kafka.tables import views
from tests.collector_kafka.topics import Topic
from tests.programs import program

pytestmark = [pytest.mark.service, pytest.mark.timeout(600)]

PLENTY = 1 << 20  # bytes
MakeTopic = Callable[..., Topic]


def one_run(run_id: str = "run-1") -> list[Recorded]:
    """Return a run of two streams."""
    return Scene(run_id=run_id).play("cancelled", flatten((((), ()), ())), 9)


@pytest.fixture
def reader(topic: Topic) -> Iterator[KafkaReader]:
    """Return a reader of the topic."""
    with closing(KafkaReader(topic.client, topic.name)) as opened:
        yield opened


def decoded(chunks: list[Chunk]) -> list[Recorded]:
    """Return the events of chunks."""
    return [codec.decode(payload) for chunk in chunks for payload in chunk.payloads]


def reasons(chunks: list[Chunk]) -> list[str]:
    """Return why what is rejected is."""
    return [reject.reason for chunk in chunks for reject in chunk.rejects]


def test_a_batch_is_one_position(topic: Topic, reader: KafkaReader) -> None:
    """All events of a record share its offset, so no position can stand inside a batch."""
    topic.send(one_run())
    (chunk,) = reader.read({}, max_bytes=PLENTY)
    assert len(chunk.payloads) == len(one_run())
    assert set(chunk.offsets) == {0, 1}
    assert chunk.next_offset == 2
    (tail,) = reader.read({chunk.source: 1}, max_bytes=PLENTY)
    assert set(tail.offsets) == {1}


def test_a_bound_cuts_between_records(topic: Topic, reader: KafkaReader) -> None:
    """A chunk beyond its bound ends with a whole record."""
    topic.send(one_run())
    chunks = list(reader.read({}, max_bytes=1))
    assert [set(chunk.offsets) for chunk in chunks] == [{0}, {1}]
    assert decoded(chunks) == sorted(one_run(), key=lambda record: record.stream.role)


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (None, "tombstone"),
        (b"{broken", "not_json"),
        (b"7", "not_object"),
        (b"[1, 2]", "not_object"),
        (b'{"pad": "' + b"x" * kafka_record.MAX_EVENT_BYTES + b'"}', "oversize"),
    ],
)
def test_poison_is_rejected_with_its_place_and_bytes(
    topic: Topic, reader: KafkaReader, value: bytes | None, reason: str
) -> None:
    """What is no event never stops the reader, and is not lost either."""
    run = one_run()
    topic.send(run)
    topic.send_raw([(b"run-1", value)])
    topic.send(one_run())
    chunks = list(reader.read({}, max_bytes=PLENTY))
    assert len(decoded(chunks)) == 2 * len(run)
    rejects = [reject for chunk in chunks for reject in chunk.rejects]
    assert {reject.reason for reject in rejects} == {reason}
    assert {reject.offset for reject in rejects} == {2}
    if value is not None and reason != "not_object":
        assert [reject.payload for reject in rejects] == [value]


def test_events_that_break_the_contract_are_dead_letters_and_count(
    topic: Topic, reader: KafkaReader, tmp_path: Path, runtime_dir: Path
) -> None:
    """Wrong types and unknown versions are found by the contract check; the run is not complete then."""
    run = Scene().play("completed", flatten(((),)), 2)
    topic.send(run)
    good = codec.encode(run[0])
    wrong_type = good.replace(b'"pid":7', b'"pid":"seven"')
    other_version = good.replace(b'"contract":1', b'"contract":2')
    topic.send_raw([(b"run-1", wrong_type), (b"run-1", other_version)])
    stats = collect_once(tmp_path, reader, views(), runtime_dir=runtime_dir)
    assert (stats.events, stats.dead_letters) == (len(run), 2)
    rows = query(
        tmp_path, reader, runtime_dir, 'SELECT reason, "offset", run_id FROM base.dead_letters ORDER BY "offset"'
    )
    assert [(row[1], row[2]) for row in rows] == [(2, "run-1"), (3, "run-1")]
    assert "pid" in str(rows[0][0])
    assert "contract" in str(rows[1][0])
    assert query(tmp_path, reader, runtime_dir, "SELECT complete FROM runs") == [(False,)]


def test_a_record_written_by_hand_is_materialized(
    topic: Topic, reader: KafkaReader, tmp_path: Path, runtime_dir: Path
) -> None:
    """Kcat and one line of JSON are a producer; a broken line is a dead letter."""
    record = one_run()[0]
    for line in (codec.encode(record), b"{no event"):
        command = [program("kcat"), "-P", "-b", topic.address, "-t", topic.name, "-k", "run-1"]
        subprocess.run(command, input=line + b"\n", check=True, timeout=60)
    stats = collect_once(tmp_path, reader, views(), runtime_dir=runtime_dir)
    assert (stats.events, stats.dead_letters) == (1, 1)
    assert query(tmp_path, reader, runtime_dir, "SELECT run_id FROM runs") == [("run-1",)]
    assert query(tmp_path, reader, runtime_dir, "SELECT reason, payload FROM base.dead_letters") == [
        ("not_json", b"{no event")
    ]


def test_an_aborted_transaction_never_happened(topic: Topic, reader: KafkaReader) -> None:
    """Another producer's transaction is read once it is committed; the reader still comes to rest at the ends."""
    payload = codec.encode(one_run()[0])
    with KafkaProducer(**topic.client, transactional_id=topic.name) as producer:
        producer.init_transactions()
        for commit in (True, False):
            producer.begin_transaction()
            producer.send(topic.name, payload, key=b"run-1").get(timeout=30)
            (producer.commit_transaction if commit else producer.abort_transaction)()
    chunks = list(reader.read({}, max_bytes=PLENTY))
    assert [payload for chunk in chunks for payload in chunk.payloads] == [payload]
    positions = {chunk.source: chunk.next_offset for chunk in chunks}
    assert positions == reader.ends()
    assert list(reader.read(positions, max_bytes=PLENTY)) == []


def test_records_that_are_gone_are_a_recorded_gap_and_an_error(
    topic: Topic, reader: KafkaReader, tmp_path: Path, runtime_dir: Path
) -> None:
    """Nothing is reset in silence: the range is a dead letter, and the reader tells of it."""
    topic.send(one_run())
    (source,) = reader.ends()
    number = int(source.rpartition("/")[2])
    topic.forget({number: 1})
    stats = collect_once(tmp_path, reader, views(), runtime_dir=runtime_dir)
    assert stats.dead_letters == 1
    assert 0 < stats.events < len(one_run())
    assert query(tmp_path, reader, runtime_dir, 'SELECT "offset", reason FROM base.dead_letters') == [
        (0, "offset_out_of_range: records 0 to 0")
    ]
    assert [text for text in reader.gaps if "records 0 to 0 are gone" in text]
    assert collect_once(tmp_path, reader, views(), runtime_dir=runtime_dir).records == 0


def test_a_topic_made_anew_under_the_same_name_is_refused(
    topic: Topic, reader: KafkaReader, tmp_path: Path, runtime_dir: Path
) -> None:
    """By a reader that is connected, by one that comes later, and by the store."""
    topic.send(one_run())
    collect_once(tmp_path, reader, views(), runtime_dir=runtime_dir)
    topic.delete()
    topic.make()
    topic.send([record for number in range(9) for record in one_run(f"run-{number}")])
    with pytest.raises(LogCorruptError, match="deleted and made anew"):
        list(reader.read({}, max_bytes=PLENTY))
    reader.close()
    with pytest.raises(LogCorruptError, match="deleted and made anew"):
        reader.identity()
    with closing(KafkaReader(topic.client, topic.name)) as later, pytest.raises(StoreIdentityError):
        collect_once(tmp_path, later, views(), runtime_dir=runtime_dir)


def test_a_topic_that_is_not_there_is_named(kafka: Services) -> None:
    """The error says what to do; nothing is created by asking."""
    reader = KafkaReader({"bootstrap_servers": [kafka.address("kafka")]}, "never-made")
    with pytest.raises(LogUnavailableError, match="enginetrail topics ensure"):
        reader.identity()


def test_a_broker_that_is_away_is_waited_for(kafka: Services, topic: Topic) -> None:
    """A following reader reads nothing meanwhile, says so once, and goes on after the outage without a gap."""
    said: list[str] = []
    quick = {**topic.client, "bootstrap_timeout_ms": 500}  # of each look meanwhile
    reader = KafkaReader(quick, topic.name, answer_s=1.0)
    log = SteadyReader(reader, said.append)
    topic.send(one_run("run-1"))
    before = list(log.read({}, max_bytes=PLENTY))
    positions = {chunk.source: chunk.next_offset for chunk in before}
    assert log.at_end
    kafka.stop("kafka")
    for _ in range(3):
        assert list(log.read(positions, max_bytes=PLENTY)) == []
        assert not log.at_end
    with pytest.raises(LogUnavailableError):
        reader.ends()
    kafka.start("kafka")
    topic.send(one_run("run-2"))
    after: list[Chunk] = []
    while not log.at_end:
        after = list(log.read(positions, max_bytes=PLENTY))
    assert {record.stream.run_id for record in decoded(after)} == {"run-2"}
    assert len(decoded(after)) == len(one_run())
    assert len(said) == 2
    reader.close()


def query(home: Path, log: KafkaReader, runtime_dir: Path, sql: str) -> list[tuple[object, ...]]:
    """Return the rows of a query on a home's store."""
    from collector.access import open_reader  # noqa: PLC0415 # beside its only use

    with open_reader(home, log, views(), runtime_dir=runtime_dir) as store:
        table = store.query(sql)
    return list(zip(*(column.to_pylist() for column in table.columns), strict=True))
