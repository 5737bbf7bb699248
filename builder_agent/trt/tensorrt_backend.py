"""The one file that imports ``tensorrt``, lazily."""

from types import ModuleType

NAME = "tensorrt"


def load() -> ModuleType:
    """Return the module.

    Raises:
        ImportError: it is not installed.
    """
    import tensorrt  # noqa: PLC0415 # heavy, and not every process builds

    module: ModuleType = tensorrt
    return module
