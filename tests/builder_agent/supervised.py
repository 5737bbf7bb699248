"""Supervised builds in this process, and in one of their own that a test may kill."""

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import psutil

from build_events import ids
from build_events.clock import NS_PER_S, system_clock
from build_events.envelope import Recorded
from build_events.events import RunFinished, RunStarted
from build_events.fold import fold_run
from build_events.local_log import read_run
from build_events.state import RunState
from builder_agent.supervised.control import BuildSpec
from builder_agent.supervised.supervise import Mailbox, SupervisedResult, SupervisorSettings, supervise

WAIT_S = 30.0  # bound of every wait; far above what is waited for


@dataclass
class Place:
    """A folder with a home, a model and an output."""

    folder: Path
    model_bytes: bytes = b""
    events: list[Recorded] = field(default_factory=list)
    messages: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        if self.model_bytes:
            self.model.write_bytes(self.model_bytes)

    @property
    def model(self) -> Path:
        """The ONNX file."""
        return self.folder / "model.onnx"

    @property
    def output(self) -> Path:
        """The engine to be."""
        return self.folder / "out" / "model.engine"

    @property
    def log(self) -> Path:
        """The log folder."""
        return self.folder / "home" / "log"

    def spec(self, **more: object) -> BuildSpec:
        """Return a new run's specification; ``more`` replaces its fields."""
        self.output.parent.mkdir(exist_ok=True)
        self.log.parent.mkdir(exist_ok=True)
        fields: dict[str, object] = {
            "run_id": ids.random_id(),
            "trace_id": ids.trace_id(),
            "main_stream_id": ids.random_id(),
            "log_folder": str(self.log),
            "model": str(self.model),
            "output": str(self.output),
            "route": "chain/fp32/sm89",
            "target": "sm89",
            "command_started_monotonic_ns": time.monotonic_ns(),
        }
        return BuildSpec.model_validate({**fields, **more})

    def build(
        self,
        spec: BuildSpec | None = None,
        *,
        on_event: Callable[[Recorded], None] = lambda _record: None,
        mailbox: Mailbox | None = None,
        settings: SupervisorSettings | None = None,
    ) -> SupervisedResult:
        """Supervise a build here, keeping its events and messages."""

        def see(record: Recorded) -> None:
            self.events.append(record)
            on_event(record)

        return supervise(
            spec or self.spec(),
            clock=system_clock,
            on_event=see,
            on_message=self.messages.append,
            mailbox=mailbox,
            settings=settings or SupervisorSettings(),
        )

    def undisturbed_s(self) -> float:
        """Build once, with nobody disturbing it, and return the seconds from ``run.started`` to ``run.finished``."""
        result = self.build()
        assert result.exit_code == 0
        (first,), (last,) = self.logged(result.run_id, RunStarted), self.logged(result.run_id, RunFinished)
        self.output.unlink()
        return (last.monotonic_ns - first.monotonic_ns) / NS_PER_S

    def state(self, run_id: str) -> RunState:
        """Return the run as its log tells it."""
        state = fold_run(read_run(self.log, run_id))
        assert state is not None
        return state

    def logged(self, run_id: str, cls: type[object]) -> list[Recorded]:
        """Return the run's stored events of a type."""
        return [record for record in read_run(self.log, run_id) if isinstance(record.event, cls)]

    def runs_in_the_log(self) -> list[str]:
        """Return the names of what the log holds about runs."""
        folder = self.log / "runs"
        return sorted(path.name for path in folder.iterdir()) if folder.exists() else []

    def beside_the_output(self, *, locks: bool = False) -> list[str]:
        """Return the names in the output's folder; the lock file may remain and is left out unless ``locks``."""
        names = sorted(path.name for path in self.output.parent.iterdir())
        return [name for name in names if locks or not name.endswith("enginetrail-lock")]


def assert_in_order(place: Place, result: SupervisedResult) -> RunState:
    """Check what holds for every run whose supervisor saw its end, and return the run."""
    state = place.state(result.run_id)
    assert result.recorded
    assert result.state == state  # what the caller was told is what the log says
    assert state.run.complete
    assert not state.anomalies
    assert not list((place.log / "runs" / result.run_id).glob("*.lock"))
    assert not list((place.log / "supervisors").iterdir())
    assert not list(place.output.parent.glob("*.enginetrail-tmp"))
    row = state.cancellation
    match state.run.outcome:
        case "cancelled":
            assert row is not None
            assert None not in {row.observed_ns, row.returned_ns, row.cleaned_ns, row.exited_ns}
            assert not place.output.exists()
        case "completed_despite_cancel":
            assert row is not None
            assert None not in {row.returned_ns, row.exited_ns}
            assert place.output.exists()
        case "killed":
            assert row is not None
            assert None not in {row.cleaned_ns, row.exited_ns}
        case _:
            assert row is None
    return state


def wait_until(condition: Callable[[], bool], what: str) -> None:
    """Poll until a condition holds.

    Raises:
        AssertionError: it did not within the bound.
    """
    end = time.monotonic() + WAIT_S
    while not condition():
        assert time.monotonic() < end, f"waited {WAIT_S} s for {what}"
        time.sleep(0.002)


def is_running(pid: int) -> bool:
    """Say whether a process lives; a zombie does not."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8")
    except FileNotFoundError:
        return False
    return fields.rpartition(")")[2].split()[0] not in {"Z", "X"}


def children_of(pid: int) -> list[int]:
    """Return the ids of a process's living children."""
    with contextlib.suppress(psutil.NoSuchProcess):
        return [child.pid for child in psutil.Process(pid).children() if is_running(child.pid)]
    return []


class OwnProcess:
    """A supervised build whose supervisor is a process of its own."""

    def __init__(self, place: Place, spec: BuildSpec) -> None:
        self.place, self.spec = place, spec
        self.process = subprocess.Popen(
            [sys.executable, "-m", "tests.builder_agent.supervised", spec.model_dump_json()],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            cwd=Path(__file__).parents[2],
        )

    def wait_for_start(self) -> int:
        """Return the building process's id once ``run.started`` stands in the log."""
        wait_until(lambda: bool(self.place.logged(self.spec.run_id, RunStarted)), "run.started")
        (child,) = children_of(self.process.pid)
        return child

    def result(self) -> dict[str, object]:
        """Return what the supervisor told its caller."""
        output, _ = self.process.communicate(timeout=WAIT_S)
        told: dict[str, object] = json.loads(output)
        return told


@contextlib.contextmanager
def own_process(place: Place, spec: BuildSpec) -> Iterator[OwnProcess]:
    """Start one, and see to it that nothing of it is left."""
    started = OwnProcess(place, spec)
    try:
        yield started
    finally:
        for pid in children_of(started.process.pid):
            os.kill(pid, signal.SIGKILL)
        started.process.kill()
        started.process.communicate()


def main() -> int:
    """Supervise the build that the first argument describes; print its result as JSON."""
    spec = BuildSpec.model_validate_json(sys.argv[1])
    result = supervise(spec, clock=system_clock)
    outcome = result.state.run.outcome if result.state else None
    print(json.dumps({"exit_code": result.exit_code, "outcome": outcome}))  # noqa: T201 # the test reads it
    return result.exit_code


def seconds(value: float) -> int:
    """Return nanoseconds."""
    return int(value * NS_PER_S)


if __name__ == "__main__":
    sys.exit(main())
