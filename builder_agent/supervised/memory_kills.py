"""Whether the kernel killed for memory: the ``oom_kill`` counter of a process's control group."""

import pathlib

_CGROUPS = pathlib.Path("/sys/fs/cgroup")
_PROC = pathlib.Path("/proc")


def oom_kills(pid: int, *, cgroups: pathlib.Path = _CGROUPS, proc: pathlib.Path = _PROC) -> int | None:
    """Return how many processes of the control group of ``pid`` the kernel has killed for memory so far.

    ``None`` where this machine does not say, which is no evidence of anything.

    Source: ``memory.events`` of cgroup v2, ``memory.oom_control`` of v1 (Linux 4.13 and newer).
    """
    try:
        memberships = (proc / str(pid) / "cgroup").read_text(encoding="utf-8").splitlines()
    except OSError:
        return None
    for membership in memberships:
        _, controllers, path = membership.split(":", 2)
        if controllers == "memory":
            counters = cgroups / "memory" / path.lstrip("/") / "memory.oom_control"
        elif controllers == "":
            counters = cgroups / path.lstrip("/") / "memory.events"
        else:
            continue
        count = _oom_kill(counters)
        if count is not None:
            return count
    return None


def _oom_kill(counters: pathlib.Path) -> int | None:
    try:
        lines = counters.read_text(encoding="ascii").splitlines()
    except OSError:
        return None
    for line in lines:
        name, _, value = line.partition(" ")
        if name == "oom_kill":
            return int(value)
    return None
