"""What stands in the topic is read by tools that know nothing of us: kcat, and the CloudEvents SDK."""

import json
import subprocess
from datetime import UTC, datetime

import pytest
from cloudevents.core.bindings.kafka import KafkaMessage, from_kafka_event
from cloudevents.core.formats.json import JSONFormat
from cloudevents.core.v1.event import CloudEvent

from build_events import codec
from build_events.envelope import Recorded
from build_events.kafka_settings import KafkaSettings
from builder_agent.kafka.log import KafkaLog
from tests.producer_kafka.wire import Wire, read_topic
from tests.programs import program
from tests.spool.test_drain import one_run

pytestmark = [pytest.mark.service, pytest.mark.timeout(600)]


@pytest.fixture
def written(settings: KafkaSettings) -> list[Recorded]:
    """Write a run to the topic: its first event alone, the others as one batch."""
    run = one_run()
    log = KafkaLog(settings)
    log.append(run[:1])
    log.append(run[1:])
    log.close()
    return run


def read_by_kcat(settings: KafkaSettings) -> list[tuple[str, dict[str, str], bytes]]:
    """Return key, headers and value of every record, as kcat prints them."""
    command = [
        program("kcat"),
        "-b",
        settings.servers[0],
        "-t",
        settings.topic,
        "-C",
        "-e",
        "-q",
        "-f",
        "%k\x1f%h\x1f%s\x1e",
    ]
    output = subprocess.run(command, capture_output=True, timeout=60, check=True).stdout
    records = []
    for part in output.split(b"\x1e")[:-1]:
        key, headers, value = part.split(b"\x1f")
        pairs = [text.split("=", 1) for text in headers.decode().split(",")]
        records.append((key.decode(), dict(pairs), value))
    return records


def test_kcat_reads_both_forms(settings: KafkaSettings, written: list[Recorded]) -> None:
    """Keys, headers and values are plain text; a batch is a JSON array that names its stream."""
    single, batch = read_by_kcat(settings)
    assert (single[0], batch[0]) == ("run-1", "run-1")
    assert single[1]["content-type"] == "application/json"
    assert single[1]["ce_type"] == written[0].event.type
    assert json.loads(single[2])["route"]
    assert batch[1]["content-type"] == "application/cloudevents-batch+json"
    assert batch[1]["enginetrail-stream"] == written[0].stream.stream_id
    assert batch[1]["enginetrail-first-sequence"] == "1"
    assert batch[1]["enginetrail-last-sequence"] == str(len(written) - 1)
    assert [event["id"] for event in json.loads(batch[2])] == [record.event_id for record in written[1:]]
    assert single[1]["traceparent"].split("-")[1] == batch[1]["traceparent"].split("-")[1] == written[0].stream.trace_id


def test_the_sdk_reads_a_single_event_whole(settings: KafkaSettings, written: list[Recorded]) -> None:
    """Every attribute and the data of a record in binary mode."""
    single = read_topic(settings)[0]
    event = from_kafka_event(_message(single))
    assert isinstance(event, CloudEvent)
    _assert_same(event, written[0])


def test_the_sdk_reads_each_element_of_a_batch(settings: KafkaSettings, written: list[Recorded]) -> None:
    """Each element of the array is a CloudEvent in the JSON format."""
    batch = read_topic(settings)[1]
    elements = [JSONFormat().read(None, json.dumps(element)) for element in json.loads(batch.value)]
    assert len(elements) == len(written) - 1
    for event, record in zip(elements, written[1:], strict=True):
        assert isinstance(event, CloudEvent)
        _assert_same(event, record)


def _message(record: Wire) -> KafkaMessage:
    return KafkaMessage(headers=dict(record.headers), key=record.key, value=record.value)


def _assert_same(event: CloudEvent, record: Recorded) -> None:
    written = json.loads(codec.encode(record))
    assert event.get_data() == written.pop("data")
    assert event.get_time() == datetime.fromisoformat(written.pop("time")[:26]).replace(tzinfo=UTC)
    # The SDK takes a record's key as the attribute partitionkey.
    attributes = {name: value for name, value in event.get_attributes().items() if name not in {"time", "partitionkey"}}
    assert {name: str(value) for name, value in attributes.items()} == {
        name: str(value) for name, value in written.items()
    }
