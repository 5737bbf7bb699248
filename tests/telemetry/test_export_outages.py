"""Real builds beside endpoints that fail: not slower, not much longer, and nothing lost that could be kept."""

import threading
import time
from dataclasses import replace
from pathlib import Path

import pytest

from build_events.clock import NS_PER_S, Instant, boot_id, system_clock
from build_events.envelope import Recorded, StreamHeader
from build_events.events import ExportFinished, ProcessExited
from build_events.local_log import LocalLog, read_run
from build_events.stream import EventStream
from builder_agent.recovery import recover
from builder_agent.supervised.supervise import supervise
from builder_agent.telemetry.environment import telemetry_settings
from builder_agent.telemetry.lost_runs import export_lost
from builder_agent.telemetry.run_telemetry import RunTelemetry
from builder_agent.telemetry.settings import EXIT_S
from enginetrail.log_choice import SHORT_DRAIN_S
from tests.builder_agent.builds import of_type
from tests.builder_agent.supervised import Place
from tests.builder_agent.test_recovery import started
from tests.models import chain_model
from tests.producer_kafka.conftest import NOWHERE
from tests.services.answers import eventually
from tests.telemetry.endpoints import closed_port, http_endpoint, raw_endpoint, say_nothing
from tests.telemetry.test_export_runs import BUILD, EAGER, LARGE, TracedCli, by_kind, declared, traced

__all__ = ["traced"]

SLACK_S = 3.0  # a busy machine's, for starting and ending processes


def test_a_silent_endpoint_slows_no_build(traced: TracedCli) -> None:
    """The quickest of some builds beside the quickest without it, in turns."""
    with raw_endpoint(say_nothing) as url:
        pairs = [(traced.json(*LARGE), traced.to(url, **EAGER).json(*LARGE)) for _ in range(2)]
    off, on = (min(summary["duration_ms"] for summary in column) for column in zip(*pairs, strict=True))
    assert on < 1.5 * off
    for _, summary in pairs:
        assert declared(traced.records(summary["run_id"])).exported == 0


def test_what_waited_for_an_endpoint_arrives_when_it_comes_back(traced: TracedCli) -> None:
    """Within the run, each span once, and nothing is declared as dropped."""
    with http_endpoint(status=503) as endpoint:
        with traced.to(endpoint.url, **EAGER).start(*LARGE) as process:
            eventually(lambda: endpoint.requests, bool)
            endpoint.status = 200
            assert process.wait(60) == 0
        export = declared(traced.records(traced.only_run()))
        assert (export.exported, export.dropped) == (len(endpoint.spans), 0)
        assert by_kind(endpoint)["anchor"] == 1
        assert len({span.span_id for span in endpoint.spans}) == len(endpoint.spans)


def test_a_dead_endpoint_and_a_dead_broker_together_hold_the_end_up_for_both_bounds(traced: TracedCli) -> None:
    """Two seconds, and what --drain asks; what was exported waits in the spool with the rest of the run."""
    cli = with_dead_broker(traced.to(closed_port()))
    cli(*BUILD)
    ended_ns = time.time_ns()
    spool = traced.home / "spool"
    (run,) = (spool / "runs").iterdir()
    records = read_run(spool, run.name)
    (exited,) = (record for record in records if isinstance(record.event, ProcessExited))
    assert (ended_ns - exited.wall_ns) / NS_PER_S < EXIT_S + SHORT_DRAIN_S + SLACK_S
    assert len(of_type(records, ExportFinished)) == 1


def test_spans_go_out_while_the_terminal_stands_still(tmp_path: Path) -> None:
    """Ctrl-S, or a pipe that nobody reads: the caller's callback does not return before there are slices."""
    place = Place(tmp_path, chain_model(400))
    with http_endpoint() as endpoint:
        settings = telemetry_settings(
            {"OTEL_EXPORTER_OTLP_ENDPOINT": endpoint.url, "OTEL_METRICS_EXPORTER": "none", **EAGER}
        )
        seen = threading.Event()

        def stand_still(_record: Recorded) -> None:
            if not seen.is_set() and eventually(lambda: by_kind(endpoint)["slice"], bool):
                seen.set()

        spec = place.spec(heartbeat_interval_ns=settings.heartbeat_ns(NS_PER_S))
        result = supervise(spec, clock=system_clock, on_event=stand_still, telemetry=RunTelemetry(settings))
        assert seen.is_set()
        assert result.exit_code == 0
        assert declared(read_run(place.log, spec.run_id)).exported == len(endpoint.spans)


def test_a_run_that_was_alive_a_moment_ago_is_exported_by_its_kafka_home(traced: TracedCli) -> None:
    """Nobody has fenced it yet, and nobody will: run.lost is on its way."""
    with http_endpoint() as endpoint:
        cli = with_dead_broker(traced.to(endpoint.url, **EAGER))
        with cli.start(*LARGE) as process:
            eventually(lambda: by_kind(endpoint)["slice"], bool)
            process.kill()
            process.wait(20)
        (run,) = (traced.home / "spool" / "runs").iterdir()
        eventually(lambda: cli("relay", "--timeout", "0", code=1).returncode and by_kind(endpoint)["final"], bool)
        assert declared(read_run(traced.home / "spool", run.name)).exported == by_kind(endpoint)["final"]


@pytest.mark.parametrize(("spooled", "silent_s", "exported"), [(True, 29, 1), (True, 31, 0), (False, 3600, 1)])
def test_a_run_that_has_been_silent_for_long_is_left_to_the_collectors_of_a_kafka_log(
    tmp_path: Path,
    spooled: bool,  # noqa: FBT001 # a case
    silent_s: int,
    exported: int,
) -> None:
    """Half of its lease is where the home stops: the rest is for the news to reach the collectors."""
    place = Place(tmp_path)
    run_id = leave_with_trace(place)
    (run,) = recover(place.log, clock=system_clock)
    (last,) = (record for record in run.records if record.stream.role == "main")

    def later() -> Instant:
        silent_ns = silent_s * NS_PER_S
        return Instant(last.wall_ns + silent_ns, last.monotonic_ns + silent_ns)

    with http_endpoint() as endpoint:
        settings = telemetry_settings({"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": f"{endpoint.url}/v1/traces"})
        ends = export_lost([run.records], settings, place.log, clock=later, spooled=spooled)
    assert len(ends) == exported
    assert len(of_type(read_run(place.log, run_id), ExportFinished)) == exported
    assert bool(endpoint.spans) == bool(exported)


def with_dead_broker(cli: TracedCli) -> TracedCli:
    """Return the same with a Kafka log that is away."""
    return replace(cli, variables=(*cli.variables, ("ENGINETRAIL_LOG", NOWHERE)))


def leave_with_trace(place: Place) -> str:
    """Write the start of a run as a writer does that is then killed, and return its id."""
    spec = place.spec()
    header = StreamHeader(
        stream_id=spec.main_stream_id,
        role="main",
        run_id=spec.run_id,
        trace_id=spec.trace_id,
        source="enginetrail/test",
        boot_id=boot_id(),
    )
    log = LocalLog.create(place.log)
    begun = started(place, spec.run_id).model_copy(update={"lease_ns": 60 * NS_PER_S})
    EventStream(header, log, clock=system_clock).append(begun)
    log.close()
    return spec.run_id
