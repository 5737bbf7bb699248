"""A long build in a stock Jaeger: visible while the builder is silent, one clean tree after its end."""

import itertools
import json
import subprocess
from collections import Counter
from dataclasses import dataclass

import pytest

from build_events.clock import NS_PER_S
from build_events.envelope import Recorded
from build_events.events import Phase
from build_events.telemetry import names
from build_events.telemetry.run_spans import Intervals, RunSpans
from build_events.telemetry.span import Span
from deploy.services.ports import HOST
from tests.builder_agent.builds import records_at
from tests.enginetrail.conftest import TIMEOUT_S, Process
from tests.models import chain_model
from tests.telemetry.conftest import TelemetryServices
from tests.telemetry.fleet import FleetCli
from tests.telemetry.jaeger_runs import ALLOWED, Sightings, assert_one_tree, declared, trace_of, watch

pytestmark = [pytest.mark.service, pytest.mark.timeout(1800)]
VISIBLE_S = 2.0  # the bar, from the durable event that a span is made of
SECOND = {"ENGINETRAIL_TRACE_MARKER_S": "1", "ENGINETRAIL_TRACE_SLICE_S": "1"}


@dataclass(frozen=True)
class Watched:
    """A build that was watched in Jaeger from its start to its end."""

    cli: FleetCli
    jaeger: str
    records: list[Recorded]
    seen: Sightings
    linted: Process  # `trace lint` once a slice was there

    @property
    def run_id(self) -> str:
        """The run."""
        return self.records[0].stream.subject

    def silence(self) -> tuple[int, int]:
        """Return the longest time between two callbacks of the builder, on the wall clock."""
        calls = [record.wall_ns for record in self.records if isinstance(record.event, Phase)]
        return max(itertools.pairwise(calls), key=lambda pair: pair[1] - pair[0])

    def live(self) -> dict[str, tuple[Span, int]]:
        """Return the spans of the open run, each with the time of the event that it was made of."""
        spans = RunSpans(Intervals(marker_after_ns=NS_PER_S, slice_every_ns=NS_PER_S))
        return {span.span_id: (span, record.wall_ns) for record in self.records for span in spans.take([record])}


@pytest.fixture(scope="module")
def watched(telemetry_services: TelemetryServices, tmp_path_factory: pytest.TempPathFactory) -> Watched:
    """Build for some seconds, most of them silent, straight into Jaeger."""
    folder, jaeger = tmp_path_factory.mktemp("watched"), telemetry_services.jaeger
    (folder / "long").write_bytes(chain_model(1400))
    otlp = f"http://{HOST}:{telemetry_services.services.port('jaeger', 'otlp_http')}"
    cli = FleetCli(folder).having(OTEL_EXPORTER_OTLP_ENDPOINT=otlp, OTEL_METRICS_EXPORTER="none", **SECOND)
    seen: Sightings = Sightings()
    lints: list[subprocess.Popen[str]] = []
    process, run = cli.begun("long")
    with process:
        trace = trace_of(records_at(cli.home, run))

        def goes_on() -> bool:
            if not lints and "slice" in seen.kinds.values():
                lints.append(cli.start("trace", "lint", trace, "--jaeger", jaeger, "--format", "json"))
            return process.poll() is None

        watch(jaeger, trace, seen, goes_on)
        assert process.wait(TIMEOUT_S) == 0, process.communicate()
    (linting,) = lints
    out, err = linting.communicate(timeout=TIMEOUT_S)
    linted = Process(linting.args, linting.returncode, out, err)
    return Watched(cli, jaeger, records_at(cli.home, run), seen, linted)


def test_a_silent_phase_shows_within_two_seconds_of_each_event(watched: Watched) -> None:
    """Anchor, marker and slices come back from the query API while the builder is in its silent window."""
    begin, end = watched.silence()
    live, first = watched.live(), watched.seen.first_ns
    inside = Counter(watched.seen.kinds[name] for name, at in first.items() if begin < at < end)
    late_s = [(at - live[name][1]) / NS_PER_S for name, at in first.items()]
    print(  # noqa: T201 # the figures are wanted
        f"silent for {(end - begin) / NS_PER_S:.1f} s; seen meanwhile {dict(inside)}; "
        f"event to query API {min(late_s):.3f} to {max(late_s):.3f} s"
    )
    assert inside["marker"] >= 1
    assert inside["slice"] >= 2
    assert first.keys() <= live.keys()
    anchor = next(name for name, kind in watched.seen.kinds.items() if kind == "anchor")
    assert first[anchor] < end
    due_by_then = {name for name, (_, at) in live.items() if at < end - VISIBLE_S * NS_PER_S}
    assert due_by_then <= first.keys()
    assert max(late_s) < VISIBLE_S


def test_while_a_run_is_open_jaeger_warns_of_its_anchor_alone(watched: Watched) -> None:
    """With the one text that says that its root is not there; nothing is there twice; the lint agrees."""
    assert watched.seen.polls > 10
    assert watched.seen.repeated == set()
    (text,) = watched.seen.warnings.pop("anchor")
    assert ALLOWED.fullmatch(text)
    assert set(watched.seen.warnings) == {"marker", "slice"}
    assert set.union(*watched.seen.warnings.values()) == set()
    report = json.loads(watched.linted.stdout)
    assert (watched.linted.returncode, report["findings"]) == (0, [])
    assert 0 < report["spans"] < declared(watched.records)  # it was open then


def test_after_its_end_a_long_build_is_one_clean_tree(watched: Watched) -> None:
    """The root spans the run, phases link to their markers, and the command finds nothing wrong."""
    spans = assert_one_tree(watched.jaeger, watched.records, declared(watched.records))
    kinds = Counter(span.kind for span in spans)
    assert kinds["anchor"] == 1
    assert kinds["marker"] >= 1
    assert kinds["slice"] >= 3
    marked = {span.tags[names.PHASE_SPAN_ID]: span.span_id for span in spans if span.kind == "marker"}
    phases = {span.span_id: span.links for span in spans if span.span_id in marked}
    assert phases == {phase: ((trace_of(watched.records), marker),) for phase, marker in marked.items()}
    report = watched.cli.json("trace", "lint", watched.run_id[:8], "--jaeger", watched.jaeger)
    assert report == {"spans": len(spans), "findings": []}
