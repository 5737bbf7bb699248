"""One set of real services for all tests: each started by the first test that needs it."""

import os
from collections.abc import Iterator

import pytest

from deploy.services import Services
from deploy.services.services import SERVICES


@pytest.fixture(scope="session")
def environ() -> dict[str, str]:
    """The environment without addresses of services elsewhere, which the tests must not kill."""
    addresses = {service.variable for service in SERVICES.values()}
    return {key: value for key, value in os.environ.items() if key not in addresses}


@pytest.fixture(scope="session")
def services(tmp_path_factory: pytest.TempPathFactory, environ: dict[str, str]) -> Iterator[Services]:
    """Services with data and ports of this run of the tests, gone at its end."""
    mine = Services(tmp_path_factory.mktemp("services") / "home", environ, print)
    yield mine
    mine.purge()


@pytest.fixture
def kafka(services: Services) -> Services:
    """The services, with Kafka answering."""
    services.start("kafka")
    return services
