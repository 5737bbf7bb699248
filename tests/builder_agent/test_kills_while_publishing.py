"""A build that is killed by SIGKILL while it publishes: the target is the old artifact or the whole new one."""

import contextlib
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psutil

from build_events.clock import system_clock
from build_events.events import (
    ArtifactPublished,
    ArtifactPublishing,
    ArtifactQuarantined,
    CleanupFinished,
    RunLost,
    StreamClosed,
)
from build_events.local_log import read_run
from builder_agent.files.output_folder import sha256_of, temp_path
from builder_agent.recovery import recover
from tests.builder_agent.builds import folded, of_type, records_at
from tests.builder_agent.hosts.publishing import SIZE
from tests.builder_agent.supervised import wait_until

ROOT = Path(__file__).parents[2]
OLD = b"the engine of an earlier build"


@contextlib.contextmanager
def publishing_host(folder: Path, stop: str) -> Iterator[subprocess.Popen[bytes]]:
    """Start a host whose target holds an older artifact, and see to it that nothing of it is left."""
    (folder / "out.engine").write_bytes(OLD)
    command = [sys.executable, "-m", "tests.builder_agent.hosts.publishing", str(folder), stop]
    with subprocess.Popen(command, cwd=ROOT) as process:
        try:
            yield process
        finally:
            process.kill()


def killed_where_it_stopped(folder: Path, stop: str) -> str:
    """Kill a host that has stopped itself beside the rename, and return its run id."""
    with publishing_host(folder, stop) as process:
        stopped = psutil.Process(process.pid)
        wait_until(lambda: stopped.status() == psutil.STATUS_STOPPED, "the host to stop beside the rename")
        process.kill()
        process.wait()
    (run,) = (folder / "home" / "log" / "runs").iterdir()
    before = read_run(folder / "home" / "log", run.name)
    assert len(of_type(before, ArtifactPublishing)) == 1, "announced, durably, before the rename"
    assert of_type(before, ArtifactPublished) == []
    assert of_type(before, StreamClosed) == []
    return run.name


def recovered_once(folder: Path, run_id: str) -> tuple[str, ...]:
    """Start as the next command does, check that the run is lost, and return what was quarantined."""
    (run,) = recover(folder / "home" / "log", clock=system_clock)
    assert (run.run_id, run.lost) == (run_id, True)
    assert not list(folder.glob(".*.enginetrail-tmp"))
    assert len(of_type(records_at(folder / "home", run_id), RunLost)) == 1
    state = folded(folder / "home", run_id)
    assert (state.run.outcome, state.run.complete) == ("lost", False)
    assert recover(folder / "home" / "log", clock=system_clock) == []
    return run.quarantined


def test_killed_between_the_announcement_and_the_rename_the_artifact_is_quarantined(tmp_path: Path) -> None:
    """The old artifact stands untouched; the new one is whole, and kept where no verdict covers it."""
    run_id = killed_where_it_stopped(tmp_path, "before")
    assert temp_path(tmp_path / "out.engine", run_id).stat().st_size == SIZE
    (moved,) = recovered_once(tmp_path, run_id)
    found = records_at(tmp_path / "home", run_id)
    assert (tmp_path / "out.engine").read_bytes() == OLD
    assert sha256_of(Path(moved)) == of_type(found, ArtifactPublishing)[0].sha256
    assert of_type(found, ArtifactPublished) == []
    assert [event.quarantine for event in of_type(found, ArtifactQuarantined)] == [moved]
    assert of_type(found, CleanupFinished) == [CleanupFinished(status="quarantined", by="next_start")]


def test_killed_between_the_rename_and_its_record_the_artifact_is_published_by_the_sweep(tmp_path: Path) -> None:
    """The new artifact stands whole at its target, and the next start says so."""
    run_id = killed_where_it_stopped(tmp_path, "after")
    assert recovered_once(tmp_path, run_id) == ()
    found = records_at(tmp_path / "home", run_id)
    (announced,), (published,) = of_type(found, ArtifactPublishing), of_type(found, ArtifactPublished)
    assert (published.by, published.sha256, published.size_bytes) == ("sweep", announced.sha256, SIZE)
    assert sha256_of(tmp_path / "out.engine") == announced.sha256
    assert of_type(found, ArtifactQuarantined) == []
    assert of_type(found, CleanupFinished) == [CleanupFinished(status="cleaned", by="next_start")]


def test_killed_while_the_temporary_file_is_half_written_it_is_quarantined(tmp_path: Path) -> None:
    """Whatever was written is kept, and the old artifact stands untouched."""
    with publishing_host(tmp_path, "never") as process:
        wait_until(lambda: any(path.stat().st_size for path in tmp_path.glob(".*.enginetrail-tmp")), "the first bytes")
        process.kill()
        process.wait()
    (run,) = (tmp_path / "home" / "log" / "runs").iterdir()
    half = temp_path(tmp_path / "out.engine", run.name).stat().st_size
    assert 0 < half < SIZE
    assert of_type(read_run(tmp_path / "home" / "log", run.name), ArtifactPublishing) == []
    (moved,) = recovered_once(tmp_path, run.name)
    found = records_at(tmp_path / "home", run.name)
    assert (tmp_path / "out.engine").read_bytes() == OLD
    assert Path(moved).stat().st_size == half
    assert [(event.quarantine, event.size_bytes) for event in of_type(found, ArtifactQuarantined)] == [(moved, half)]
    assert of_type(found, ArtifactPublished) == []
