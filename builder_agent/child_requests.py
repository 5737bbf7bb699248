"""The reading end of the control pipe in the building process: requests before and during the run."""

import threading
from typing import BinaryIO

from build_events.events import CancelSource
from builder_agent.cancellation import CancelState
from builder_agent.control import CancelMessage, ControlError, read_cancels

PARENT_GONE = "the supervisor is gone"


class Requests:
    """Takes requests from the pipe on a thread of its own and hands them to the run once there is one."""

    def __init__(self, pipe: BinaryIO) -> None:
        self._pipe = pipe
        self._lock = threading.Lock()  # never taken by a signal handler
        self._early: list[CancelMessage] = []
        self._state: CancelState | None = None
        self._parent_gone: str | None = None
        self._thread = threading.Thread(target=self._read, name="control-pipe", daemon=True)

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    @property
    def first(self) -> tuple[CancelSource, bool] | None:
        """Source of the first request so far, and whether it is the deadline's; ``None`` without any."""
        with self._lock:
            if self._early:
                return self._early[0].source, self._early[0].deadline
            return None if self._parent_gone is None else ("service", False)

    def attach(self, state: CancelState) -> None:
        """Hand over the requests that came so far, and every later one at once."""
        with self._lock:
            self._state = state
            for message in self._early:
                _request(state, message)
            if self._parent_gone is not None:
                state.request("service", reason=self._parent_gone)

    def _read(self) -> None:
        reason = PARENT_GONE
        try:
            for message in read_cancels(self._pipe):
                with self._lock:
                    self._early.append(message)
                    if self._state is not None:
                        _request(self._state, message)
        except ControlError as error:
            reason = str(error)
        with self._lock:
            self._parent_gone = reason
            if self._state is not None:
                self._state.request("service", reason=reason)


def _request(state: CancelState, message: CancelMessage) -> None:
    # The supervisor has written cancel.requested, or will once it has seen run.started.
    state.request(
        message.source,
        reason=message.reason,
        deadline=message.deadline,
        request_id=message.request_id,
        at=message.at,
        announce=False,
    )
