"""The control pipe: JSON lines from the supervisor to the building process, never back.

The first line is the build's specification, every later one a cancellation request. The end of the
file means that the supervisor is gone.
"""

import os
from collections.abc import Iterator
from typing import Annotated, BinaryIO, Literal, TypeVar

import pydantic
from pydantic import BaseModel, ConfigDict, Field

from build_events.clock import NS_PER_S, Instant
from build_events.errors import EngineTrailError
from build_events.events import CancelSource, Nanoseconds, RetryPolicy

M = TypeVar("M", bound=BaseModel)
Package = Literal["tensorrt_rtx", "tensorrt"]


class ControlError(EngineTrailError):
    """The pipe holds something that is no message of this release."""


class _Message(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class BuildSpec(_Message):
    """Everything that the building process must know. Paths are absolute."""

    kind: Literal["build"] = "build"
    run_id: str
    trace_id: str
    main_stream_id: str
    log_folder: str
    model: str  # an ONNX file
    output: str  # the engine to be
    route: Annotated[str, Field(min_length=1)]
    target: str | None = None  # a compute capability, e.g. sm89; null = the library's own default
    package: Package | None = None  # null = TensorRT-RTX where it is installed, else TensorRT
    command_started_monotonic_ns: Nanoseconds
    deadline_ns: Nanoseconds | None = None  # counted from command_started_monotonic_ns
    retry_of: str | None = None  # run id
    retry_policy: RetryPolicy | None = None
    queued_at_ns: Nanoseconds | None = None  # UTC since 1970
    parent_span_id: str | None = None  # in the trace that the run is part of
    retried_trace_id: str | None = None
    heartbeat_interval_ns: Nanoseconds | None = None  # null = the agent's default
    spool_bytes: int | None = None  # the log is a spool of at most this size; null = it is the log of record
    discard_late: bool = False  # do not keep an engine that was ready after a request to stop
    terminate_grace_ns: Nanoseconds = NS_PER_S  # SIGKILL follows SIGTERM after this long; the supervisor sets it


class CancelMessage(_Message):
    """Stop the build; the supervisor has already recorded that it was asked to."""

    kind: Literal["cancel"] = "cancel"
    request_id: str
    source: CancelSource
    reason: str | None = None
    deadline: bool = False
    wall_ns: Nanoseconds  # when the supervisor learned of it
    monotonic_ns: Nanoseconds

    @property
    def at(self) -> Instant:
        """When the supervisor learned of the request."""
        return Instant(self.wall_ns, self.monotonic_ns)


def write_message(fd: int, message: BuildSpec | CancelMessage) -> bool:
    """Write one line; say whether the other side still had the pipe open.

    Source: writes of up to PIPE_BUF (4096) bytes never mix or tear, ``pipe(7)``.
    """
    left = memoryview(message.model_dump_json().encode() + b"\n")
    try:
        while left:
            left = left[os.write(fd, left) :]
    except BrokenPipeError:
        return False
    return True


def read_spec(pipe: BinaryIO) -> BuildSpec | None:
    """Return the first line's specification, or ``None`` if the supervisor was gone before it.

    Raises:
        ControlError: the line is no specification.
    """
    line = pipe.readline()
    if not line.endswith(b"\n"):
        return None
    return _parse(BuildSpec, line)


def read_cancels(pipe: BinaryIO) -> Iterator[CancelMessage]:
    """Yield the requests as they come; ends when the supervisor is gone.

    Raises:
        ControlError: a line is no request.
    """
    for line in pipe:
        if not line.endswith(b"\n"):
            return
        yield _parse(CancelMessage, line)


def _parse(cls: type[M], line: bytes) -> M:
    try:
        return cls.model_validate_json(line)
    except pydantic.ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"])
        msg = f"control pipe: {cls.__name__} {where}: {first['msg']}; run one release on both ends"
        raise ControlError(msg) from None
