"""What the building process prints, line by line, for a caller that has the terminal in use."""

import os
import threading
from collections.abc import Callable

from build_events.clock import NS_PER_S


class ChildOutput:
    """A pipe that stands in for the child's stdout and stderr, and a thread that reads it to its end."""

    def __init__(self, on_line: Callable[[str], None]) -> None:
        self._on_line = on_line
        self._read_end, self.write_end = os.pipe()
        self._thread = threading.Thread(target=self._read, name="child-output", daemon=True)
        self._thread.start()

    def close(self, timeout_ns: int) -> None:
        """Wait until everything printed was handed on; call when the child and its group are gone."""
        self.close_write_end()
        self._thread.join(timeout_ns / NS_PER_S)

    def close_write_end(self) -> None:
        """Leave the writing end to the child, so that the pipe ends with it."""
        if self.write_end >= 0:
            os.close(self.write_end)
            self.write_end = -1

    def _read(self) -> None:
        with os.fdopen(self._read_end, encoding="utf-8", errors="replace") as pipe:
            for line in pipe:
                self._on_line(line.rstrip("\n"))
