"""Tests against real services run or fail: a skipped one is a failure, and CI without any is an error."""

import os
from collections.abc import Generator

import pytest

_MARKER = "service"


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Turn the skip of a test that needs a service into its failure."""
    report = yield
    if report.skipped and not hasattr(report, "wasxfail") and item.get_closest_marker(_MARKER):
        report.outcome = "failed"
        report.longrepr = f"{item.nodeid} was skipped: a test marked `{_MARKER}` starts what it needs, or fails"
    return report


def pytest_collection_finish(session: pytest.Session) -> None:
    """Refuse a run in CI (``CI=true``) that has no test of a service left to run."""
    if os.environ.get("CI") == "true" and not any(item.get_closest_marker(_MARKER) for item in session.items):
        raise pytest.UsageError(f"CI ran no test marked `{_MARKER}`: run the whole suite, without deselecting them")
