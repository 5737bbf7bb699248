"""Items gathered until there is enough of them, or it took long enough."""

import time
from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

Item = TypeVar("Item")
Held = TypeVar("Held")


def gathered(
    items: Iterable[Item], put: Callable[[Held | None, Item], Held], *, enough: Callable[[Held], bool], max_s: float
) -> Iterator[Held]:
    """Yield what ``put`` makes of consecutive items: once it is ``enough``, at the end, and before an error.

    ``max_s`` counts from when it was asked for, and is looked at as often as an item comes.
    """
    held, began = None, time.monotonic()
    try:
        for item in items:
            held = put(held, item)
            if enough(held) or time.monotonic() - began >= max_s:
                yield held
                held, began = None, time.monotonic()
    except Exception:
        if held is not None:
            yield held
        raise
    if held is not None:
        yield held
