"""What every test shares."""

from hypothesis import settings

from tests.seeds import BASE, REPEAT
from tests.service_fixtures import environ, kafka, services
from tests.service_guard import pytest_collection_finish, pytest_runtest_makereport

__all__ = ["environ", "kafka", "pytest_collection_finish", "pytest_runtest_makereport", "services"]

# A disk's fsync and a busy machine would fail a deadline, not the code under test.
settings.register_profile("enginetrail", deadline=None)
settings.load_profile("enginetrail")


def pytest_report_header() -> str:
    """Say how the fault tests of this session are repeated."""
    return f"fault tests: ENGINETRAIL_SEED={BASE} ENGINETRAIL_REPEAT={REPEAT}"
