"""Time as a value: one reading of the wall clock and of the monotonic clock together."""

import functools
import pathlib
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime

NS_PER_S = 1_000_000_000
NS_PER_MS = 1_000_000


@dataclass(frozen=True, slots=True)
class Instant:
    """When something happened. ``wall_ns`` is for people, ``monotonic_ns`` for durations.

    Differences of ``monotonic_ns`` mean something only within one boot of one host.
    """

    wall_ns: int  # nanoseconds since 1970-01-01 UTC
    monotonic_ns: int  # CLOCK_MONOTONIC


Clock = Callable[[], Instant]


def system_clock() -> Instant:
    """Read both clocks of this host."""
    return Instant(time.time_ns(), time.monotonic_ns())


@functools.cache
def boot_id() -> str:
    """Return the id of this boot of the kernel, the domain in which monotonic times compare."""
    return pathlib.Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()


def to_iso(wall_ns: int) -> str:
    """Return ISO 8601 in UTC with nine decimals and ``Z``."""
    seconds, fraction = divmod(wall_ns, NS_PER_S)
    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%dT%H:%M:%S}.{fraction:09d}Z"


def from_iso(text: str) -> int:
    """Return nanoseconds since 1970 of an ISO 8601 time with an offset.

    Raises:
        ValueError: no ISO 8601 time, or one without an offset.
    """
    moment = datetime.fromisoformat(text)
    if moment.tzinfo is None:
        msg = f"{text!r} has no UTC offset"
        raise ValueError(msg)
    # datetime keeps six decimals and drops the rest, so the fraction is read from the text.
    _, point, tail = text.partition(".")
    digits = ""
    for character in tail:
        if not character.isdigit():
            break
        digits += character
    fraction = int(digits[:9].ljust(9, "0")) if point else 0
    return int(moment.replace(microsecond=0).timestamp()) * NS_PER_S + fraction
