"""Real builds for the tests: objects of the real builder, and what their runs left in the log."""

import functools
import importlib.util
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import tensorrt_rtx as trt

from build_events import codec, fold
from build_events.clock import Instant
from build_events.envelope import Recorded
from build_events.events import Event
from build_events.local_log import LocalLog
from build_events.log import EventReader
from build_events.state import RunState

E = TypeVar("E", bound=Event)


class Objects(NamedTuple):
    """What a caller has in hand before a build."""

    builder: Any
    network: Any
    config: Any


@functools.cache
def logger() -> Any:
    """Return the one logger of this process: TensorRT keeps a pointer to the first that it is given."""
    return trt.Logger(trt.Logger.ERROR)


def objects(model: bytes, *, log: Any = None) -> Objects:
    """Return a parsed network and a config for one target."""
    builder = trt.Builder(log or logger())
    network = builder.create_network(0)
    parser = trt.OnnxParser(network, log or logger())
    assert parser.parse(model), [parser.get_error(index) for index in range(parser.num_errors)]
    config = builder.create_builder_config()
    config.num_compute_capabilities = 1
    config.set_compute_capability(trt.ComputeCapability.SM89, 0)
    return Objects(builder, network, config)


def model_in_wheel(package: str, path: str) -> bytes:
    """Return an ONNX model that ships inside an installed wheel, without importing the package."""
    spec = importlib.util.find_spec(package)
    assert spec is not None, f"{package} is missing: make test installs requirements/models.txt"
    assert spec.submodule_search_locations is not None
    return (Path(spec.submodule_search_locations[0]) / path).read_bytes()


def records(log: EventReader, run_id: str) -> list[Recorded]:
    """Return a run's records in the order of the log."""
    found = [codec.decode(payload) for chunk in log.read({}, max_bytes=1 << 20) for payload in chunk.payloads]
    return [record for record in found if record.stream.run_id == run_id]


def records_at(home: Path, run_id: str) -> list[Recorded]:
    """Return the records of a run whose log lies under ``home``."""
    return records(LocalLog(home / "log"), run_id)


def folded(home: Path, run_id: str) -> RunState:
    """Return what a run's events come to."""
    state = fold.fold_run(records_at(home, run_id))
    assert state is not None
    return state


def of_type(found: list[Recorded], cls: type[E]) -> list[E]:
    """Return the events of one type, in order."""
    return [record.event for record in found if isinstance(record.event, cls)]


class ManualClock:
    """A clock that moves when the test says so. Nanoseconds."""

    def __init__(self) -> None:
        self.now_ns = 1_000_000_000

    def __call__(self) -> Instant:
        """Return the time on both clocks."""
        return Instant(1_700_000_000_000_000_000 + self.now_ns, self.now_ns)
