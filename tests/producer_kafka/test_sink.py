"""The producer against a real broker: acknowledged, in one partition per key, refused where it must be."""

import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from kafka import KafkaAdminClient, KafkaProducer
from kafka.admin import ConfigResource, ConfigResourceType

from build_events import codec, kafka_record
from build_events.errors import LogUnavailableError
from build_events.kafka_settings import KafkaSettings, kafka_settings
from build_events.local_log import LocalLog
from builder_agent.kafka.log import KafkaLog
from builder_agent.kafka.sink import KafkaSink, partition_of
from builder_agent.spool.dead_letters import dead_letters
from builder_agent.spool.drainer import Drainer, drain_all
from builder_agent.spool.sink import SinkUnavailableError
from collector.kafka.reader import KafkaReader
from deploy.services import Services
from tests.producer_kafka.conftest import NOWHERE, unmade_topic
from tests.producer_kafka.wire import assert_whole_and_in_order, read_all, read_topic, streams
from tests.spool.test_drain import by_stream, never, one_run

pytestmark = [pytest.mark.service, pytest.mark.timeout(600)]


def test_a_spool_arrives_whole_in_order_and_once(tmp_path: Path, settings: KafkaSettings) -> None:
    """Each subject is in one partition, each event in it once; the spool is empty afterwards."""
    runs = [one_run(f"run-{number}") for number in range(20)]
    log = LocalLog.create(tmp_path)
    for run in runs:
        log.append(run)
    sink = KafkaSink(settings)
    report = drain_all(tmp_path, sink, give_up=never)
    sink.close()
    assert (report.events, report.refused, report.waiting) == (sum(map(len, runs)), 0, 0)
    records = read_topic(settings)
    assert assert_whole_and_in_order(streams(records)) == 0
    assert {record.partition for record in records} == {0, 1}
    got = [event for record in records for event in record.events]
    assert by_stream(got) == by_stream([record for run in runs for record in run])


def test_a_topic_that_is_not_there_is_said_with_what_to_do(tmp_path: Path, kafka: Services) -> None:
    """It is not made on the way: that would give it the broker's settings."""
    LocalLog.create(tmp_path).append(one_run())
    sink = KafkaSink(unmade_topic(kafka))
    report = drain_all(tmp_path, sink, give_up=never)
    sink.close()
    assert report.waiting == len(one_run())
    assert "enginetrail topics ensure" in report.reason


@pytest.mark.quiet
def test_a_broker_that_is_not_there_costs_little_time_and_is_said() -> None:
    """Each attempt is bounded by a second, and so is the end."""
    sink = KafkaSink(kafka_settings(NOWHERE, {}))
    for _ in range(2):
        began = time.monotonic()
        with pytest.raises(SinkUnavailableError, match="no broker answers there"):
            sink.identity()
        assert time.monotonic() - began < 3
    began = time.monotonic()
    sink.close()
    assert time.monotonic() - began < 3


def test_a_record_longer_than_the_topic_allows_is_kept_aside(tmp_path: Path, settings: KafkaSettings) -> None:
    """The batch is refused, then each event alone; those that fit arrive, the others become dead letters."""
    run = one_run()
    sizes = [sum(map(len, (sent.value, sent.key))) for sent in map(_alone, run)]
    limit = sorted(sizes)[-2] + 900  # for headers and framing
    _set(settings, "max.message.bytes", str(limit))
    log = LocalLog.create(tmp_path)
    for number in range(3):
        log.append(one_run(f"run-{number}"))
    sink = KafkaSink(settings)
    report = drain_all(tmp_path, sink, give_up=never)
    sink.close()
    letters = dead_letters(tmp_path)
    assert report.refused == len(letters)
    assert {letter["reason"].split(":")[0] for letter in letters} <= {"MessageSizeTooLargeError"}
    assert report.events + report.refused == 3 * len(run)
    assert report.waiting == 0
    arrived = {event.event_id for record in read_topic(settings) for event in record.events}
    assert len(arrived) == report.events


def test_a_record_of_a_form_that_the_topic_refuses_is_kept_aside(tmp_path: Path, settings: KafkaSettings) -> None:
    """A timestamp that the topic does not allow is refused for every event; nothing blocks the spool."""
    _set(settings, "message.timestamp.after.max.ms", "1")
    _set(settings, "message.timestamp.before.max.ms", "1")
    LocalLog.create(tmp_path).append(one_run()[:2])
    sink = KafkaSink(settings)
    report = drain_all(tmp_path, sink, give_up=never)
    sink.close()
    assert (report.events, report.refused) == (0, 2)
    assert {letter["reason"].split(":")[0] for letter in dead_letters(tmp_path)} == {"InvalidTimestampError"}


def test_a_direct_append_is_stored_when_it_returns(settings: KafkaSettings) -> None:
    """The log without a spool between: what the reader sees is what was appended."""
    log = KafkaLog(settings)
    run = one_run()
    log.append(run)
    reader = KafkaReader(settings.client, settings.topic)
    try:
        assert read_all(reader) == run
    finally:
        reader.close()
        log.close()


def test_a_direct_append_without_a_broker_fails_within_its_bound() -> None:
    """Nothing may be assumed stored, and the error says where it was tried."""
    log = KafkaLog(kafka_settings(NOWHERE, {}), timeout_s=1)
    with pytest.raises(LogUnavailableError, match=r"127\.0\.0\.1:9"):
        log.append(one_run())
    log.close()


def test_a_key_goes_where_every_other_client_puts_it(settings: KafkaSettings) -> None:
    """Producers that choose the partition by key alone agree with ours."""
    with KafkaProducer(**settings.client) as producer:
        keys = [f"run-{number}".encode() for number in range(50)]
        sent = [producer.send(settings.topic, key=key, value=b"{}") for key in keys]
        chosen = [future.get(timeout=20).partition for future in sent]
    assert chosen == [partition_of(key, 2) for key in keys]
    assert set(chosen) == {0, 1}


def test_a_broker_that_goes_in_the_middle_loses_nothing_and_repeats_nothing(
    tmp_path: Path, kafka: Services, settings: KafkaSettings
) -> None:
    """One producer that lives through the outage sends every event exactly once."""
    log = LocalLog.create(tmp_path)
    drainer = Drainer(tmp_path, KafkaSink(settings))
    drainer.start()
    runs = [one_run(f"run-{number}") for number in range(30)]
    for number, run in enumerate(runs):
        if number == 10:
            kafka.stop("kafka")
        if number == 20:
            kafka.start("kafka")
        log.append(run)
        time.sleep(0.05)  # the pace of a writer, not a wait
    report = drainer.finish(60)
    assert (report.refused, report.waiting, report.reason) == (0, 0, "")
    sequences = streams(read_topic(settings))
    assert assert_whole_and_in_order(sequences) == 0
    assert {stream: len(found) for stream, found in sequences.items()} == {
        run[0].stream.stream_id: len(run) for run in runs
    }


@pytest.mark.quiet
def test_a_process_leaves_at_once_whatever_waits(
    settings: KafkaSettings, make_topic: Callable[[], KafkaSettings]
) -> None:
    """Neither the client's exit handler nor its destructor holds the exit or says a word."""
    for url in (NOWHERE, settings.url, make_topic().url):
        code = f"""
import sys, time
from build_events.kafka_settings import kafka_settings
from builder_agent.kafka.sink import KafkaSink
from builder_agent.spool.sink import SinkUnavailableError
sink = KafkaSink(kafka_settings({url!r}, {{}}))
try:
    sink.identity()
except SinkUnavailableError:
    pass
print(time.monotonic())
"""
        process = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False)
        assert process.returncode == 0
        assert time.monotonic() - float(process.stdout) < 2
        assert process.stderr == ""


def _alone(record: object) -> kafka_record.KafkaRecord:
    return kafka_record.encode([codec.encode(record)])  # type: ignore[arg-type] # a record of one_run


def _set(settings: KafkaSettings, name: str, value: str) -> None:
    with KafkaAdminClient(bootstrap_servers=list(settings.servers)) as admin:
        admin.alter_configs([ConfigResource(ConfigResourceType.TOPIC, settings.topic, configs={name: value})])
