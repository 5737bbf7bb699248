"""Processes that write a local log, for tests that need more than one or that kill them.

``python -m tests.build_events.log_processes COMMAND FOLDER [ARGUMENT]``
"""

import contextlib
import itertools
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from build_events import clock
from build_events.envelope import StreamHeader, StreamRole
from build_events.errors import LogUnavailableError
from build_events.events import HeartbeatRecorded
from build_events.local_log import LocalLog
from build_events.stream import EventStream

ROOT = Path(__file__).parents[2]
BEAT = HeartbeatRecorded(cancel_state="none")


def stream_in(log: LocalLog, run_id: str, stream_id: str, role: StreamRole = "main") -> EventStream:
    """Return a stream about a run, on the system's clock."""
    header = StreamHeader(stream_id=stream_id, role=role, run_id=run_id, source="tests", boot_id="boot-1")
    return EventStream(header, log, clock=clock.system_clock)


@contextmanager
def process(command: str, folder: Path, argument: str = "") -> Iterator["subprocess.Popen[str]"]:
    """Run a command of this module; it is killed and reaped at the end if it still runs."""
    line = [sys.executable, "-m", "tests.build_events.log_processes", command, str(folder), argument]
    with subprocess.Popen(line, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as child:
        try:
            yield child
        finally:
            child.kill()


def _say(what: object) -> None:
    sys.stdout.write(f"{what}\n")
    sys.stdout.flush()


def _create(folder: Path, _: str) -> None:
    sys.stdin.readline()  # the starting signal
    _say(LocalLog.create(folder).identity())


def _short_streams(folder: Path, first: str) -> None:
    """Write 100 runs, each with a main and an observer stream that are opened and closed in order."""
    log = LocalLog.create(folder)
    for number in range(int(first), int(first) + 100):
        main = stream_in(log, f"run-{number}", f"main-{number}")
        main.append(BEAT)
        main.append(BEAT, BEAT)
        stream_in(log, f"run-{number}", f"observer-{number}", "observer").close(BEAT)
        main.close()


def _endless(folder: Path, run_id: str) -> None:
    """Write until killed, and say which sequence is acknowledged."""
    stream = stream_in(LocalLog.create(folder), run_id, f"{run_id}-main")
    for sequence in itertools.count():
        stream.append(BEAT)
        _say(sequence)


def _forked(folder: Path, run_id: str) -> None:
    """Leave a forked child behind that tries to write, says what came of it, and waits for its input to end."""
    stream = stream_in(LocalLog.create(folder), run_id, f"{run_id}-main")
    stream.append(BEAT)
    if os.fork():
        os._exit(0)
    with contextlib.suppress(LogUnavailableError):
        stream.append(BEAT)
        _say("wrote")
        return
    own = stream_in(LocalLog(folder), run_id, f"{run_id}-child", "observer")
    own.close(BEAT)
    _say("refused")
    sys.stdin.read()


COMMANDS = {"create": _create, "short-streams": _short_streams, "endless": _endless, "forked": _forked}

if __name__ == "__main__":
    COMMANDS[sys.argv[1]](Path(sys.argv[2]), sys.argv[3])
