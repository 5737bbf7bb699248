"""What a forked child of the host must not do: write, hold our locks, or end our runs."""

import functools
import os
import weakref
from typing import Protocol


class _ForkAware(Protocol):
    def after_fork_in_child(self) -> None:
        """Let go of everything shared with the parent; called in the child, before anything else runs."""


_objects: "weakref.WeakSet[_ForkAware]" = weakref.WeakSet()


def register(aware: _ForkAware) -> None:
    """Have ``aware.after_fork_in_child`` called in every forked child for as long as the object lives."""
    _install()
    _objects.add(aware)


@functools.cache
def _install() -> None:
    os.register_at_fork(after_in_child=_tell_all)


def _tell_all() -> None:
    for aware in list(_objects):
        aware.after_fork_in_child()
