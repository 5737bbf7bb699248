"""Topics on the shared broker."""

from collections.abc import Callable
from typing import Any

import pytest

from deploy.services import Services
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
