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


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_sessionfinish(session: pytest.Session) -> Generator[None]:
    """Fail a run in CI (``CI=true``) in which no test of a service ran, whether here or in a worker of pytest-xdist."""
    yield
    in_worker = hasattr(session.config, "workerinput")  # which sees its share alone
    if os.environ.get("CI") == "true" and not in_worker and not _service_tests_ran(session.config):
        text = f"CI ran no test marked `{_MARKER}`: run the whole suite, without deselecting them"
        pytest.exit(text, returncode=pytest.ExitCode.USAGE_ERROR)


def _service_tests_ran(config: pytest.Config) -> bool:
    stats = config.pluginmanager.getplugin("terminalreporter").stats
    return any(_MARKER in report.keywords for category in ("passed", "failed") for report in stats.get(category, []))
