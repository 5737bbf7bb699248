"""Loopback ports that stay a service's own while it is down."""

import secrets
import socket
from collections.abc import Iterable

HOST = "127.0.0.1"
# Below the range from which kernels give ports to outgoing connections (32768 and up on Linux): a
# port from there could be taken by any client while the service is down.
_LOWEST, _HIGHEST = 20_000, 32_767
_TRIES = 200


def is_free(port: int) -> bool:
    """Return whether nothing listens on a loopback port."""
    with socket.socket() as candidate:
        # As servers do, so that connections of an earlier server in TIME_WAIT are no obstacle.
        candidate.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            candidate.bind((HOST, port))
        except OSError:
            return False
        return True


def choose(names: Iterable[str], taken: Iterable[int] = ()) -> dict[str, int]:
    """Return a free port for each name, none of them in ``taken``.

    Raises:
        OSError: no free port was found in many tries.
    """
    used = set(taken)
    chosen: dict[str, int] = {}
    for name in names:
        chosen[name] = _free_port(used)
        used.add(chosen[name])
    return chosen


def _free_port(used: set[int]) -> int:
    for _ in range(_TRIES):
        port = _LOWEST + secrets.randbelow(_HIGHEST - _LOWEST + 1)
        if port not in used and is_free(port):
            return port
    raise OSError(f"no free port between {_LOWEST} and {_HIGHEST} on {HOST} in {_TRIES} tries")
