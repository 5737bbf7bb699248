"""The builder agent: observes, cancels and records one TensorRT engine build.

    with builder_agent.observe(route="resnet50/fp16/sm89", output="resnet50.engine") as run:
        config.progress_monitor = run.monitor
        run.save(builder.build_serialized_network(network, config))

Importing this package loads nothing; the names below are loaded when they are first used.
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from builder_agent.bootstrap import observe
    from builder_agent.errors import (
        AgentError,
        ArtifactWriteError,
        BackendError,
        OutputBusyError,
        OutputFolderError,
        UsageError,
    )
    from builder_agent.session import BuildResult, RunSession

__all__ = [
    "AgentError",
    "ArtifactWriteError",
    "BackendError",
    "BuildResult",
    "OutputBusyError",
    "OutputFolderError",
    "RunSession",
    "UsageError",
    "observe",
]

_HOMES = {
    "observe": "builder_agent.bootstrap",
    "BuildResult": "builder_agent.session",
    "RunSession": "builder_agent.session",
}


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(_HOMES.get(name, "builder_agent.errors")), name)
