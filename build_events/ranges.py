"""Sets of sequence numbers as half-open ranges, ascending and never touching."""

from collections.abc import Iterable

from build_events.state import Ranges


def of(numbers: Iterable[int]) -> Ranges:
    """Return the ranges that hold exactly these numbers."""
    merged: list[list[int]] = []
    for number in sorted(set(numbers)):
        if merged and merged[-1][1] == number:
            merged[-1][1] = number + 1
        else:
            merged.append([number, number + 1])
    return tuple((low, high) for low, high in merged)


def union(left: Ranges, right: Ranges) -> Ranges:
    """Return the ranges that hold the numbers of either."""
    if not left or not right:
        return left or right
    merged: list[list[int]] = []
    for low, high in sorted((*left, *right)):
        if merged and merged[-1][1] >= low:
            merged[-1][1] = max(merged[-1][1], high)
        else:
            merged.append([low, high])
    return tuple((low, high) for low, high in merged)


def contains(ranges: Ranges, number: int) -> bool:
    """Say whether a number is in the ranges."""
    return any(low <= number < high for low, high in ranges)


def size(ranges: Ranges) -> int:
    """Return how many numbers the ranges hold."""
    return sum(high - low for low, high in ranges)


def gaps(ranges: Ranges, end: int) -> Ranges:
    """Return what is missing from ``[0, end)``."""
    missing: list[tuple[int, int]] = []
    position = 0
    for low, high in ranges:
        if low >= end:
            break
        if low > position:
            missing.append((position, low))
        position = high
    if position < end:
        missing.append((position, end))
    return tuple(missing)


def text(ranges: Ranges) -> str:
    """Return the ranges for people, e.g. ``3, 7-9``."""
    return ", ".join(str(low) if high == low + 1 else f"{low}-{high - 1}" for low, high in ranges)
