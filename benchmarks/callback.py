"""What the agent costs a build: callbacks, signals, and a whole build; all as differences measured in one run.

    python benchmarks/callback.py [--repeats N] [--format table|json]

* ``callback``: the builder's own burst of back-to-back callbacks (cloning a network of 2,000 layers),
  with an empty Python monitor and with ours, in turns. Ours feeds a running delivery thread and a log on
  disk. Mean = the phase's time per step; p99 = of the times between two steps. Ours minus empty.
* ``signal``: from ``kill`` in another process to the cancel flag, while the builder builds.
* ``build``: wall and processor time of the call into the builder, with an empty monitor and under
  ``run.build``, in turns, on a build of more than a second: the median ratio of neighbouring builds.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import tensorrt_rtx as trt

import builder_agent
from build_events.clock import NS_PER_S, system_clock
from build_events.events import CancelSource
from builder_agent.cancellation import CancelState
from builder_agent.signals import SignalHandlers
from builder_agent.worker import Worker

BURST_LAYERS = 2000
BUILD_LAYERS = 600  # more than a second
SIGNAL_LAYERS = 1200  # about three seconds
CLONING = "Cloning network graph"
SIGNALS = 200
SIGNAL_ROUNDS = 3
SENDER = """
import os, random, signal, sys, time
for _ in range(int(sys.argv[2])):
    time.sleep(random.uniform(0.004, 0.012))
    print(time.monotonic_ns(), flush=True)
    os.kill(int(sys.argv[1]), signal.SIGINT)
"""


LOGGER = trt.Logger(trt.Logger.INTERNAL_ERROR)  # a cancelled build logs an error, and bursts are cancelled


class TimedBuilder:
    """The real builder, whose call is timed where it is made."""

    def __init__(self) -> None:
        self.real = trt.Builder(LOGGER)
        self.logger = LOGGER
        self.wall_s = self.cpu_s = 0.0  # of the last build; cpu of the whole process

    @property
    def error_recorder(self) -> Any:
        """The real builder's recorder."""
        return self.real.error_recorder

    @error_recorder.setter
    def error_recorder(self, recorder: Any) -> None:
        self.real.error_recorder = recorder

    def build_serialized_network(self, network: Any, config: Any) -> Any:
        """Build, and note how long it took."""
        wall, cpu = time.perf_counter(), time.process_time()
        engine = self.real.build_serialized_network(network, config)
        self.wall_s, self.cpu_s = time.perf_counter() - wall, time.process_time() - cpu
        return engine


class Objects(NamedTuple):
    """What a caller has in hand before a build."""

    builder: TimedBuilder
    network: Any
    config: Any


def chain(layers: int) -> Objects:
    """Return a network of so many convolutions, one after the other, and a config for one target."""
    builder = TimedBuilder()
    network = builder.real.create_network(0)
    kernel = np.random.default_rng(0).standard_normal((8, 8, 3, 3)).astype(np.float32) / 10
    bias = np.zeros(8, np.float32)
    tensor = network.add_input("x", trt.float32, (1, 8, 16, 16))
    for _ in range(layers):
        layer = network.add_convolution_nd(tensor, 8, (3, 3), kernel, bias)
        layer.padding_nd = (1, 1)
        tensor = layer.get_output(0)
    network.mark_output(tensor)
    config = builder.real.create_builder_config()
    config.num_compute_capabilities = 1
    config.set_compute_capability(trt.ComputeCapability.SM89, 0)
    return Objects(builder, network, config)


class EmptyMonitor(trt.IProgressMonitor):  # type: ignore[misc] # the package has no types
    """The least that a Python monitor can do."""

    def __init__(self) -> None:
        trt.IProgressMonitor.__init__(self)

    def phase_start(self, phase_name: str, parent_phase: str | None, num_steps: int) -> None:
        """Do nothing."""

    def step_complete(self, phase_name: str, step: int) -> bool:  # noqa: ARG002 # TensorRT gives them by position
        """Let the build go on."""
        return True

    def phase_finish(self, phase_name: str) -> None:
        """Do nothing."""


class Stopwatch(trt.IProgressMonitor):  # type: ignore[misc] # the package has no types
    """Hands every callback on to ``inner``, notes when it came, and stops the build after the burst."""

    def __init__(self, inner: Any) -> None:
        trt.IProgressMonitor.__init__(self)
        self.inner = inner
        self.steps_ns: list[int] = []
        self.done = False

    def phase_start(self, phase_name: str, parent_phase: str | None, num_steps: int) -> None:
        """Hand on."""
        self.inner.phase_start(phase_name, parent_phase, num_steps)

    def step_complete(self, phase_name: str, step: int) -> bool:
        """Note the time of a step of the burst."""
        self.inner.step_complete(phase_name, step)
        if phase_name == CLONING:
            self.steps_ns.append(time.perf_counter_ns())
        return not self.done

    def phase_finish(self, phase_name: str) -> None:
        """Hand on; after the burst there is nothing more to see."""
        self.inner.phase_finish(phase_name)
        self.done = self.done or phase_name == CLONING

    def gaps_us(self) -> list[float]:
        """Return the times between two steps, in microseconds."""
        return [(after - before) / 1000 for before, after in zip(self.steps_ns, self.steps_ns[1:], strict=False)]


def burst(built: Objects, inner: Any) -> list[float]:
    """Return the gaps of one burst, in microseconds."""
    watch = Stopwatch(inner)
    built.config.progress_monitor = watch
    built.builder.build_serialized_network(built.network, built.config)
    return watch.gaps_us()


def measure_callback(folder: Path, repeats: int) -> dict[str, float]:
    """Return mean and p99 of our callbacks over the empty monitor's, in microseconds."""
    built = chain(BURST_LAYERS)
    empty: list[list[float]] = []
    ours: list[list[float]] = []
    burst(built, EmptyMonitor())  # warm
    for number in range(repeats):
        empty.append(burst(built, EmptyMonitor()))
        with builder_agent.observe(route="bench", output=folder / f"{number}.engine", home=folder / "home") as run:
            ours.append(burst(built, run.monitor))
    return {
        "steps_per_burst": float(len(ours[0]) + 1),
        "empty_mean_us": best(statistics.fmean, empty),
        "ours_mean_us": best(statistics.fmean, ours),
        "mean_over_empty_us": best(statistics.fmean, ours) - best(statistics.fmean, empty),
        "median_of_means_over_empty_us": statistics.median(map(statistics.fmean, ours))
        - statistics.median(map(statistics.fmean, empty)),
        "p99_over_empty_us": p99(joined(ours)) - p99(joined(empty)),
    }


def measure_signal() -> dict[str, float]:
    """Return the time from a signal's sending to the cancel flag while a build runs, in milliseconds.

    The least of several rounds, because other load on the machine delays single wake-ups, and the worst.
    """
    rounds = [signal_round() for _ in range(SIGNAL_ROUNDS)]
    return {
        "signals": float(sum(map(len, rounds))),
        "p50_ms": min(map(statistics.median, rounds)),
        "p99_ms": min(map(p99, rounds)),
        "p99_worst_round_ms": max(map(p99, rounds)),
    }


def signal_round() -> list[float]:
    """Return the times of the signals of one build, in milliseconds."""
    built = chain(SIGNAL_LAYERS)
    built.config.progress_monitor = EmptyMonitor()
    flags_ns: list[int] = []

    def request(source: CancelSource) -> None:
        state = CancelState(clock=system_clock, post=lambda *_: None)
        state.request(source)
        flags_ns.append(state.signalled_ns or 0)

    def build() -> int:
        built.builder.build_serialized_network(built.network, built.config)
        return time.monotonic_ns()

    handlers, worker = SignalHandlers(request), Worker("bench")
    handlers.install()
    worker.start()
    command = [sys.executable, "-c", SENDER, str(os.getpid()), str(SIGNALS)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as sender:
        ended_ns = worker.call(build, print)
        out, _ = sender.communicate()
    worker.stop()
    handlers.restore()
    during = [sent for sent in map(int, out.split()) if sent < ended_ns - NS_PER_S // 10]
    return [(min(flag for flag in flags_ns if flag >= sent) - sent) / 1e6 for sent in during]


def measure_build(folder: Path, repeats: int) -> dict[str, float]:
    """Return how much longer a build takes under ``run.build`` than with an empty monitor, as ratios."""
    times: dict[str, list[tuple[float, float]]] = {"empty": [], "ours": []}
    for number in range(repeats):
        for way in ("empty", "ours") if number % 2 else ("ours", "empty"):
            built = chain(BUILD_LAYERS)
            if way == "empty":
                built.config.progress_monitor = EmptyMonitor()
                built.builder.build_serialized_network(built.network, built.config)
            else:
                with builder_agent.observe(route="bench", output=folder / "o", home=folder / "home") as run:
                    run.build(*built)
            times[way].append((built.builder.wall_s, built.builder.cpu_s))
    wall = {way: [pair[0] for pair in pairs] for way, pairs in times.items()}
    cpu = {way: [pair[1] for pair in pairs] for way, pairs in times.items()}
    return {
        "builds_each": float(repeats),
        "empty_best_s": min(wall["empty"]),
        "wall_ratio": paired(wall["ours"], wall["empty"]),
        "cpu_ratio": paired(cpu["ours"], cpu["empty"]),
        "wall_ratio_of_best": min(wall["ours"]) / min(wall["empty"]),
    }


def paired(ours: list[float], empty: list[float]) -> float:
    """Return the median ratio of neighbouring builds: other load on the machine meets both alike."""
    return statistics.median(mine / theirs for mine, theirs in zip(ours, empty, strict=True))


def best(measure: Callable[[list[float]], float], bursts: list[list[float]]) -> float:
    """Return the least of a measure over bursts: what other load on the machine disturbed least."""
    return min(measure(gaps) for gaps in bursts)


def joined(bursts: list[list[float]]) -> list[float]:
    """Return all gaps of all bursts."""
    return [gap for gaps in bursts for gap in gaps]


def p99(values: list[float] | list[int]) -> float:
    """Return the 99th percentile: the least value that 99 % do not exceed."""
    ordered = sorted(values)
    return float(ordered[max(-(-len(ordered) * 99 // 100) - 1, 0)])


BARS = {
    ("callback", "mean_over_empty_us"): 2.0,
    ("callback", "p99_over_empty_us"): 10.0,
    ("signal", "p99_ms"): 1.0,
    ("build", "wall_ratio"): 1.01,
}


def rows(results: dict[str, dict[str, float]]) -> Iterator[str]:
    """Yield the lines of the table."""
    for group, values in results.items():
        for name, value in values.items():
            bar = BARS.get((group, name))
            mark = "" if bar is None else f"bar <= {bar:g}: {'met' if value <= bar else 'MISSED'}"
            yield f"{group:9} {name:30} {value:10.4f}  {mark}".rstrip()


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description="What the agent costs a build.")
    parser.add_argument("--repeats", type=int, default=12)
    parser.add_argument("--format", choices=["table", "json"], default="table")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        results = {
            "callback": measure_callback(folder, arguments.repeats),
            "signal": measure_signal(),
            "build": measure_build(folder, arguments.repeats),
        }
    if arguments.format == "json":
        print(json.dumps(results, indent=2))
    else:
        print("\n".join(rows(results)))


if __name__ == "__main__":
    main()
