"""The configuration of Prometheus, read by Prometheus itself."""

import json
import subprocess
import time
import urllib.request
from pathlib import Path
from urllib.error import URLError

import pytest

from deploy.services.cache import BuildCache, default_folder
from deploy.services.ports import HOST, choose
from deploy.services.prometheus import prometheus_program
from deploy.services.tools import Tools
from tests.deploy.files import DEPLOY, compose

pytestmark = [pytest.mark.service, pytest.mark.timeout(1800)]  # a cold machine compiles for minutes first
START_S = 60.0


def test_prometheus_scrapes_what_the_compose_file_runs(environ: dict[str, str], tmp_path: Path) -> None:
    """It starts with the file, and its targets are services of the compose file."""
    program = prometheus_program(Tools(environ, print), BuildCache(default_folder(environ), print))
    address = f"{HOST}:{choose(['web'])['web']}"
    options = (f"--config.file={DEPLOY / 'prometheus.yml'}", f"--storage.tsdb.path={tmp_path / 'data'}")
    with subprocess.Popen([program, *options, f"--web.listen-address={address}"], stderr=subprocess.PIPE) as process:
        try:
            found = _targets(f"http://{address}/api/v1/targets", process)
        finally:
            process.terminate()
            process.communicate(timeout=30)
    hosts = {target.partition(":")[0] for target in found} - {"localhost"}
    assert hosts == {"otel-collector", "jaeger"}
    assert hosts <= compose()["services"].keys()


def _targets(url: str, process: "subprocess.Popen[bytes]") -> set[str]:
    deadline = time.monotonic() + START_S
    while time.monotonic() < deadline:
        assert process.poll() is None, process.communicate()[1].decode()
        try:
            with urllib.request.urlopen(url, timeout=5) as answer:  # noqa: S310 # loopback
                active = json.load(answer)["data"]["activeTargets"]
        except URLError:
            active = []
        if active:
            return {target["discoveredLabels"]["__address__"] for target in active}
        time.sleep(0.05)
    pytest.fail(f"{url} named no targets within {START_S:g} s")
