"""Topics on the shared broker."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from deploy.services import Services
from tests.collector_kafka.members import Site
from tests.collector_kafka.topics import Topic, new_topic


@pytest.fixture
def topic(kafka: Services) -> Topic:
    """Return an empty topic with three partitions."""
    return new_topic(kafka.address("kafka"))


@pytest.fixture
def make_topic(kafka: Services) -> Callable[..., Topic]:
    """Return a function that makes an empty topic."""

    def make(**options: Any) -> Topic:
        return new_topic(kafka.address("kafka"), **options)

    return make


@pytest.fixture
def site(topic: Topic, tmp_path: Path) -> Iterator[Site]:
    """Return a home that collects the topic; its collectors are gone at the end."""
    made = Site(tmp_path / "home", topic)
    yield made
    made.kill_all()
