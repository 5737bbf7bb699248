"""Keeps what signal handlers raise from TensorRT, which would swallow it.

A builder that runs in the main thread gets a Ctrl-C like this: C++ calls a Python callback, and Python
runs the pending signal handlers as it enters the function, before any ``try`` inside it. Their
``KeyboardInterrupt`` goes to TensorRT: lost, and taken for a ``False`` where the callback was
``step_complete`` (measured, in a silent window of the builder).

So the callbacks are properties. Looking one up resumes a generator, and nothing but C code stands in
between; the handlers therefore run inside the generator's ``try``. What remains is a signal between the
look-up and the call, a tenth of a microsecond: that call is missed, and the next look-up tells of it.
Each thread has generators of its own: two must not resume the same one, and TensorRT may call back from
several.
"""

import operator
import threading
from collections.abc import Callable, Iterator
from typing import Any, Protocol


class _Guarded(Protocol):
    def interrupted(self, where: str, error: BaseException) -> None:
        """Take an exception of a signal handler; raises nothing."""


class Guards(threading.local):
    """This thread's way to the callbacks: each attribute is the function to be called."""

    phase_start = property(operator.methodcaller("next_phase_start"))
    step_complete = property(operator.methodcaller("next_step_complete"))
    phase_finish = property(operator.methodcaller("next_phase_finish"))

    def __init__(self, monitor: _Guarded, callbacks: list[Callable[..., Any]], awaited: list[list[str]]) -> None:
        """Run once in every thread that looks a callback up; ``awaited`` gets what that thread looked up."""
        mine: list[str] = []
        awaited.append(mine)
        start, step, finish = (_handed_out(monitor, callback, mine).__next__ for callback in callbacks)
        for first in (start, step, finish):
            first()  # a generator's first entry lies before its `try` too
            mine.clear()
        self.next_phase_start, self.next_step_complete, self.next_phase_finish = start, step, finish


def guarded(callback: str) -> Any:
    """Return the property that hands out one callback of an object's ``guards``."""
    return property(operator.attrgetter(f"guards.{callback}"))


def tell_missed(monitor: _Guarded, awaited: list[str]) -> None:
    """Tell the monitor of a look-up that no call followed: a signal handler raised on the way into it."""
    while awaited:
        where = awaited.pop()
        monitor.interrupted(where, KeyboardInterrupt(f"swallowed by the builder on its way into {where}"))


def _handed_out(monitor: _Guarded, callback: Callable[..., Any], awaited: list[str]) -> Iterator[Callable[..., Any]]:
    name = callback.__name__

    def call(*arguments: Any) -> Any:
        try:
            awaited.clear()
            return callback(*arguments)
        except BaseException as error:  # noqa: BLE001 # the callback catches its own: this came before or after it
            monitor.interrupted(name, error)
            if error.__traceback__ is not None and error.__traceback__.tb_next is None and name != "step_complete":
                return None  # after it: what it had to do is done; only a step has an answer to give again
        return callback(*arguments)

    while True:
        try:
            tell_missed(monitor, awaited)
            awaited.append(name)
            yield call
        except GeneratorExit:
            return
        except BaseException as error:  # noqa: BLE001 # whatever the host's handlers raise
            awaited.clear()
            monitor.interrupted(name, error)
