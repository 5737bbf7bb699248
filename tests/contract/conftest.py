"""The broker for the one kind of log that needs one."""

import pytest

from deploy.services import Services
from tests.contract import logs


@pytest.fixture(autouse=True)
def _broker(request: pytest.FixtureRequest) -> None:
    """Start Kafka for a test that needs it."""
    if request.node.get_closest_marker("service"):
        services: Services = request.getfixturevalue("services")
        logs.use_broker(services.start("kafka"))
