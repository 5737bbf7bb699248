"""A host program that publishes a large artifact and may stop itself, by SIGSTOP, beside the rename.

``python -m tests.builder_agent.hosts.publishing FOLDER before|after|never``.
"""

import signal
import sys
import threading
from pathlib import Path

import builder_agent

SIZE = 192 << 20  # bytes: a good part of a second of writing, in chunks


def stop_here() -> None:
    """Stop the process before this thread goes on: a signal to the process may reach another thread first."""
    signal.pthread_kill(threading.get_ident(), signal.SIGSTOP)


def main(folder: Path, stop: str) -> None:
    """Save bytes that are no engine of a known layout, through the artifact writer that every build uses."""
    rename = Path.rename

    def stopping(path: Path, target: Path) -> Path:
        if stop == "before":
            stop_here()
        renamed = rename(path, target)
        if stop == "after":
            stop_here()
        return renamed

    Path.rename = stopping  # type: ignore[method-assign, assignment] # the moment between two lines of the writer
    with builder_agent.observe(route="host", output=folder / "out.engine", home=folder / "home") as run:
        run.save(b"\x5a" * SIZE)


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
