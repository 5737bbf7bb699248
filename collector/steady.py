"""A log that may be away for a while, for a collector that goes on."""

from collections.abc import Callable, Iterator

from build_events.errors import LogUnavailableError
from build_events.log import Chunk, EventReader, Positions


class SteadyReader:
    """``EventReader`` that reads nothing while the log is away, says so once, and goes on where it stood."""

    def __init__(self, log: EventReader, warn: Callable[[str], None]) -> None:
        """Take the log, and who hears that it went away and came back."""
        self._log = log
        self._warn = warn
        self._away = False
        self.at_end = False  # the last read went to the log's end: the log is there, and nothing in it is unread

    def identity(self) -> str:
        """Return the log's identity.

        Raises:
            LogUnavailableError: it is away, so nobody can tell.
        """
        return self._log.identity()

    def ends(self) -> dict[str, int]:
        """Return the end of each source.

        Raises:
            LogUnavailableError: the log is away.
        """
        return self._log.ends()

    def read(self, after: Positions, *, max_bytes: int) -> Iterator[Chunk]:
        """Yield what stands after these positions; less, or nothing, where the log goes away meanwhile."""
        self.at_end = False
        try:
            yield from self._log.read(after, max_bytes=max_bytes)
        except LogUnavailableError as error:
            if not self._away:
                self._away = True
                self._warn(f"{error} Waiting for it; what is stored stays, and queries are answered.")
            return
        self.at_end = True
        if self._away:
            self._away = False
            self._warn("the event log answers again")
