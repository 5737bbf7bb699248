"""What an exporter says of a request: kept out of the host's logs, and put in our words."""

import logging
import threading
from typing import Protocol

from typing_extensions import override

from builder_agent.telemetry.outbox import Answer

# What logs every failed attempt, several times; ours is said once per run.
_LOGGERS = (
    "opentelemetry.exporter.otlp.common.http",
    "opentelemetry.exporter.otlp.proto.grpc.exporter",
    "opentelemetry.exporter.otlp.proto.http.trace_exporter",
    "opentelemetry.exporter.otlp.proto.http.metric_exporter",
)


class Quiet(logging.Filter):
    """Keeps what our exporter logs out of the host's logs; others' exporters, in other threads, are heard."""

    def __init__(self) -> None:
        super().__init__()
        self._thread = 0
        self.last: logging.LogRecord | None = None

    def __enter__(self) -> None:
        """Hold back what this thread's exporter says."""
        self._thread = threading.get_ident()
        for name in _LOGGERS:
            logging.getLogger(name).addFilter(self)

    def __exit__(self, *_: object) -> None:
        """Leave the loggers as they were."""
        for name in _LOGGERS:
            logging.getLogger(name).removeFilter(self)

    @override
    def filter(self, record: logging.LogRecord) -> bool:
        if record.thread != self._thread:
            return True
        self.last = record
        return False


class Attempt(Protocol):
    """What is known of the last request."""

    def accepted(self) -> Answer:
        """Return what an acknowledgement says."""
        ...

    def refused(self, logged: logging.LogRecord | None) -> Answer:
        """Return why it was refused; ``logged`` is what the exporter said last."""
        ...


class Plain:
    """Knows only what was logged."""

    def accepted(self) -> Answer:
        """Return an acknowledgement of everything."""
        return Answer()

    def refused(self, logged: logging.LogRecord | None) -> Answer:
        """Return the log's words."""
        return Answer(refused=logged.getMessage() if logged is not None else "the exporter did not say why")
