"""What NVML tells of the GPUs: the one file that imports ``cuda``, lazily.

NVML only, never the CUDA runtime: a process that has initialised CUDA cannot fork workers that use it.
"""

import functools
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any, TypeVar

T = TypeVar("T")

# One of these exists where a driver is loaded: the device node, the module's own file, or WSL's node.
_DRIVER_SIGNS = (Path("/dev/nvidiactl"), Path("/proc/driver/nvidia/version"), Path("/dev/dxg"))


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuFacts:
    """This machine's GPUs, or why there is none to see."""

    sku: str  # product names in order of the device index, each once; "none" without a usable GPU
    absence: str | None = None  # why sku is "none"
    driver_version: str | None = None
    driver_absence: str | None = None
    targets: tuple[str, ...] = ()  # compute capability of each GPU, e.g. sm90, each once


class _NvmlUnavailableError(Exception):
    """NVML cannot be used; the text says why."""


def gpu_facts() -> GpuFacts:
    """Return the GPUs and the driver as NVML sees them. Never raises."""
    try:
        nvml = _nvml()
    except _NvmlUnavailableError as error:
        return GpuFacts(sku="none", absence=str(error), driver_absence=str(error))
    try:
        driver = str(nvml.system_get_driver_version())
        handles = _handles(nvml)
        if not handles:
            return GpuFacts(sku="none", absence="the driver lists no GPU", driver_version=driver)
        names = _each(lambda handle: str(nvml.device_get_name(handle)), handles)
        capabilities = _each(lambda handle: _target(nvml.device_get_cuda_compute_capability(handle)), handles)
    except nvml.NvmlError as error:
        why = f"NVML failed: {error}"
        return GpuFacts(sku="none", absence=why, driver_absence=why)
    return GpuFacts(sku=", ".join(names), driver_version=driver, targets=capabilities)


def process_memory(pid: int) -> tuple[int | None, str | None]:
    """Return the bytes of GPU memory that a process holds on all GPUs, or ``None`` and why not. Never raises."""
    try:
        nvml = _nvml()
    except _NvmlUnavailableError as error:
        return None, str(error)
    try:
        used = [
            int(process.used_gpu_memory)
            for handle in _handles(nvml)
            for process in nvml.device_get_compute_running_processes_v3(handle)
            if int(process.pid) == pid
        ]
    except nvml.NvmlError as error:
        return None, f"NVML failed: {error}"
    if not used:
        return None, "NVML lists no such process: it has no CUDA context, or a container hides its id"
    return sum(used), None


@functools.cache
def _nvml() -> ModuleType:
    """Return NVML, initialised once for the life of the process.

    Raises:
        _NvmlUnavailableError: there is no driver, no NVML, or no ``cuda-bindings`` package.
    """
    # Looking for files first spares a machine without a driver 0.4 s of imports and library searches.
    if not any(sign.exists() for sign in _DRIVER_SIGNS):
        raise _NvmlUnavailableError("no NVIDIA driver: none of " + ", ".join(map(str, _DRIVER_SIGNS)))
    try:
        from cuda.bindings import nvml  # noqa: PLC0415 # heavy, and optional
    except ImportError as error:
        raise _NvmlUnavailableError(f"cuda-python is not installed ({error}); install enginetrail[cuda]") from error
    try:
        nvml.init_v2()
    except (nvml.NvmlError, RuntimeError) as error:  # RuntimeError: the library is not found
        raise _NvmlUnavailableError(f"NVML does not start: {error}") from error
    module: ModuleType = nvml
    return module


def _handles(nvml: ModuleType) -> list[int]:
    return [nvml.device_get_handle_by_index_v2(index) for index in range(nvml.device_get_count_v2())]


def _each(read: Callable[[int], T], handles: list[int]) -> tuple[T, ...]:
    return tuple(dict.fromkeys(read(handle) for handle in handles))


def _target(capability: Any) -> str:
    major, minor = capability
    return f"sm{major}{minor}"
