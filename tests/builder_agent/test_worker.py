"""The run's own thread: a large stack, results and errors, and interrupts that tear nothing."""

import ctypes
import signal
import threading
import time
from types import FrameType

import pytest

from builder_agent.worker import STACK_BYTES, Worker


def stack_bytes() -> int:
    """Return the size of the calling thread's stack, as the C library has it."""
    libc = ctypes.CDLL(None)
    libc.pthread_self.restype = ctypes.c_ulong
    attributes = ctypes.create_string_buffer(64)  # sizeof(pthread_attr_t) is 56
    size = ctypes.c_size_t()
    assert libc.pthread_getattr_np(ctypes.c_ulong(libc.pthread_self()), attributes) == 0
    assert libc.pthread_attr_getstacksize(attributes, ctypes.byref(size)) == 0
    libc.pthread_attr_destroy(attributes)
    return size.value


@pytest.fixture
def worker() -> Worker:
    """Return a worker that ends with the test."""
    made = Worker("test")
    made.start()
    return made


def ignore(_: BaseException) -> None:
    """Do nothing about an interrupt."""


def test_the_builder_gets_a_stack_that_its_recursion_fits_in(worker: Worker) -> None:
    """And other threads of the process keep theirs."""
    before = threading.stack_size()
    assert worker.call(stack_bytes, ignore) >= STACK_BYTES
    worker.stop()
    assert threading.stack_size() == before


def test_results_and_errors_come_back_to_the_caller(worker: Worker) -> None:
    """One job after the other, whatever became of the one before."""

    def fail() -> None:
        raise LookupError("in the worker")

    assert worker.call(lambda: 42, ignore) == 42
    with pytest.raises(LookupError, match="in the worker"):
        worker.call(fail, ignore)
    assert worker.call(lambda: 43, ignore) == 43
    worker.stop()


def test_an_interrupt_of_the_wait_is_handed_over_and_the_work_goes_on(worker: Worker) -> None:
    """A job cannot be left half done; what interrupted is kept, to be raised later."""
    raised: list[BaseException] = []

    def interrupt(_: int, __: FrameType | None) -> None:
        raised.append(KeyboardInterrupt())
        raise raised[-1]

    told: list[BaseException] = []

    def work() -> str:
        for _ in range(3):
            signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGUSR1)
            time.sleep(0.05)
        return "done"

    previous = signal.signal(signal.SIGUSR1, interrupt)
    try:
        assert worker.call(work, told.append) == "done"
    finally:
        signal.signal(signal.SIGUSR1, previous)
    worker.stop()
    assert raised
    assert worker.interrupts == told == raised
