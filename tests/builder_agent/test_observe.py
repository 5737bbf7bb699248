"""Runs of the real builder inside this process: every outcome, and what stands in the log afterwards."""

import hashlib
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import tensorrt_rtx as trt

import builder_agent
from build_events.events import (
    ArtifactInventoried,
    ArtifactPublished,
    ArtifactPublishing,
    BaselineRecorded,
    BuilderReturned,
    CallbackCostRecorded,
    CleanupFinished,
    ErrorRecorded,
    Event,
    PhaseFinished,
    PhaseStarted,
    ProcessObserved,
    RetryPlanned,
    RunFinished,
    RunStarted,
    StreamClosed,
    TimingCacheRecorded,
)
from builder_agent.files.output_folder import temp_path
from tests import models
from tests.builder_agent.builds import folded, objects, of_type, records_at

ROUTE = "small/fp32/sm89"


def observe(folder: Path, **options: Any) -> builder_agent.RunSession:
    """Return a run whose log and output lie in ``folder``."""
    return builder_agent.observe(
        **{"route": ROUTE, "output": folder / "out.engine", "home": folder / "home", **options}
    )


def events(folder: Path, run: builder_agent.RunSession) -> list[Event]:
    """Return the run's events in order."""
    return [record.event for record in records_at(folder / "home", run.run_id) if isinstance(record.event, Event)]


def test_three_lines_give_phases_artifact_and_process_facts(tmp_path: Path) -> None:
    """And name what they cannot see."""
    builder, network, config = objects(models.small_model())
    with observe(tmp_path) as run:
        config.progress_monitor = run.monitor
        run.save(builder.build_serialized_network(network, config))
    assert run.result is not None
    assert run.result.outcome == "completed"
    state = folded(tmp_path / "home", run.run_id)
    assert (state.run.outcome, state.run.complete, state.anomalies) == ("completed", True, ())
    assert state.run.artifact_sha256 == hashlib.sha256((tmp_path / "out.engine").read_bytes()).hexdigest()
    assert {phase.name for phase in state.phases} >= {"Building engine", "Determining refit engines"}
    found = records_at(tmp_path / "home", run.run_id)
    assert len(of_type(found, PhaseStarted)) == len(of_type(found, PhaseFinished)) == len(state.phases)
    assert [observed.moment for observed in of_type(found, ProcessObserved)] == ["before", "after"]
    assert "builder_config" in of_type(found, BaselineRecorded)[0].unobserved
    assert run.result.sha256 == state.run.artifact_sha256


def test_a_build_tells_everything_in_the_order_in_which_it_happened(tmp_path: Path) -> None:
    """run.started opens the stream, stream.closed ends it, and the baseline stands before the phases."""
    model = tmp_path / "model.onnx"
    model.write_bytes(models.small_model())
    with observe(tmp_path) as run:
        result = run.build(*objects(models.small_model()), inputs=[model])
    assert result.artifact == tmp_path / "out.engine"
    found = events(tmp_path, run)
    order = [type(event) for event in found]
    expected: list[type[Event]] = [
        RunStarted, ProcessObserved, ArtifactInventoried, BaselineRecorded, TimingCacheRecorded, PhaseStarted,
    ]  # fmt: skip
    assert order[:6] == expected
    expected = [
        BuilderReturned, ArtifactPublishing, ArtifactPublished, CallbackCostRecorded, ProcessObserved,
        ArtifactInventoried, CleanupFinished, RunFinished, StreamClosed,
    ]  # fmt: skip
    assert order[-9:] == expected
    baseline = next(event for event in found if isinstance(event, BaselineRecorded))
    assert baseline.unobserved == []
    assert baseline.build_config_hash is not None
    assert [file.sha256 for file in baseline.inputs] == [hashlib.sha256(models.small_model()).hexdigest()]
    published = next(event for event in found if isinstance(event, ArtifactPublished))
    assert published.checks == ["read_back", "size_field", "trailer", "folder_fsync"]


def test_equal_builds_in_one_process_give_equal_engines(tmp_path: Path) -> None:
    """The network gets a fixed name; the default one is a counter that stands in the engine."""
    digests = set()
    for _ in range(2):
        with observe(tmp_path) as run:
            digests.add(run.build(*objects(models.small_model())).sha256)
    assert len(digests) == 1


REFUSED: dict[str, Any] = {
    "no_callback_at_all": (
        models.dynamic_model,
        lambda _: None,
        "no optimization profile has been defined",
        0,
    ),
    "after_the_last_finish": (
        models.small_model,
        lambda config: config.set_flag(trt.BuilderFlag.VERSION_COMPATIBLE),
        "libnvinfer_lean",
        12,
    ),
    "in_the_middle": (models.small_model, lambda config: config.set_flag(trt.BuilderFlag.REFIT), "CUDA_SUCCESS", 12),
}


@pytest.mark.parametrize("case", REFUSED)
def test_a_refused_build_fails_in_the_builders_own_words(tmp_path: Path, case: str) -> None:
    """Also where there was no callback, and where every phase had finished; never completed."""
    model, change, words, phases = REFUSED[case]
    built = objects(model())
    change(built.config)
    with observe(tmp_path) as run:
        result = run.build(*built)
    assert (result.outcome, result.error_type) == ("failed", "builder_error")
    assert words in (result.error_message or "")
    state = folded(tmp_path / "home", run.run_id)
    assert (state.run.outcome, state.run.error_message, state.run.complete) == ("failed", result.error_message, True)
    assert len(state.phases) == phases
    assert all(phase.status in {"finished", "failed"} for phase in state.phases)
    found = records_at(tmp_path / "home", run.run_id)
    assert [plan.policy for plan in of_type(found, RetryPlanned)] == ["investigate"]
    assert [error.component for error in of_type(found, ErrorRecorded)] == ["builder"]
    assert not (tmp_path / "out.engine").exists()


def test_three_lines_cannot_see_the_builders_words(tmp_path: Path) -> None:
    """Engine None without our False is failed, message unobserved."""
    builder, network, config = objects(models.dynamic_model())
    with observe(tmp_path) as run:
        config.progress_monitor = run.monitor
        run.save(builder.build_serialized_network(network, config))
    state = folded(tmp_path / "home", run.run_id)
    assert (state.run.outcome, state.run.error_message) == ("failed", "unobserved")


def test_an_exception_of_the_body_fails_the_run_and_goes_on(tmp_path: Path) -> None:
    """error.type is the exception's class; the old artifact stays."""
    (tmp_path / "out.engine").write_bytes(b"old")
    with pytest.raises(ZeroDivisionError), observe(tmp_path) as run:
        raise ZeroDivisionError("parsing failed")
    state = folded(tmp_path / "home", run.run_id)
    assert (state.run.outcome, state.run.error_type) == ("failed", "ZeroDivisionError")
    assert state.run.complete
    assert (tmp_path / "out.engine").read_bytes() == b"old"


def test_an_exception_after_the_engine_was_published_leaves_the_run_completed(tmp_path: Path) -> None:
    """What the host does next is not the build's failure, and is still recorded."""
    run = observe(tmp_path)

    def host() -> None:
        with run:
            run.build(*objects(models.small_model()))
            raise ZeroDivisionError("a benchmark failed")

    with pytest.raises(ZeroDivisionError):
        host()
    assert folded(tmp_path / "home", run.run_id).run.outcome == "completed"
    errors = of_type(records_at(tmp_path / "home", run.run_id), ErrorRecorded)
    assert [(error.component, error.code) for error in errors] == [("agent", "ZeroDivisionError")]


def test_a_run_without_a_build_says_so(tmp_path: Path) -> None:
    """Neither save nor build."""
    with observe(tmp_path) as run:
        pass
    assert folded(tmp_path / "home", run.run_id).run.error_type == "no_engine"


def test_a_retry_names_its_run_and_policy(tmp_path: Path) -> None:
    """A retry is a new run."""
    with observe(tmp_path) as first:
        pass
    with observe(tmp_path, retry_of=first.run_id, retry_policy="retry_cold") as run:
        run.build(*objects(models.small_model()))
    state = folded(tmp_path / "home", run.run_id)
    assert (state.run.retry_of, state.run.retry_policy) == (first.run_id, "retry_cold")


def test_wrong_use_is_refused_with_what_to_do(tmp_path: Path) -> None:
    """Usage errors raise; infrastructure errors degrade."""
    with pytest.raises(builder_agent.UsageError, match="retry_of"):
        observe(tmp_path, retry_policy="retry_cold")
    with pytest.raises(builder_agent.UsageError, match="route: it is empty"):
        observe(tmp_path, route="")
    with pytest.raises(builder_agent.OutputFolderError, match="does not exist"), observe(tmp_path, output="no/such/x"):
        pass
    with observe(tmp_path) as run:
        with pytest.raises(builder_agent.UsageError, match="build_serialized_network returned"):
            run.save("engine")
        run.build(*objects(models.small_model()))
        with pytest.raises(builder_agent.UsageError, match="a retry is a new run"):
            run.save(b"another")
    with pytest.raises(builder_agent.UsageError, match="is not open"):
        _ = run.monitor
    with pytest.raises(builder_agent.UsageError, match="entered before"), run:
        pass


def test_a_second_build_to_the_same_output_is_refused_and_leaves_no_run(tmp_path: Path) -> None:
    """Before run.started, with who holds it."""
    second = observe(tmp_path)
    with observe(tmp_path) as first:
        with pytest.raises(builder_agent.OutputBusyError), second:
            pass
        first.build(*objects(models.small_model()))
    assert not records_at(tmp_path / "home", second.run_id)
    with observe(tmp_path) as third:
        third.build(*objects(models.small_model()))
    assert folded(tmp_path / "home", third.run_id).run.outcome == "completed"


def test_a_log_that_cannot_be_written_does_not_stop_the_build(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Said once through logging; the artifact is still published atomically."""
    (tmp_path / "home").write_text("a file where the log's folder should be")
    with observe(tmp_path, home=tmp_path / "home" / "below") as run:
        result = run.build(*objects(models.small_model()))
    assert result.outcome == "completed"
    assert (tmp_path / "out.engine").stat().st_size > 0
    assert not temp_path(tmp_path / "out.engine", run.run_id).exists()
    assert len([entry for entry in caplog.records if "event log unavailable" in entry.message]) == 1


def test_a_monitor_of_the_caller_is_put_back_and_its_config_can_be_built_again(tmp_path: Path) -> None:
    """After a cancelled run the config builds as before: our monitor cancels only its own run."""
    builder, network, config = objects(models.small_model())
    with observe(tmp_path) as run:
        config.progress_monitor = run.monitor
        run.cancel()
        assert run.build(builder, network, config).outcome == "cancelled"
    assert builder.build_serialized_network(network, config) is not None
    assert (
        len(records_at(tmp_path / "home", run.run_id))
        == of_type(records_at(tmp_path / "home", run.run_id), StreamClosed)[0].events
    )


def test_importing_the_package_loads_nothing_heavy() -> None:
    """The names are loaded when they are first used."""
    heavy = {"pydantic", "psutil", "tensorrt_rtx", "build_events.events"}
    code = f"import sys, builder_agent; print({heavy} & set(sys.modules))"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == "set()"
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        builder_agent.nothing  # noqa: B018 # the access is the test
