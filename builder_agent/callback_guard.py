"""Keeps what signal handlers raise from TensorRT, which would swallow it.

A builder that runs in the main thread gets a Ctrl-C like this: C++ calls a Python callback, and Python
runs the pending signal handlers as it enters the function, before any ``try`` inside it. Their
``KeyboardInterrupt`` goes to TensorRT: lost, and taken for a ``False`` where the callback was
``step_complete`` (measured, in a silent window of the builder).

So the callbacks are properties. Looking one up resumes a generator, and nothing but C code stands in
between; the handlers therefore run inside the generator's ``try``. Each thread has generators of its
own: two threads must not resume the same one, and TensorRT may call back from several.
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

    def __init__(
        self,
        monitor: _Guarded,
        phase_start: Callable[..., None],
        step_complete: Callable[..., bool],
        phase_finish: Callable[..., None],
    ) -> None:
        """Run once in every thread that looks a callback up."""
        self.next_phase_start = _handed_out(monitor, phase_start).__next__
        self.next_step_complete = _handed_out(monitor, step_complete).__next__
        self.next_phase_finish = _handed_out(monitor, phase_finish).__next__


def guarded(callback: str) -> Any:
    """Return the property that hands out one callback of an object's ``guards``."""
    return property(operator.attrgetter(f"guards.{callback}"))


def _handed_out(monitor: _Guarded, callback: Callable[..., Any]) -> Iterator[Callable[..., Any]]:
    while True:
        try:
            yield callback
        except GeneratorExit:
            return
        except BaseException as error:  # noqa: BLE001 # whatever the host's handlers raise
            monitor.interrupted(callback.__name__, error)
