"""Programs of this machine that tests use."""

import shutil

import pytest


def program(name: str) -> str:
    """Return the path of a program; where it is missing the test fails, and says what to install."""
    found = shutil.which(name)
    if found is None:
        pytest.fail(f"`{name}` is not on PATH: install it (Debian and Ubuntu: apt-get install {name})")
    return found
