"""Runs written to a topic while collectors are disturbed: in parts, some of it twice, some of it bad."""

import random
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from build_events.envelope import Recorded
from tests.build_events.scenes import ENDS, Scene, flatten
from tests.collector_kafka.topics import Topic
from tests.seeds import BASE


def seeded() -> random.Random:
    """Return chance whose seed is the session's, which is printed."""
    print(f"ENGINETRAIL_SEED={BASE}")  # noqa: T201 # shown with a failure, to have it again
    return random.Random(BASE)


def history(number: int) -> list[Recorded]:
    """Return one run of some dozens to hundreds of events."""
    tree = tuple(((),) * (number % 5) for _ in range(5 + number % 23))
    operations = flatten(tree)
    return Scene(run_id=f"run-{number:04d}").play(ENDS[number % len(ENDS)], operations, len(operations) // 2)


class Load:
    """Writes runs until told to stop; then everything that was sent is acknowledged."""

    def __init__(self, topic: Topic, chance: random.Random) -> None:
        self._topic = topic
        self._chance = random.Random(chance.random())
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="load")
        self.events = 0

    @contextmanager
    def running(self) -> Iterator[None]:
        """Write while inside."""
        self._thread.start()
        try:
            yield
        finally:
            self._stopping.set()
            self._thread.join()

    def _run(self) -> None:
        number = 0
        while not self._stopping.is_set():
            records: list[Recorded] = []
            for _ in range(self._chance.randint(1, 6)):
                records += history(number)
                number += 1
            cut = self._chance.randint(0, len(records))
            self._topic.send(records[:cut])
            self._topic.send(records[max(0, cut - 40) :])  # a spool that was drained again
            self._topic.send_raw([(str(number).encode(), self._chance.choice([b"{bad", None, b"[]"]))])
            self.events += len(records)
            self._stopping.wait(self._chance.uniform(0.0, 0.2))
