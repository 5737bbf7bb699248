"""The OTel Collector killed while spans are exported: nothing that it had accepted is missing behind it.

Accepted is what an OTLP client got a success for. At least once: a kill sends again what was under way.
Jaeger stores on disk here and keeps one of two equal spans; the topic shows each time that a span came.
"""

import random
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from deploy.services import Services
from tests.seeds import seeds
from tests.services.answers import eventually
from tests.telemetry.backends import in_jaeger, in_kafka
from tests.telemetry.conftest import TOPIC
from tests.telemetry.sending import Writer, accepted, exporter, span_ids, trace_id

pytestmark = [pytest.mark.service, pytest.mark.fault, pytest.mark.timeout(1800)]
WRITERS = 3
SPANS = {"BUILD r": {"trt.version": "1"}, "first": {}, "second": {}}
ATTEMPT_S = 0.5  # of one export: under the SDK's first pause, so that exports meet the start from its first moment
ALL_S = 60.0  # Jaeger opens its files, the OTel Collector looks for it every five seconds
NEW = 5  # exports accepted anew: the line works again


class Exports:
    """What threads export without a pause, and what of it was accepted."""

    def __init__(self, endpoint: str) -> None:
        self._endpoint = endpoint
        self._stop = threading.Event()
        self._threads = [threading.Thread(target=self._run, args=(number,)) for number in range(WRITERS)]
        self.accepted: dict[str, set[str]] = {}  # span ids by trace id; each thread adds keys of its own
        self.refused = 0

    def _run(self, number: int) -> None:
        writer = Writer("killed", f"process-{number}")
        while not self._stop.is_set():
            with exporter(self._endpoint, timeout_s=ATTEMPT_S) as to:  # fresh: an SDK exporter that failed backs off
                spans = writer.trace(SPANS)
                if accepted(to, spans):
                    self.accepted[trace_id(spans)] = span_ids(spans)
                else:
                    self.refused += 1
            self._stop.wait(0.01)

    @contextmanager
    def running(self) -> Iterator[None]:
        """Export during a ``with`` block."""
        for thread in self._threads:
            thread.start()
        try:
            yield
        finally:
            self._stop.set()
            for thread in self._threads:
                thread.join()

    def await_more(self) -> None:
        """Return when some more exports have been accepted."""
        before = len(self.accepted)
        assert eventually(lambda: len(self.accepted) - before, lambda more: more >= NEW) >= NEW


@pytest.fixture
def line(services: Services, span_topic: str) -> Services:
    """OTel Collector, Jaeger with its storage on disk, and Kafka with the topic of spans."""
    assert span_topic == services.address("kafka")
    services.start("jaeger")
    services.start("otelcol")
    return services


@pytest.mark.parametrize("seed", seeds())
def test_what_was_accepted_is_in_jaeger_and_kafka_after_kills(line: Services, seed: int) -> None:
    """Killed at random moments under load, with Jaeger there, away, and coming back; Jaeger is killed, too."""
    chance, exports = random.Random(seed), Exports(line.address("otelcol"))

    def end_and_start(end: Callable[[str], None]) -> None:
        exports.await_more()
        threading.Event().wait(chance.uniform(0, 0.3))
        end("otelcol")
        line.start("otelcol")

    with exports.running():
        end_and_start(line.kill)
        exports.await_more()
        line.kill("jaeger")
        end_and_start(line.kill)  # what was accepted waits on disk
        end_and_start(line.stop)  # and is not given up by an orderly end
        exports.await_more()
        line.start("jaeger")
        end_and_start(line.kill)  # while the queue empties
        exports.await_more()
    traces, wanted = list(exports.accepted), set[str]().union(*exports.accepted.values())
    jaeger = in_jaeger(line.address("jaeger"), traces, wanted, ALL_S)
    kafka = in_kafka(line.address("kafka"), TOPIC, traces, wanted, ALL_S)
    again = kafka.total() - len(kafka)
    print(f"{len(wanted)} spans accepted, {exports.refused} exports not; {again} again in Kafka")  # noqa: T201 # figures
    assert wanted - jaeger.keys() == set()
    assert wanted - kafka.keys() == set()
    assert {span for span, times in jaeger.items() if times > 1} == set()
