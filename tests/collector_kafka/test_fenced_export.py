"""The spans of a run of another host that fell silent: exported by the collector that fenced it first, once."""

from pathlib import Path

import pytest

from build_events import ids
from build_events.clock import NS_PER_S
from build_events.events import ExportFinished
from build_events.telemetry import names
from deploy.services import Services
from tests.collector_kafka.members import Site, end
from tests.collector_kafka.test_fencing import LEASE_S, main_stream
from tests.collector_kafka.topics import Topic
from tests.telemetry.endpoints import http_endpoint
from tests.waiting import until

pytestmark = [pytest.mark.service, pytest.mark.timeout(300)]
COUNT = f"SELECT data->>'exported' AS exported FROM events WHERE type = '{ExportFinished.type}'"


def test_of_two_collectors_one_exports_a_fenced_run(
    kafka: Services, topic: Topic, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both see the silence at the same moment; the order of the log decides whose the run is."""
    assert kafka
    sites = [Site(tmp_path / name, topic) for name in ("one", "two")]
    silent = main_stream("silent")[:3]
    topic.send(silent)
    with http_endpoint() as endpoint:
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", f"{endpoint.url}/v1/traces")
        processes = [site.start() for site in sites]
        try:
            until(lambda: any("run silent gave no sign of life" in site.said() for site in sites))
            until(lambda: bool(endpoint.spans))
            until(lambda: all(len(site.command("query", COUNT, "--format", "csv").split()) == 2 for site in sites))
        finally:
            for process in processes:
                end(process)
    monkeypatch.delenv("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT")
    counts = {site.command("query", COUNT, "--format", "csv").split()[1] for site in sites}
    assert counts == {str(len(endpoint.spans))}
    assert len({span.span_id for span in endpoint.spans}) == len(endpoint.spans)
    (root,) = (span for span in endpoint.spans if span.span_id.hex() == ids.span_id("silent", ids.ROOT_ORDINAL))
    outcome = {item.key: item.value.string_value for item in root.attributes}[names.BUILD_OUTCOME]
    assert outcome == "lost"
    assert root.end_time_unix_nano - root.start_time_unix_nano < LEASE_S * NS_PER_S
