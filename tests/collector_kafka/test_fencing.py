"""Silent runs of other hosts are fenced; live ones, own ones, and all during an outage of the broker, are not."""

import dataclasses
import threading
import time
from collections.abc import Iterator

import pytest

from build_events.clock import NS_PER_S
from build_events.envelope import Recorded
from build_events.events import HeartbeatRecorded, RunStarted
from build_events.local_log import LocalLog
from deploy.services import Services
from tests.build_events.scenes import Scene, flatten
from tests.collector_kafka.members import Site, end
from tests.collector_kafka.topics import Topic
from tests.waiting import until

pytestmark = [pytest.mark.service, pytest.mark.timeout(600)]

LEASE_S = 4


def main_stream(run_id: str) -> list[Recorded]:
    """Return the main stream of a completed run with a short lease."""
    history = Scene(run_id=run_id).play("completed", flatten(((),)), 2)
    main = [record for record in history if record.stream.role == "main"]
    started = main[0].event
    assert isinstance(started, RunStarted)
    short = started.model_copy(update={"lease_ns": LEASE_S * NS_PER_S})
    return [dataclasses.replace(main[0], event=short), *main[1:]]


class Heart:
    """A run on another host that is alive: it writes a heartbeat every half second."""

    def __init__(self, topic: Topic, run_id: str) -> None:
        self._topic = topic
        self._start = main_stream(run_id)[0]
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._beat, name="heart")
        self._thread.start()

    def stop(self) -> None:
        """Stop beating."""
        self._stopping.set()
        self._thread.join()

    def _beat(self) -> None:
        with self._topic.producer() as producer:
            sequence = 0
            while not self._stopping.wait(0.5):
                beat = HeartbeatRecorded(cancel_state="none")
                event = self._start.event if sequence == 0 else beat
                producer.post([dataclasses.replace(self._start, sequence=sequence, event=event)])
                sequence += 1


@pytest.fixture
def heart(topic: Topic) -> Iterator[Heart]:
    """Return a live run, ``live``."""
    beating = Heart(topic, "live")
    yield beating
    beating.stop()


def test_only_a_silent_run_of_another_host_is_fenced(kafka: Services, site: Site, topic: Topic, heart: Heart) -> None:
    """Not a live one, not one of the collector's own home, and none for an outage longer than the lease."""
    own = main_stream("own")[:3]
    spool = LocalLog.create(site.home / "spool")
    spool.append(own)  # its lock is held by this process
    topic.send([*own, *main_stream("silent")[:3]])
    process = site.start()
    until(lambda: "run silent gave no sign of life" in site.said())
    kafka.stop("kafka")
    time.sleep(LEASE_S * 2)
    kafka.start("kafka")
    until(lambda: "the event log answers again" in site.said())
    time.sleep(LEASE_S / 2)  # less than a lease, after an outage of two
    topic.send(main_stream("silent"))  # it was only slow; now it says all that it has to say
    until(lambda: site.status()["lag"] == 0)
    until(lambda: "completed" in site.command("query", "SELECT late_outcome FROM runs WHERE run_id = 'silent'"))
    heart.stop()
    end(process)
    spool.close()
    assert "run live" not in site.said()
    assert "run own" not in site.said()
    assert site.command(
        "query", "SELECT run_id, outcome, late_outcome, artifact_digest FROM runs ORDER BY ALL", "--format", "csv"
    ).splitlines() == ["run_id,outcome,late_outcome,artifact_digest", "live,,,", "own,lost,,", "silent,lost,completed,"]
