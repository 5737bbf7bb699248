"""Answers read-only SQL over Arrow Flight on a unix socket, while the collector writes."""

import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import duckdb
from pyarrow import flight

from collector import guard, wire
from collector.errors import SocketError, StoreError
from collector.store import passed

CATCH_UP_S = 2.0  # how long an answer waits for what its asker saw in the log


class Progress:
    """How far the collector is, shared between the thread that writes and those that answer."""

    def __init__(self, positions: Mapping[str, int]) -> None:
        self._positions = positions
        self._moved = threading.Condition()
        self.wanted = threading.Event()  # somebody waits for the log to be read

    def move(self, positions: Mapping[str, int]) -> None:
        """Say what is committed."""
        with self._moved:
            self._positions = positions
            self._moved.notify_all()

    def reaches(self, ends: Mapping[str, int], *, timeout_s: float) -> bool:
        """Wait until everything before ``ends`` is committed; say whether it is."""
        deadline = time.monotonic() + timeout_s
        with self._moved:
            while not passed(self._positions, ends):
                self.wanted.set()
                left = deadline - time.monotonic()
                if left <= 0 or not self._moved.wait(left):
                    return passed(self._positions, ends)
        return True


class _FlightServer(flight.FlightServerBase):  # type: ignore[misc] # pyarrow has no types
    """One Flight call: ``do_get`` with a request as its ticket."""

    def __init__(
        self, location: str, cursor: Callable[[], duckdb.DuckDBPyConnection], progress: Progress, limits: guard.Limits
    ) -> None:
        super().__init__(location)
        self._cursor = cursor
        self._progress = progress
        self._limits = limits

    def do_get(self, context: Any, ticket: Any) -> Any:
        """Answer one query."""
        del context
        try:
            request = wire.decode(ticket.ticket)
            behind = not self._progress.reaches(request.ends, timeout_s=CATCH_UP_S)
            table = guard.run(self._cursor(), request.sql, request.params, self._limits)
        except StoreError as error:
            raise flight.FlightServerError(str(error), extra_info=wire.error_kind(error)) from None
        return flight.RecordBatchStream(wire.mark(table, behind=behind))


@contextmanager
def serving(
    socket: Path,
    cursor: Callable[[], duckdb.DuckDBPyConnection],
    progress: Progress,
    limits: guard.Limits | None = None,
) -> Iterator[None]:
    """Answer queries at ``socket`` while inside; ``cursor`` makes a connection of its own for each.

    Raises:
        SocketError: the socket cannot be made.
    """
    socket.unlink(missing_ok=True)  # of a holder that was killed: we hold its lock now
    try:
        server = _FlightServer(f"grpc+unix://{socket}", cursor, progress, limits or guard.Limits())
    except (OSError, flight.FlightError) as error:
        msg = f"{socket}: the query socket cannot be made ({error}). Check that its folder can be written."
        raise SocketError(msg) from error
    try:
        yield
    finally:
        server.shutdown()
        socket.unlink(missing_ok=True)
