"""How glibc keeps memory: for a program that takes in a log, freed blocks of megabytes are needed again at once."""

import ctypes

_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD = -1, -3  # malloc.h


def keep_freed() -> None:
    """Let this process keep freed memory, for the rest of its life; nothing where there is no glibc.

    It keeps what is free at the end of a heap up to 1 GiB, and what is free in between anyway.

    By default glibc gives megabytes back to the kernel at each free and gets them, cleared page by page, at the
    next malloc: a third of the time that reading a topic takes (``python -m benchmarks.kafka``).
    """
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (AttributeError, OSError):
        return
    mallopt(_M_MMAP_THRESHOLD, 32 << 20)  # the most that glibc takes
    mallopt(_M_TRIM_THRESHOLD, 1 << 30)
