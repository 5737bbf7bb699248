"""What the building process uses, read from the kernel and NVML."""

import functools
import os
from typing import Literal

import psutil

from build_events.clock import NS_PER_S
from build_events.events import ProcessObserved
from builder_agent.trt import gpu


@functools.cache
def _process(pid: int) -> psutil.Process:
    return psutil.Process(pid)


def observe_process(moment: Literal["before", "during", "after"]) -> ProcessObserved:
    """Return this process's resources now: resident bytes, CPU, threads, open file descriptors, GPU memory."""
    pid = os.getpid()
    process = _process(pid)
    with process.oneshot():
        cpu = process.cpu_times()
        memory, why_not = gpu.process_memory(pid)
        return ProcessObserved(
            moment=moment,
            pid=pid,
            rss_bytes=process.memory_info().rss,
            cpu_ns=int((cpu.user + cpu.system) * NS_PER_S),
            threads=process.num_threads(),
            open_files=process.num_fds(),
            gpu_memory_bytes=memory,
            gpu_unobserved=why_not,
        )
