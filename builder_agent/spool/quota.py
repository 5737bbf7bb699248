"""How full the spool is: what a run may still write follows from it.

Policy: from ``limit`` on, progress, heartbeats and samples are dropped; from a quarter above it, phases,
too. What says how a run began, was cancelled and ended is always written. Every drop is counted and
declared by ``stream.closed``, so such a run is not complete and a gate holds.
"""

import os
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Literal

from build_events.kafka_settings import KafkaSettingsError
from build_events.local_log.layout import KINDS

Pressure = Literal["none", "full", "overfull"]
DEFAULT_BYTES = 1 << 30  # some 250 builds of half an hour
MEASURE_EVERY_S = 1.0
OVERFULL = 1.25
VARIABLE = "ENGINETRAIL_SPOOL_BYTES"


def spool_limit(environment: Mapping[str, str]) -> int:
    """Return the bytes that ``$ENGINETRAIL_SPOOL_BYTES`` allows a spool, else the default.

    Raises:
        KafkaSettingsError: it is no positive whole number.
    """
    text = environment.get(VARIABLE) or str(DEFAULT_BYTES)
    if not text.isascii() or not text.isdecimal() or int(text) == 0:
        raise KafkaSettingsError(f"{VARIABLE} is {text!r}; expected a number of bytes above 0")
    return int(text)


class SpoolQuota:
    """Measures a spool, at most once a second. One thread uses it."""

    def __init__(self, folder: Path, limit: int) -> None:
        """``limit`` in bytes."""
        self._folder = folder
        self._limit = limit
        self._measured_at = float("-inf")
        self._pressure: Pressure = "none"

    def pressure(self) -> Pressure:
        """Return how full the spool was within the last second."""
        now = time.monotonic()
        if now - self._measured_at >= MEASURE_EVERY_S:
            size = sum(_bytes_in(f"{self._folder}/{kind}") for kind in KINDS)
            self._pressure = _judge(size, self._limit)
            # A spool so large that measuring takes long is not measured the more for it.
            self._measured_at = time.monotonic() + 20 * (time.monotonic() - now)
        return self._pressure


def _judge(size: int, limit: int) -> Pressure:
    if size < limit:
        return "none"
    return "full" if size < limit * OVERFULL else "overfull"


def _bytes_in(folder: str) -> int:
    size = 0
    try:
        with os.scandir(folder) as entries:
            for entry in entries:
                is_folder = entry.is_dir(follow_symlinks=False)
                size += _bytes_in(entry.path) if is_folder else entry.stat(follow_symlinks=False).st_size
    except OSError:  # removed meanwhile, or not there yet
        return size
    return size
