"""What every test shares."""

import signal
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings

from tests.seeds import BASE, REPEAT
from tests.service_fixtures import environ, kafka, services
from tests.service_guard import pytest_runtest_makereport, pytest_sessionfinish

__all__ = ["environ", "kafka", "pytest_runtest_makereport", "pytest_sessionfinish", "services"]

# A disk's fsync and a busy machine would fail a deadline, not the code under test.
settings.register_profile("enginetrail", deadline=None)
settings.load_profile("enginetrail")


# A shell's background and nohup ignore these, and what the tests start would inherit that.
signal.signal(signal.SIGINT, signal.default_int_handler)
signal.signal(signal.SIGHUP, signal.SIG_DFL)


def pytest_report_header() -> str:
    """Say how the fault tests of this session are repeated."""
    return f"fault tests: ENGINETRAIL_SEED={BASE} ENGINETRAIL_REPEAT={REPEAT}"


@pytest.fixture
def runtime_dir() -> Iterator[Path]:
    """Where sockets lie; a socket's path must stay short, and a worker's ``tmp_path`` is not."""
    with tempfile.TemporaryDirectory(prefix="et-") as path:
        yield Path(path)
