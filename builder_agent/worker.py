"""One thread that does a run's work, so that an interrupt of the caller never tears it.

The builder recurses: pointwise chains of about 4,000 layers overflow 8 MiB (measured), so the thread
has a stack of 512 MiB, of which only what is used costs memory. It is not a daemon: an interpreter
that exits while a daemon thread builds crashes (measured, 7 of 9 runs).
"""

import contextlib
import logging
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from queue import Empty, SimpleQueue
from typing import Any, Final, TypeVar

T = TypeVar("T")

STACK_BYTES: Final = 512 << 20
_STACKS_BYTES: Final = (STACK_BYTES, 64 << 20)  # the second where address space is limited
# A signal that arrives just before a wait blocks does not end that wait, so no wait is longer than this.
_RECHECK_S: Final = 0.1
_stack_size: Final = threading.Lock()  # threading.stack_size is one value for the whole process

_log = logging.getLogger(__name__)


@dataclass(slots=True)
class _Job:
    work: Callable[[], Any]
    done: bool = False
    result: Any = None
    error: BaseException | None = None
    finished: SimpleQueue[None] = field(default_factory=SimpleQueue)


class Worker:
    """Runs jobs one after the other; the caller waits and stays interruptible."""

    def __init__(self, name: str) -> None:
        self._jobs: SimpleQueue[_Job | None] = SimpleQueue()
        self._thread = threading.Thread(target=self._run, name=name, daemon=False)
        self.interrupts: list[BaseException] = []  # that reached a caller who waited, in order

    def start(self) -> None:
        """Start the thread with the largest stack that there is room for.

        Raises:
            RuntimeError: the system starts no thread at all.
        """
        with _stack_size:
            before = threading.stack_size()
            try:
                for size in _STACKS_BYTES:
                    threading.stack_size(size)
                    try:
                        self._thread.start()
                    except RuntimeError as error:
                        _log.warning("no thread with a stack of %d MiB (%s), trying less", size >> 20, error)
                    else:
                        return
                threading.stack_size(before)
                self._thread.start()
            finally:
                threading.stack_size(before)

    def call(self, work: Callable[[], T], on_interrupt: Callable[[BaseException], object]) -> T:
        """Return what ``work`` returns on the thread, or raise what it raises.

        An exception that a signal handler raises here is given to ``on_interrupt`` and kept in
        ``interrupts``; the wait goes on, because the work cannot be left half done.
        """
        job = _Job(work)
        self._jobs.put(job)
        told = len(self.interrupts)
        # Whatever line of the body an interrupt hits, it is told in the next round.
        while True:
            try:
                while told < len(self.interrupts):
                    on_interrupt(self.interrupts[told])
                    told += 1
                if job.done:
                    break
                with contextlib.suppress(Empty):
                    job.finished.get(timeout=_RECHECK_S)
            except BaseException as interrupt:  # noqa: BLE001 # whatever the host's signal handlers raise
                self.interrupts.append(interrupt)
        if job.error is not None:
            raise job.error
        result: T = job.result
        return result

    def stop(self) -> None:
        """Let the thread end once its jobs are done; harmless when it never started."""
        self._jobs.put(None)

    def _run(self) -> None:
        while (job := self._next()) is not None:
            try:
                job.result = job.work()
            except BaseException as error:  # noqa: BLE001 # raised again in the caller
                job.error = error
            job.done = True
            job.finished.put(None)
            del job  # the engine that a result holds is gigabytes

    def _next(self) -> _Job | None:
        while True:
            try:
                return self._jobs.get(timeout=_RECHECK_S)
            except Empty:
                # A host that never ended its run is leaving: do not hold its exit.
                if not threading.main_thread().is_alive():
                    return None
