"""Waiting for something that comes about by itself, within a bound."""

import time
from collections.abc import Callable

PATIENCE_S = 90.0  # with a busy machine; never a bar of time


def until(condition: Callable[[], bool], *, within_s: float = PATIENCE_S, every_s: float = 0.005) -> None:
    """Return once ``condition`` holds, and fail if it does not in time."""
    end = time.monotonic() + within_s
    while not condition():
        assert time.monotonic() < end, "the condition did not come about in time"
        time.sleep(every_s)
