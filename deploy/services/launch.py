"""Starts one program as a daemon that is known by its record from its first instant.

A script of its own, standard library only: ``python -I launch.py RECORD LOG FOLDER PROGRAM [ARGUMENT...]``.
It forks, so that the program is nobody's child and never a zombie of the caller. The fork writes
its process id and start time to RECORD *before* it becomes the program, which a kill of the
caller at any moment cannot separate: there is no running program without a record.
"""

import json
import os
import sys
from pathlib import Path

FAILED = 1


def start_ticks(pid: int) -> int | None:
    """Return when a process started, in clock ticks since boot; None if no process has the id.

    A process id is used again after its process ended; together with this number it is not.
    Source: proc_pid_stat(5), field 22; the name in field 2 may hold anything.
    """
    try:
        stat = Path(f"/proc/{pid}/stat").read_bytes()
    except (FileNotFoundError, ProcessLookupError):
        return None
    return int(stat[stat.rindex(b")") + 2 :].split()[19])


def boot_id() -> str:
    """Return the kernel's name for this boot: start times of two boots do not compare."""
    return Path("/proc/sys/kernel/random/boot_id").read_text().strip()


def main(record: str, log: str, folder: str, command: list[str]) -> int:
    """Start ``command`` in ``folder``; return 0 once it runs, 1 with the reason on stderr."""
    reader, writer = os.pipe()  # closed by a successful exec; carries the error of a failed one
    if os.fork() == 0:
        os.close(reader)
        try:
            _become(Path(record), log, folder, command)
        except BaseException as error:  # noqa: BLE001 # whatever it is, the caller must hear of it
            os.write(writer, str(error).encode())
        os._exit(FAILED)
    os.close(writer)
    with os.fdopen(reader) as pipe:
        reason = pipe.read()
    sys.stderr.write(reason)
    return FAILED if reason else 0


def _become(record: Path, log: str, folder: str, command: list[str]) -> None:
    os.setsid()
    os.chdir(folder)
    output = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(output, 1)
    os.dup2(output, 2)
    identity = {"pid": os.getpid(), "started": start_ticks(os.getpid()), "boot": boot_id(), "command": command}
    fresh = record.with_name(f"{record.name}.new")
    fresh.write_text(json.dumps(identity))
    fresh.replace(record)
    os.execvpe(command[0], command, os.environ)  # noqa: S606 # a list, no shell


if __name__ == "__main__":
    _, record, log, folder, *command = sys.argv
    sys.exit(main(record, log, folder, command))
