"""kcat, a Kafka client that knows nothing of us."""

import shutil

import pytest


def kcat() -> str:
    """Return its path; where it is missing the test fails, and says what to install."""
    found = shutil.which("kcat")
    if found is None:
        pytest.fail("kcat is not on PATH: install it (Debian and Ubuntu: apt-get install kcat)")
    return found
