"""Which TensorRT a build uses: TensorRT-RTX and the full TensorRT have the same interface."""

import sys
from collections.abc import Callable
from types import ModuleType
from typing import Any

from builder_agent.errors import BackendError
from builder_agent.trt import tensorrt_backend, tensorrt_rtx_backend

# In order of preference where nothing tells which is meant. Both may be installed.
_BACKENDS: dict[str, Callable[[], ModuleType]] = {
    tensorrt_rtx_backend.NAME: tensorrt_rtx_backend.load,
    tensorrt_backend.NAME: tensorrt_backend.load,
}


def load(package: str | None = None) -> ModuleType:
    """Return the TensorRT module of that name; without a name TensorRT-RTX where installed, else TensorRT.

    Raises:
        BackendError: the name is unknown, or the package is not installed.
    """
    if package is not None and package not in _BACKENDS:
        raise BackendError(f"{package!r} is no TensorRT package: give one of {', '.join(_BACKENDS)}")
    missing = []
    for name in [package] if package is not None else _BACKENDS:
        try:
            return _BACKENDS[name]()
        except ImportError as error:
            missing.append(str(error))
    wanted = package or "tensorrt-rtx"
    raise BackendError(f"{'; '.join(missing)}. Install it: pip install enginetrail[{wanted.replace('_', '-')}]")


def loaded() -> ModuleType:
    """Return the one TensorRT module that this process has imported, or load the preferred one.

    Raises:
        BackendError: both are imported, so which is meant cannot be told; or none is installed.
    """
    names = [name for name in _BACKENDS if name in sys.modules]
    if len(names) > 1:
        raise BackendError(
            f"both {' and '.join(names)} are imported: use run.build, which sees which of them the config belongs to, "
            "or give observe(package=...)"
        )
    return load(names[0] if names else None)


def package_of(config: Any) -> str:
    """Return the name of the TensorRT package that a builder config comes from.

    Raises:
        BackendError: it comes from neither.
    """
    module = type(config).__module__
    # Longest first: the classes live in tensorrt_rtx_bindings.tensorrt_rtx or tensorrt_bindings.tensorrt.
    for name in sorted(_BACKENDS, key=len, reverse=True):
        if module.split(".")[0].startswith(name):
            return name
    raise BackendError(f"{type(config).__qualname__} of {module} is no TensorRT builder config")


def version_of(module: ModuleType) -> str:
    """Return the version of a TensorRT module, e.g. ``1.7.1.116``."""
    return str(module.__version__)
