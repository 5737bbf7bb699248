"""Which open runs of other hosts have been silent for longer than their lease. Pure: the clock is given.

A lease runs only while the log is there and read to its end: otherwise the silence may be ours. So an
outage of the log, however long, fences nobody; every lease begins anew after it.
"""

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class OpenRun:
    """A run without an outcome, as the store has it."""

    run_id: str
    main_stream_id: str
    next_sequence: int  # of its main stream: it grows with every sign of life
    lease_ns: int


@dataclass(frozen=True, slots=True)
class Expired:
    """A run to be fenced."""

    run: OpenRun
    silent_ns: int  # how long nothing came


class LeaseWatch:
    """Remembers since when each run has been silent."""

    def __init__(self) -> None:
        self._silent_since: dict[str, tuple[int, int]] = {}  # run id -> (next sequence, monotonic ns)

    def expired(self, runs: Iterable[OpenRun], *, at_end: bool, now_ns: int) -> list[Expired]:
        """Return the runs whose lease is over; each is returned again after another lease, until it has an outcome.

        ``runs`` are all open runs of the store after a read, ``at_end`` whether that read went to the
        log's end, ``now_ns`` the monotonic clock.
        """
        known = self._silent_since if at_end else {}
        self._silent_since = {}
        over: list[Expired] = []
        for run in runs:
            sequence, since_ns = known.get(run.run_id, (run.next_sequence, now_ns))
            if sequence != run.next_sequence:
                since_ns = now_ns
            elif now_ns - since_ns >= run.lease_ns:
                over.append(Expired(run, now_ns - since_ns))
                since_ns = now_ns
            if at_end:
                self._silent_since[run.run_id] = (run.next_sequence, since_ns)
        return over
