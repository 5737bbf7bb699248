"""Processes that this folder started, and no others: known by id, start time and boot."""

import json
import os
import select
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from deploy.services.errors import ServiceError
from deploy.services.launch import boot_id, start_ticks

_LAUNCHER = Path(__file__).with_name("launch.py")


@dataclass(frozen=True, slots=True)
class Daemon:
    """A process started by ``spawn``. Its id may belong to another process by now: every use checks."""

    pid: int
    started: int  # clock ticks since boot
    boot: str

    def is_running(self) -> bool:
        """Return whether the process of the record still runs, with any of its threads."""
        return not self.wait(0)

    def send(self, signal_number: signal.Signals) -> bool:
        """Send a signal; return False, without sending, if the process has ended."""
        with self._descriptor() as descriptor:
            if descriptor is None or _has_ended(descriptor, 0):
                return False
            with suppress(ProcessLookupError):  # it ended this instant
                signal.pidfd_send_signal(descriptor, signal_number)
            return True

    def wait(self, timeout_s: float) -> bool:
        """Return True once the process has ended, False if it still runs after ``timeout_s`` seconds."""
        with self._descriptor() as descriptor:
            return descriptor is None or _has_ended(descriptor, timeout_s)

    @contextmanager
    def _descriptor(self) -> Iterator[int | None]:
        """Give a file descriptor of the process; None if it is gone, whoever has its id now.

        Opened before the start time is read: what is done through it cannot reach a process that
        takes the id over in between.
        """
        try:
            descriptor = os.pidfd_open(self.pid)
        except ProcessLookupError:
            yield None
            return
        try:
            same = self.boot == boot_id() and self.started == start_ticks(self.pid)
            yield descriptor if same else None
        finally:
            os.close(descriptor)


def _has_ended(descriptor: int, timeout_s: float) -> bool:
    """Return whether a process ends in time; it may stay a zombie until its parent looks.

    The first thread can be a zombie before the last one is gone and its ports are free. The
    descriptor is readable only then (pidfd_open(2)), so no state is read from /proc.
    """
    poll = select.poll()
    poll.register(descriptor, select.POLLIN)
    return bool(poll.poll(timeout_s * 1000))


def recorded(record: Path) -> Daemon | None:
    """Return the process that a record names, running or not; None without a record."""
    try:
        identity = json.loads(record.read_bytes())
    except (FileNotFoundError, ValueError):  # a power failure may leave an empty record; nothing of it runs
        return None
    return Daemon(pid=identity["pid"], started=identity["started"], boot=identity["boot"])


def spawn(record: Path, log: Path, folder: Path, command: Sequence[str], environ: Mapping[str, str]) -> Daemon:
    """Start ``command`` in ``folder`` with its output appended to ``log``, and return it once it is recorded.

    It survives the caller, has a session of its own, and reads nothing.

    Raises:
        ServiceError: the program could not be executed.
    """
    launcher = [sys.executable, "-I", str(_LAUNCHER), str(record), str(log), str(folder), *command]
    done = subprocess.run(launcher, env=dict(environ), stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, check=False)
    daemon = recorded(record)
    if done.returncode != 0 or daemon is None:
        record.unlink(missing_ok=True)
        raise ServiceError(f"{command[0]} could not be started: {done.stderr.decode(errors='replace').strip()}")
    return daemon
