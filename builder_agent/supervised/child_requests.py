"""The reading end of the control pipe in the building process: requests before and during the run."""

import os
import threading
from typing import BinaryIO

from build_events.events import CancelSource
from builder_agent.cancellation import CancelState
from builder_agent.supervised.control import CancelMessage, ControlError, read_cancels
from builder_agent.supervised.ends import cancel_exit_code

PARENT_GONE = "the supervisor is gone"


class Requests:
    """Takes requests from the pipe on a thread of its own.

    Before the run begins there is nothing to record and nothing to put in order, so a request ends
    the process at once, whatever the parser is doing. Afterwards it goes to the run.
    """

    def __init__(self, pipe: BinaryIO) -> None:
        self._pipe = pipe
        self._lock = threading.Lock()  # never taken by a signal handler
        self._begun = False
        self._state: CancelState | None = None
        self._waiting: list[CancelMessage] = []  # came while the run was opening its stream
        self._end: str | None = None  # why no more requests will come
        self._thread = threading.Thread(target=self._read, name="control-pipe", daemon=True)

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def begin_run(self) -> None:
        """Say that the run is about to be recorded: from now on a request must not end the process."""
        with self._lock:
            self._begun = True

    def attach(self, state: CancelState) -> None:
        """Hand over the requests that came since the run began, and every later one at once."""
        with self._lock:
            self._state = state
            for message in self._waiting:
                _request(state, message)
            if self._end is not None:
                state.request("service", reason=self._end)

    def _read(self) -> None:
        end = PARENT_GONE
        try:
            for message in read_cancels(self._pipe):
                with self._lock:
                    self._leave_if_early(message.source, deadline=message.deadline)
                    if self._state is None:
                        self._waiting.append(message)
                    else:
                        _request(self._state, message)
        except ControlError as error:
            end = str(error)
        with self._lock:
            self._leave_if_early("service", deadline=False)
            self._end = end
            if self._state is not None:
                self._state.request("service", reason=end)

    def _leave_if_early(self, source: CancelSource, *, deadline: bool) -> None:
        if not self._begun:
            os._exit(cancel_exit_code(source, deadline=deadline))


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
