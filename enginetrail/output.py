"""The last word of a command whose exit code means more than its output."""

import os
import sys
from pathlib import Path


def tell_result(text: str) -> None:
    """Print a result on standard output; that nobody reads it does not change what happened."""
    try:
        sys.stdout.write(f"{text}\n")
        sys.stdout.flush()
    except OSError:
        # The interpreter flushes again at exit, and would turn its failure into an exit code of its own.
        with Path(os.devnull).open("wb") as nowhere:
            os.dup2(nowhere.fileno(), sys.stdout.fileno())
