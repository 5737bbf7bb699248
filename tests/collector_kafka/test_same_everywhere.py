"""The same histories give the same tables, whatever log carried them and however it was cut."""

import json
import random
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from build_events.local_log import LocalLog
from build_events.log import Chunk, Positions, Reject
from collector.collect import collect_once, replay
from collector.kafka.reader import KafkaReader
from tests.build_events.scenes import ENDS, Scene, flatten
from tests.collector_kafka.load import history
from tests.collector_kafka.members import Site, end, undisturbed
from tests.collector_kafka.tables import tables_of, views
from tests.collector_kafka.topics import Topic
from tests.waiting import until

pytestmark = [pytest.mark.service, pytest.mark.timeout(600)]


def test_the_local_log_and_kafka_give_the_same_tables(topic: Topic, tmp_path: Path) -> None:
    """Every view and fold table, row by row; Kafka delivers in parts, out of order and some of it twice."""
    histories = [history(number) for number in range(3 * len(ENDS))]
    log = LocalLog.create(tmp_path / "log")
    for records in histories:
        log.append(records)
    log.close()
    replay(log, tmp_path / "local.duckdb", views())
    chance = random.Random(7)
    parts = [records[first : first + 29] for records in histories for first in range(0, len(records), 25)]
    chance.shuffle(parts)
    topic.send_parts(parts)
    assert undisturbed(topic, tmp_path) == tables_of(tmp_path / "local.duckdb")


def test_members_of_a_group_store_what_one_collector_stores(site: Site, tmp_path: Path) -> None:
    """With and without a collector that runs: queries see all partitions as one store."""
    for number in range(len(ENDS)):
        site.topic.send(history(number))
    site.topic.send_raw([(key, b"{bad") for key in (b"a", b"b", b"c", b"d")])
    expected = undisturbed(site.topic, tmp_path)
    process = site.start("--group", "g")
    until(lambda: len(list(site.home.glob("partitions/*/snapshot.duckdb"))) == 3)  # partitions
    assert site.union() == expected
    asked = site.command("query", "SELECT count(*) AS n FROM events", "--format", "json")
    assert json.loads(asked) == [{"n": len(expected["events"])}]
    end(process)
    late = Scene(run_id="late").play("completed", flatten(((),)), 2)
    site.topic.send(late)
    asked = site.command("query", "SELECT count(*) AS n FROM events", "--format", "json")
    assert json.loads(asked) == [{"n": len(expected["events"]) + len(late)}]
    site.command("collect", code=2)  # a second store beside those of the partitions would be read by nobody


def test_a_member_that_met_a_gap_says_so_at_its_end(site: Site) -> None:
    """Exit 1, as without a group; what it could read is stored."""
    run = history(3)
    site.topic.send(run)
    with closing(KafkaReader(site.topic.client, site.topic.name)) as reader:
        (number,) = [int(source.rpartition("/")[2]) for source, end in reader.ends().items() if end]
    site.topic.forget({number: 1})
    process = site.start("--group", "g")
    until(lambda: "records 0 to 0 are gone" in site.said())
    until(lambda: site.status()["lag"] == 0)
    process.terminate()
    assert process.wait(timeout=60) == 1
    assert site.status()["dead_letters"] == 1


def test_the_status_says_how_far_the_store_is(site: Site) -> None:
    """Lag by partition, rate, dead letters and the collector that runs; looking takes nothing in."""
    run = history(3)
    site.topic.send(run)
    site.topic.send_raw([(b"x", b"{bad")])
    before = site.status()
    assert (before["events"], before["dead_letters"], before["collectors"]) == (0, 0, [])
    assert before["lag"] == sum(source["end"] for source in before["sources"]) > 0
    process = site.start()
    until(lambda: bool(site.status()["collectors"]))
    until(lambda: site.status()["lag"] == 0)
    status = site.status()
    assert (status["events"], status["dead_letters"], status["unit"]) == (len(run), 1, "records")
    assert [item["pid"] for item in status["collectors"]] == [process.pid]
    assert status["events_per_s"] is not None
    assert all(source["position"] == source["end"] for source in status["sources"])
    end(process)
    assert site.status()["collectors"] == []
    assert "none runs" in site.command("collect", "--status")


class Blind:
    """A reader of an older release, which cannot read one record of each partition."""

    def __init__(self, reader: KafkaReader, offset: int) -> None:
        self._reader = reader
        self._offset = offset

    def identity(self) -> str:
        """Return the log's identity."""
        return self._reader.identity()

    def ends(self) -> dict[str, int]:
        """Return the log's ends."""
        return self._reader.ends()

    def read(self, after: Positions, *, max_bytes: int) -> Iterator[Chunk]:
        """Yield the log with rejects in the place of what the record holds."""
        for chunk in self._reader.read(after, max_bytes=max_bytes):
            pairs = list(zip(chunk.payloads, chunk.offsets, strict=True))
            seen = [pair for pair in pairs if pair[1] != self._offset]
            rejects = [
                Reject(offset, payload, "unknown_version", run_id="run-1")
                for payload, offset in pairs
                if offset == self._offset
            ]
            payloads, offsets = [payload for payload, _ in seen], [offset for _, offset in seen]
            yield Chunk(chunk.source, payloads, offsets, chunk.next_offset, [*chunk.rejects, *rejects])


def test_dead_letters_are_listed_and_tried_again(site: Site, tmp_path: Path, runtime_dir: Path) -> None:
    """What a release can read now is stored; what it cannot stays, with its place, bytes and reason."""
    run = Scene(run_id="run-1").play("completed", flatten(((),)), 2)
    observed = sum(record.stream.role == "observer" for record in run)
    site.topic.send(run)
    with closing(KafkaReader(site.topic.client, site.topic.name)) as reader:
        collect_once(site.home, Blind(reader, 1), views(), runtime_dir=runtime_dir)
    site.topic.send_raw([(b"run-1", b"{bad")])
    site.command("collect")
    listed = json.loads(site.command("deadletters", "list", "--payload", "--format", "json"))
    assert len(listed) == observed + 1
    last = listed[-1]
    assert (last["offset"], last["reason"], bytes.fromhex(last["payload"])) == (2, "not_json", b"{bad")
    assert last["source"].startswith(f"{site.topic.name}/")
    assert json.loads(site.command("query", "SELECT complete FROM runs", "--format", "json")) == [{"complete": False}]
    said = site.command("deadletters", "retry")
    assert said == f"{observed + 1} dead letters tried, {observed} healed, {observed} events stored\n"
    assert json.loads(site.command("query", "SELECT complete FROM runs", "--format", "json")) == [{"complete": True}]
    assert site.tables() == undisturbed(site.topic, tmp_path)
    assert site.command("deadletters", "retry") == "1 dead letters tried, 0 healed, 0 events stored\n"
