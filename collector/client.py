"""Asks the store's holder over its socket."""

from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
from pyarrow import flight

from build_events.log import Positions
from collector import wire
from collector.errors import QueryLimitError, StoreError
from collector.server import CATCH_UP_S

_HELLO = wire.Request("SELECT 1", (), {})
_HELLO_S = 2.0
_GRACE_S = 5.0  # over the server's own limits, for the answer to travel


class HolderGoneError(StoreError):
    """Nobody answers at the socket."""


class RemoteAnswers:
    """Queries answered by the process that holds the store."""

    snapshot_age_s: float | None = None

    def __init__(self, socket: Path, ends: Positions, limit_s: float) -> None:
        """Greet the holder.

        Raises:
            HolderGoneError: nobody answers.
        """
        self._ends = ends
        self._limit_s = limit_s
        self.behind = False
        self._socket = socket
        self._client = flight.connect(f"grpc+unix://{socket}")
        try:
            self._ask(_HELLO, _HELLO_S)
        except QueryLimitError as error:  # of the simplest query: it is starting, ending, or stopped
            self._client.close()
            raise HolderGoneError(str(error)) from None
        except BaseException:
            self._client.close()
            raise

    def query(self, sql: str, params: Sequence[object]) -> pa.Table:
        """Return the answer.

        Raises:
            HolderGoneError: nobody answers any more.
            QueryLimitError: the holder says that the query takes too long, or says nothing for as long.
            StoreError: what else the holder says of the query.
        """
        request = wire.Request(sql, params, self._ends)
        table, self.behind = wire.unmark(self._ask(request, CATCH_UP_S + self._limit_s + _GRACE_S))
        return table

    def close(self) -> None:
        """Hang up."""
        self._client.close()

    def _ask(self, request: wire.Request, timeout_s: float) -> pa.Table:
        options = flight.FlightCallOptions(timeout=timeout_s)
        try:
            return self._client.do_get(flight.Ticket(wire.encode(request)), options).read_all()
        except flight.FlightServerError as error:
            # gRPC appends its own words to the message.
            message = str(error).split(". Detail: ")[0].removeprefix("Flight error: ")
            raise wire.error_of(error.extra_info, message) from None
        except flight.FlightTimedOutError:
            msg = f"{self._socket}: no answer within {timeout_s:g} s. Ask for less, or look after the collector."
            raise QueryLimitError(msg) from None
        except (flight.FlightUnavailableError, flight.FlightCancelledError) as error:
            msg = f"{self._socket}: nobody answers ({str(error).splitlines()[0]})"
            raise HolderGoneError(msg) from None
        except flight.FlightError as error:
            msg = f"{self._socket}: the collector could not answer ({error}). Restart it, or stop it and ask again."
            raise StoreError(msg) from error
