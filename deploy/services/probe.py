"""Questions that only a service which is ready answers; each bounded by a short time-out."""

import http.client
import socket
import struct
from urllib.parse import urlsplit

_TIMEOUT_S = 2.0
_API_VERSIONS = 18  # the one request that every broker and client version shares, in version 0
_CORRELATION = 7
_OK = 200


def kafka_answers(host: str, port: int) -> bool:
    """Return whether a Kafka broker answers requests.

    An open port is not enough: it opens before the broker takes part in its cluster, and a client
    made in between waits tens of seconds before it tries again.
    Source: the Kafka protocol guide, ApiVersions version 0 with request header version 1.
    """
    request = struct.pack(">hhih", _API_VERSIONS, 0, _CORRELATION, -1)
    try:
        with socket.create_connection((host, port), _TIMEOUT_S) as connection:
            connection.sendall(struct.pack(">i", len(request)) + request)
            with connection.makefile("rb") as answer:
                head = answer.read(10)  # size, correlation id, error code
    except OSError:
        return False
    return len(head) == 10 and struct.unpack(">iih", head)[1:] == (_CORRELATION, 0)  # noqa: PLR2004 # as read above


def http_answers(url: str) -> bool:
    """Return whether a GET of ``url`` gives status 200."""
    parts = urlsplit(url)
    connection = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=_TIMEOUT_S)
    try:
        connection.request("GET", parts.path or "/")
        return connection.getresponse().status == _OK
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()


def port_answers(address: str) -> bool:
    """Return whether something accepts connections at ``HOST:PORT``, or at a URL (of a list: the first)."""
    first = address.split(",", maxsplit=1)[0]
    try:
        parts = urlsplit(first if "//" in first else f"//{first}")
        port = parts.port or {"https": 443}.get(parts.scheme, 80)
        socket.create_connection((parts.hostname or "", port), _TIMEOUT_S).close()
    except (OSError, ValueError):
        return False
    return True
