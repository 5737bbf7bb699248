"""What spans cost: builds with tracing on beside off in one run, and how long a dead endpoint holds the end up.

    python -m benchmarks.tracing [--repeats N] [--layers N] [--format table|json]

* ``supervised``: ``enginetrail build`` in turns without and with an endpoint that answers, markers and
  slices every 0.2 s: median ratio of neighbouring runs' duration (``wall_ratio``) and of the processor time
  of both processes (``cpu_ratio``; ``cpu_ms`` is the difference, most of it importing OpenTelemetry).
* ``embedded``: the same around ``run.build`` in a process of its own; the duration is the builder's alone.
* ``exit``: from the supervisor's last event of a tiny build to the end of the command, in milliseconds,
  for each way in which an endpoint fails. The exporter's bound is 2,000.
"""

import argparse
import contextlib
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from benchmarks.callback import paired
from build_events.clock import NS_PER_MS
from build_events.events import ProcessExited
from build_events.local_log import read_run
from tests.models import chain_model, small_model
from tests.telemetry.endpoints import closed_port, drip, http_endpoint, raw_endpoint, say_nothing

COMMAND = (str(Path(sys.executable).with_name("enginetrail")), "build", "model.onnx", "-o", "out.engine")
OPTIONS = ("--route", "r/fp32/sm89", "--target", "sm89", "--format", "json")
EAGER = {"ENGINETRAIL_TRACE_MARKER_S": "0.2", "ENGINETRAIL_TRACE_SLICE_S": "0.2"}
EMBEDDED = """
import json, time
import tensorrt_rtx as trt
import builder_agent
logger = trt.Logger(trt.Logger.ERROR)
builder = trt.Builder(logger)
network = builder.create_network(0)
trt.OnnxParser(network, logger).parse_from_file("model.onnx")
config = builder.create_builder_config()
with builder_agent.observe(route="r", output="out.engine") as run:
    began = time.monotonic_ns()
    run.build(builder, network, config)
    print(json.dumps({"duration_ms": (time.monotonic_ns() - began) / 1e6, "run_id": run.run_id}))
"""


class Ran(NamedTuple):
    """One process that built."""

    run_id: str
    duration_ms: float
    cpu_ms: float  # of the process and of its children
    ended_ns: int  # since 1970


def ran(folder: Path, command: tuple[str, ...], environment: Mapping[str, str]) -> Ran:
    """Build once."""
    home = {"ENGINETRAIL_HOME": str(folder / "home")}
    outer = {key: value for key, value in os.environ.items() if not key.startswith("OTEL_")}
    with subprocess.Popen(
        command, cwd=folder, env={**outer, **home, **environment}, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    ) as process:
        assert process.stdout is not None
        said = json.loads(process.stdout.read())
        _, status, usage = os.wait4(process.pid, 0)
        ended_ns = time.time_ns()
        process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode == 0, command
    return Ran(said["run_id"], said["duration_ms"], (usage.ru_utime + usage.ru_stime) * 1e3, ended_ns)


def measure_overhead(folder: Path, command: tuple[str, ...], repeats: int) -> dict[str, float]:
    """Build in turns without and with an endpoint that answers."""
    off: list[Ran] = []
    on: list[Ran] = []
    with http_endpoint() as endpoint:
        to = {"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": f"{endpoint.url}/v1/traces", **EAGER}
        ran(folder, command, {})  # the first one reads everything from the disk
        for _ in range(repeats):
            off.append(ran(folder, command, {}))
            on.append(ran(folder, command, to))
        spans = len(endpoint.spans)
    return {
        "duration_ms": statistics.median(run.duration_ms for run in off),
        "spans_per_run": spans / repeats,
        "wall_ratio": paired([run.duration_ms for run in on], [run.duration_ms for run in off]),
        "cpu_ratio": paired([run.cpu_ms for run in on], [run.cpu_ms for run in off]),
        "cpu_ms": statistics.median(run.cpu_ms for run in on) - statistics.median(run.cpu_ms for run in off),
    }


@contextlib.contextmanager
def failing(fault: str) -> Iterator[dict[str, str]]:
    """Yield the variables of an endpoint with this fault."""
    with contextlib.ExitStack() as stack:
        name, _, protocol = fault.partition("_")
        match name:
            case "off":
                yield {}
                return
            case "answers":
                url = stack.enter_context(http_endpoint()).url
            case "refused":
                url = closed_port()
            case "silent":
                url = stack.enter_context(raw_endpoint(say_nothing))
            case "dripping":
                url = stack.enter_context(raw_endpoint(drip))
            case _:
                url = stack.enter_context(http_endpoint(status=503)).url
        yield {"OTEL_EXPORTER_OTLP_ENDPOINT": url, "OTEL_EXPORTER_OTLP_PROTOCOL": protocol or "http/protobuf"}


FAULTS = ("off", "answers", "refused", "silent", "dripping", "http503", "refused_grpc", "silent_grpc")


def measure_exit(folder: Path, repeats: int) -> dict[str, float]:
    """Return the longest time from the last event that the supervisor recorded of the build to the command's end."""
    longest: dict[str, float] = {}
    for fault in FAULTS:
        with failing(fault) as environment:
            runs = [ran(folder, (*COMMAND, *OPTIONS), environment) for _ in range(repeats)]
        longest[f"{fault}_ms"] = max(run.ended_ns - _exited_ns(folder, run.run_id) for run in runs) / NS_PER_MS
    return longest


def _exited_ns(folder: Path, run_id: str) -> int:
    records = read_run(folder / "home" / "log", run_id)
    return next(record.wall_ns for record in records if isinstance(record.event, ProcessExited))


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description="What spans cost a build.")
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument("--layers", type=int, default=600, help="of the model whose build is timed")
    parser.add_argument("--format", choices=["table", "json"], default="table")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "model.onnx").write_bytes(chain_model(arguments.layers))
        results = {
            "supervised": measure_overhead(folder, (*COMMAND, *OPTIONS), arguments.repeats),
            "embedded": measure_overhead(folder, (sys.executable, "-c", EMBEDDED), arguments.repeats),
        }
        (folder / "model.onnx").write_bytes(small_model())
        results["exit"] = measure_exit(folder, max(arguments.repeats // 2, 1))
    if arguments.format == "json":
        print(json.dumps(results, indent=2))
    else:
        for group, values in results.items():
            print("\n".join(f"{group:10} {key:16} {value:10.3f}" for key, value in values.items()))


if __name__ == "__main__":
    main()
