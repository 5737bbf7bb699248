"""Working ahead: the next item is made in a thread while the last one is used."""

from collections.abc import Generator, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar, cast

T = TypeVar("T")
_END = object()


def ahead(items: Iterator[T]) -> Generator[T, None, None]:
    """Yield the same items; one more is being made in a thread of its own meanwhile, and never two."""
    with ThreadPoolExecutor(1) as pool:
        pending = pool.submit(next, items, _END)
        while (item := pending.result()) is not _END:
            pending = pool.submit(next, items, _END)
            yield cast("T", item)
