"""Where a spool is drained to, as a port."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

from build_events.errors import EngineTrailError
from build_events.kafka_record import KafkaRecord


class SinkUnavailableError(EngineTrailError):
    """The log behind the spool cannot be reached now; what waits in the spool stays there."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What became of a record."""

    # stored: acknowledged by every replica that must; refused: never to be sent again; unknown: send it again
    state: Literal["stored", "refused", "unknown"]
    reason: str = ""


class Sink(Protocol):
    """A log that takes records. One thread uses it."""

    def identity(self) -> str:
        """Return the identity of the log, which must be reachable.

        Raises:
            SinkUnavailableError: it is not, or not yet.
        """
        ...

    def deliver(self, records: Sequence[KafkaRecord], give_up: Callable[[], bool]) -> list[Answer]:
        """Send the records in order and return what became of each; call ``identity`` before.

        Waits through an outage until ``give_up`` says so, asked many times a second.
        """
        ...

    def close(self) -> None:
        """Let go of everything, within a second; what is not acknowledged counts as not sent."""
        ...
