"""Programs from the Go module proxy, each built from a module of its own with every dependency locked."""

from collections.abc import Sequence
from pathlib import Path

from deploy.services.cache import BuildCache
from deploy.services.spec import SOURCES
from deploy.services.tools import Tools

# Nothing outside go.mod and go.sum decides, and no path of this machine is in the binary.
_FLAGS = ("build", "-mod=readonly", "-trimpath")


def go_program(
    name: str, package: str, tools: Tools, cache: BuildCache, *, stamp: str = "", tags: str = "", otherwise: str
) -> Path:
    """Return the path of a program built from ``package`` of the module ``sources/NAME``.

    ``stamp`` sets variables at link time (``-X`` of the Go linker), ``tags`` are build tags.

    Raises:
        MissingToolError: Go is not here; says what to install, or ``otherwise``.
        BuildFailedError: it could not be downloaded or compiled.
    """
    flags = (*_FLAGS, f"-tags={tags}", f"-ldflags=-s -w {stamp}".rstrip())
    sources = SOURCES / name

    def build(folder: Path) -> None:
        command = (*flags, "-o", str(folder / name), package)
        compile_go(tools, command, name=name, module=sources, log=folder.with_suffix(".log"), otherwise=otherwise)

    return cache.obtain(name, sources, " ".join((*flags, package)), build) / name


def compile_go(tools: Tools, command: Sequence[str], *, name: str, module: Path, log: Path, otherwise: str) -> None:
    """Run the Go command in the folder of a module, its output appended to ``log``.

    Raises:
        MissingToolError: Go is not here; says what to install, or ``otherwise``.
        BuildFailedError: it did not succeed.
    """
    go = tools.require("go", name, otherwise)
    tools.build((go, *command), folder=module, log=log, GOWORK="off")
