"""Entry of the building process: ``python -m builder_agent.supervised.child FD PARENT``.

``FD`` is the inherited read end of the control pipe, ``PARENT`` the supervisor's process id. Dies
with its supervisor: that is arranged before anything heavy is imported.
"""

import ctypes
import os
import signal
import sys

PR_SET_PDEATHSIG = 1  # linux/prctl.h


def die_with_parent(parent: int) -> None:
    """Have the kernel end this process by SIGKILL when the thread that forked it ends.

    A parent that died before leaves no signal, so its id is compared afterwards.

    Raises:
        OSError: the kernel refused.
    """
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0) != 0:
        errno = ctypes.get_errno()
        raise OSError(errno, f"prctl(PR_SET_PDEATHSIG): {os.strerror(errno)}")
    if os.getppid() != parent:
        os.kill(os.getpid(), signal.SIGKILL)


def main(arguments: list[str]) -> int:
    """Build what the control pipe says and return the exit code."""
    fd, parent = (int(argument) for argument in arguments)
    die_with_parent(parent)
    # Late: the imports take longer than anything else before the build.
    from builder_agent.supervised.child_build import run  # noqa: PLC0415

    return run(fd)


if __name__ == "__main__":
    code = main(sys.argv[1:])
    sys.stderr.flush()
    # Not sys.exit: a thread may still be inside the builder, and the interpreter's own exit would crash under it.
    os._exit(code)
