"""The building process as its supervisor sees it: started, signalled on time, reaped with its group.

One thread watches the process and is the only one that signals or reaps it, so that no signal goes
to a process id that was already given to somebody else, and a SIGKILL that is due never waits for
the terminal or the disk.
"""

import contextlib
import dataclasses
import os
import select
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass

from build_events.clock import NS_PER_MS, Clock, Instant
from builder_agent.supervised.control import BuildSpec, CancelMessage, write_message

_STDERR_FD = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Exit:
    """How the building process ended."""

    returncode: int  # negative: minus the number of the signal that ended it
    at: Instant
    signals_sent: tuple[str, ...]  # names, in order

    @property
    def exit_code(self) -> int | None:
        """The code it left with, ``None`` where a signal ended it."""
        return self.returncode if self.returncode >= 0 else None

    @property
    def signal_name(self) -> str | None:
        """The signal that ended it, e.g. SIGKILL, ``None`` where it left by itself."""
        return signal.Signals(-self.returncode).name if self.returncode < 0 else None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Due:
    """When the process is to be signalled, CLOCK_MONOTONIC nanoseconds; ``None`` = not as far as known."""

    terminate_ns: int | None = None
    kill_ns: int | None = None

    def earliest(self) -> int | None:
        return min((at for at in (self.terminate_ns, self.kill_ns) if at is not None), default=None)


class ChildProcess:
    """A building process in a session and a process group of its own.

    Start it from a thread that lives as long as the process: the kernel ties the child's
    parent-death signal to the thread that forked it.
    """

    def __init__(
        self, spec: BuildSpec, *, clock: Clock, on_exit: Callable[[Exit], None], stderr: int | None = None
    ) -> None:
        self._clock = clock
        self._on_exit = on_exit
        self._due = _Due()
        self._sent: list[str] = []
        read_end, self._pipe = os.pipe()
        try:
            self._process = _spawn(read_end, stderr)
        except OSError:
            os.close(self._pipe)
            raise
        finally:
            os.close(read_end)
        self._pidfd = os.pidfd_open(self._process.pid)
        self._wake = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)
        self._watcher = threading.Thread(target=self._watch, name="child-watcher", daemon=True)
        self._watcher.start()
        write_message(self._pipe, spec)

    @property
    def pid(self) -> int:
        """Process id, and id of its process group."""
        return self._process.pid

    def send(self, message: CancelMessage) -> bool:
        """Pass on a request; say whether the process still had the pipe open."""
        return write_message(self._pipe, message)

    def schedule(self, *, terminate_ns: int | None, kill_ns: int | None) -> None:
        """Replace the moments of SIGTERM and SIGKILL; one that was sent is not sent again."""
        due = _Due(terminate_ns=terminate_ns, kill_ns=kill_ns)
        if due != self._due:
            self._due = due
            os.eventfd_write(self._wake, 1)

    def close(self) -> None:
        """End the process by SIGKILL if it still lives, wait until it is reaped, and close the pipe."""
        self.schedule(terminate_ns=None, kill_ns=0)
        self._watcher.join()
        for fd in (self._pipe, self._wake, self._pidfd):
            os.close(fd)

    def _watch(self) -> None:
        poller = select.poll()
        poller.register(self._pidfd, select.POLLIN)
        poller.register(self._wake, select.POLLIN)
        while True:
            ready = {fd for fd, _ in poller.poll(self._timeout_ms())}
            if self._pidfd in ready:
                break
            if self._wake in ready:
                os.eventfd_read(self._wake)
            self._signal_what_is_due()
        self._on_exit(self._reap())

    def _timeout_ms(self) -> int | None:
        earliest = self._unsent().earliest()
        if earliest is None:
            return None
        return max(0, -(-(earliest - self._clock().monotonic_ns) // NS_PER_MS))

    def _unsent(self) -> _Due:
        due = self._due
        killed = signal.SIGKILL.name in self._sent
        terminated = killed or signal.SIGTERM.name in self._sent
        return dataclasses.replace(
            due,
            terminate_ns=None if terminated else due.terminate_ns,
            kill_ns=None if killed else due.kill_ns,
        )

    def _signal_what_is_due(self) -> None:
        now = self._clock().monotonic_ns
        due = self._unsent()
        if due.terminate_ns is not None and due.terminate_ns <= now:
            self._sent.append(signal.SIGTERM.name)
            signal.pidfd_send_signal(self._pidfd, signal.SIGTERM)
        if due.kill_ns is not None and due.kill_ns <= now:
            self._sent.append(signal.SIGKILL.name)
            os.killpg(self.pid, signal.SIGKILL)

    def _reap(self) -> Exit:
        at = self._clock()
        # The dead leader is not reaped yet, so its number still names this group and no other.
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.pid, signal.SIGKILL)
        return Exit(returncode=self._process.wait(), at=at, signals_sent=tuple(self._sent))


def _spawn(read_end: int, stderr: int | None) -> subprocess.Popen[bytes]:
    # -P: a file in the user's folder must not stand in for a module of ours or of the library's.
    command = [
        sys.executable,
        "-P",
        "-X",
        "faulthandler",
        "-m",
        "builder_agent.supervised.child",
        str(read_end),
        str(os.getpid()),
    ]
    return subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=_STDERR_FD if stderr is None else stderr,  # stdout belongs to the command's own result
        stderr=stderr,
        pass_fds=(read_end,),
        start_new_session=True,
    )
