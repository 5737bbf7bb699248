"""Working ahead: the next items are made in a thread while one is used."""

from collections import deque
from collections.abc import Generator, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar, cast

T = TypeVar("T")
_END = object()


def ahead(items: Iterator[T], *, at_most: int = 1) -> Generator[T, None, None]:
    """Yield the same items; up to ``at_most`` more are made, in a thread of their own, meanwhile."""
    with ThreadPoolExecutor(1) as pool:
        pending = deque(pool.submit(next, items, _END) for _ in range(at_most))
        try:
            while (item := pending.popleft().result()) is not _END:
                pending.append(pool.submit(next, items, _END))
                yield cast("T", item)
        finally:
            pool.shutdown(wait=False, cancel_futures=True)
