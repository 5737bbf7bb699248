"""The broker for the one kind of log that needs one."""

import pytest

from deploy.services import Services
from tests.contract import logs


@pytest.fixture(scope="session", autouse=True)
def _broker(request: pytest.FixtureRequest) -> None:
    """Start Kafka if one of the chosen tests needs it, before the first of them."""
    if any(item.get_closest_marker("service") and "contract" in item.path.parts for item in request.session.items):
        services: Services = request.getfixturevalue("services")
        logs.use_broker(services.start("kafka"))
