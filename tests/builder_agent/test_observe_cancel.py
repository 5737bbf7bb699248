"""Cancellation of real builds in this process."""

import random
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

import builder_agent
from build_events import fold
from build_events.clock import system_clock
from build_events.envelope import Recorded
from build_events.events import (
    ArtifactPublished,
    ArtifactPublishing,
    CancelDeferred,
    CancelObserved,
    CancelRequested,
    CancelSignalled,
    ErrorRecorded,
    RetryPlanned,
    RunStarted,
    StreamClosed,
)
from build_events.log import InMemoryEventLog
from builder_agent.files.output_folder import temporaries
from builder_agent.session import BuildResult, RunSession
from builder_agent.settings import RunSettings
from tests import models
from tests.builder_agent.builds import folded, objects, of_type, records, records_at
from tests.waiting import until

ROUTE = "chain/fp32/sm89"


def observe(folder: Path, **options: Any) -> builder_agent.RunSession:
    """Return a run whose log and output lie in ``folder``."""
    return builder_agent.observe(
        **{"route": ROUTE, "output": folder / "out.engine", "home": folder / "home", **options}
    )


def build_and_cancel(folder: Path, when: Any, **options: Any) -> tuple[builder_agent.RunSession, BuildResult]:
    """Build a model of half a second and cancel it from another thread when ``when`` returns."""
    built = objects(models.chain_model(200))
    with observe(folder, **options) as run:
        asker = threading.Thread(target=lambda: (when(run), run.cancel("service", reason="test")))
        asker.start()
        run.build(*built)
        asker.join()
    assert run.result is not None
    return run, run.result


def test_a_cancelled_build_ends_clean_with_every_leg_of_its_latency(tmp_path: Path) -> None:
    """Requested, signalled, observed, returned, cleaned; the old artifact stays; the plan says how to retry."""
    (tmp_path / "out.engine").write_bytes(b"old")
    run, result = build_and_cancel(tmp_path, lambda run: until(lambda: run._recording.monitor is not None))
    assert result.outcome == "cancelled"
    state = folded(tmp_path / "home", run.run_id)
    assert (state.run.outcome, state.run.complete, state.anomalies) == ("cancelled", True, ())
    cancelled = state.cancellation
    assert cancelled is not None
    assert cancelled.source == "service"
    assert None not in (cancelled.signalled_ns, cancelled.observed_ns, cancelled.returned_ns, cancelled.cleaned_ns)
    assert cancelled.exited_ns is None, "embedded: nobody sees an exit"
    assert {phase.status for phase in state.phases} <= {"finished", "cancelled"}
    assert state.phases[0].status == "cancelled"
    found = records_at(tmp_path / "home", run.run_id)
    assert of_type(found, CancelObserved)[0].request_id == of_type(found, CancelRequested)[0].request_id
    assert [plan.policy for plan in of_type(found, RetryPlanned)] == ["retry_cold"]
    assert "BuildCanceled" in of_type(found, ErrorRecorded)[0].message
    assert (tmp_path / "out.engine").read_bytes() == b"old"
    assert temporaries(tmp_path / "out.engine") == []


@pytest.mark.parametrize("seed", range(8))
def test_a_request_at_a_random_moment_ends_cancelled_or_completed_despite_it(tmp_path: Path, seed: int) -> None:
    """Nothing else, never a partial file, never an incomplete run."""
    wait = random.Random(seed).uniform(0, 0.9)
    run, result = build_and_cancel(tmp_path, lambda _: time.sleep(wait))
    state = folded(tmp_path / "home", run.run_id)
    assert result.outcome == state.run.outcome
    assert state.run.complete
    assert state.cancellation is not None
    assert None not in (state.cancellation.returned_ns, state.cancellation.cleaned_ns)
    assert temporaries(tmp_path / "out.engine") == []
    if result.outcome == "cancelled":
        assert state.cancellation.observed_ns is not None
        assert not (tmp_path / "out.engine").exists()
    else:
        assert result.outcome == "completed_despite_cancel"
        assert result.sha256 == state.run.artifact_sha256 is not None


def test_a_request_before_the_build_cancels_it_at_the_first_checkpoint(tmp_path: Path) -> None:
    """The builder is asked all the same: its no is the observation."""
    with observe(tmp_path) as run:
        run.cancel("ide")
        result = run.build(*objects(models.chain_model(200)))
    assert result.outcome == "cancelled"
    state = folded(tmp_path / "home", run.run_id)
    assert len(state.phases) <= 2
    assert state.cancellation is not None
    assert state.cancellation.source == "ide"
    assert state.cancellation.observed_ns is not None


def test_a_request_before_the_run_is_opened_counts_and_does_not_open_the_stream(tmp_path: Path) -> None:
    """run.started is the first event of every main stream."""
    run = observe(tmp_path)
    run.cancel("ci")
    with run:
        assert run.build(*objects(models.small_model())).outcome == "cancelled"
    found = records_at(tmp_path / "home", run.run_id)
    assert [type(record.event) for record in found[:3]] == [RunStarted, CancelRequested, CancelSignalled]
    assert folded(tmp_path / "home", run.run_id).run.complete


def test_a_request_after_the_builders_return_comes_too_late(tmp_path: Path) -> None:
    """The verified engine is kept, and the run knows of the request."""
    with observe(tmp_path) as run:
        run.build(*objects(models.small_model()))
        run.cancel("event_loop")
    assert run.result is not None
    assert run.result.outcome == "completed_despite_cancel"
    state = folded(tmp_path / "home", run.run_id)
    assert state.run.outcome == "completed_despite_cancel"
    assert (tmp_path / "out.engine").exists()


def test_an_unwanted_late_engine_is_not_published(tmp_path: Path) -> None:
    """discard_late: cancelled, although the builder gave an engine."""
    builder, network, config = objects(models.small_model())
    with observe(tmp_path, discard_late=True) as run:
        config.progress_monitor = run.monitor
        engine = builder.build_serialized_network(network, config)
        run.cancel()
        result = run.save(engine)
    assert result.outcome == "cancelled"
    state = folded(tmp_path / "home", run.run_id)
    assert state.cancellation is not None
    assert state.cancellation.observed_ns is not None
    assert not (tmp_path / "out.engine").exists()


class AskingLog(InMemoryEventLog):
    """A log that asks the run to stop at the moment its artifact is about to be renamed."""

    run: RunSession

    def append(self, records: Sequence[Recorded]) -> None:  # type: ignore[explicit-override] # 3.11 has none
        """Store, and ask."""
        super().append(records)
        if of_type(list(records), ArtifactPublishing):
            self.run.cancel("ci")


def test_a_request_while_publishing_is_deferred_and_the_artifact_stands(tmp_path: Path) -> None:
    """Publishing is a no-cancel zone: the flag rises after it."""
    log = AskingLog()
    settings = RunSettings(
        route=ROUTE, output=tmp_path / "out.engine", run_id="r", trace_id="0" * 31 + "1", stream_id="s"
    )
    log.run = RunSession(settings, writer=log, clock=system_clock, boot_id="boot")
    with log.run as run:
        run.build(*objects(models.small_model()))
    found = records(log, "r")
    interesting = (ArtifactPublished, CancelRequested, CancelDeferred, CancelSignalled)
    assert [type(record.event) for record in found if isinstance(record.event, interesting)] == [
        CancelRequested, CancelDeferred, ArtifactPublished, CancelSignalled,
    ]  # fmt: skip
    assert of_type(found, CancelDeferred)[0].zone == "publish"
    state = fold.fold_run(found)
    assert state is not None
    assert (state.run.outcome, state.run.complete) == ("completed_despite_cancel", True)


def test_many_requests_are_listed_up_to_a_bound_and_the_rest_is_told(tmp_path: Path) -> None:
    """Nothing is sampled away silently, and the stream stays short."""
    with observe(tmp_path) as run:
        for _ in range(1000):
            run.cancel("ctrl_c")
        run.build(*objects(models.small_model()))
    requests = of_type(records_at(tmp_path / "home", run.run_id), CancelRequested)
    assert len(requests) == 65
    assert requests[-1].reason == "936 further requests, not listed one by one"
    assert of_type(records_at(tmp_path / "home", run.run_id), StreamClosed)[0].dropped == 0


def test_a_fault_in_our_callback_is_recorded_and_the_build_completes(tmp_path: Path) -> None:
    """The agent cannot hurt a build: a broken clock in the callbacks cancels nothing."""
    with observe(tmp_path) as run:
        monitor = run.monitor
        calls = 0

        def broken() -> int:
            nonlocal calls
            calls += 1
            if calls % 7 == 0:
                raise ValueError("broken clock")
            return time.monotonic_ns()

        monitor._clock_ns = broken
        result = run.build(*objects(models.small_model()))
    assert result.outcome == "completed"
    errors = of_type(records_at(tmp_path / "home", run.run_id), ErrorRecorded)
    assert {error.code for error in errors} <= {"monitor_fault", "unknown_phase"}
    assert any("broken clock" in error.message for error in errors)
