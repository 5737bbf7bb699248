"""The one file that imports ``tensorrt_rtx``, lazily."""

from types import ModuleType

NAME = "tensorrt_rtx"


def load() -> ModuleType:
    """Return the module.

    Raises:
        ImportError: it is not installed.
    """
    import tensorrt_rtx  # noqa: PLC0415 # 0.1 s, and not every process builds

    module: ModuleType = tensorrt_rtx
    return module
