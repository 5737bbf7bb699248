"""The ladders that end a build: ask, SIGTERM, SIGKILL. Pure: when each is due, from what happened.

Each source that wants the build to end has a ladder of its own; the earliest step of any of them
counts. All times are nanoseconds of CLOCK_MONOTONIC.
"""

import dataclasses
from dataclasses import dataclass

from build_events.clock import NS_PER_S
from build_events.events import CancelSource


@dataclass(frozen=True, slots=True, kw_only=True)
class Graces:
    """How long each step of a ladder waits for the one before it, in nanoseconds."""

    deadline_flag_ns: int = 6 * NS_PER_S  # the flag rises this long before the deadline, but not in its first half
    deadline_terminate_ns: int = 1 * NS_PER_S  # SIGTERM this long before the deadline
    service_terminate_ns: int = 5 * NS_PER_S  # SIGTERM this long after a service's stop
    kill_ns: int = 1 * NS_PER_S  # SIGKILL this long after the SIGTERM of a stop or of an insisting Ctrl-C
    insist_ns: int = 1 * NS_PER_S  # a Ctrl-C insists when it comes later than this after the first


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """Somebody wants the build to end, from ``at_ns`` on."""

    source: CancelSource
    at_ns: int
    deadline: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class History:
    """What happened so far that a ladder hangs on."""

    command_started_ns: int
    deadline_ns: int | None = None  # a duration, counted from command_started_ns
    requests: tuple[Request, ...] = ()  # the first of each source, in the order they came
    insisted_ns: int | None = None  # the first Ctrl-C that insisted

    def after_request(self, source: CancelSource, at_ns: int, graces: Graces) -> "History":
        """Return the history with one more press, signal or call; all but the first of a source only insist."""
        first = next((request for request in self.requests if request.source == source), None)
        if first is None:
            return dataclasses.replace(self, requests=(*self.requests, Request(source=source, at_ns=at_ns)))
        insists = source == "ctrl_c" and at_ns - first.at_ns > graces.insist_ns
        if not insists or self.insisted_ns is not None:
            return self
        return dataclasses.replace(self, insisted_ns=at_ns)


@dataclass(frozen=True, slots=True, kw_only=True)
class Ladder:
    """When each step is due; ``None`` = never, as far as is known now."""

    requests: tuple[Request, ...]  # by time
    terminate_ns: int | None
    kill_ns: int | None

    def due(self, now_ns: int) -> tuple[Request, ...]:
        """Return the requests whose time has come."""
        return tuple(request for request in self.requests if request.at_ns <= now_ns)


def ladder(history: History, graces: Graces) -> Ladder:
    """Return the steps that a history leads to, by every source together.

    Never a SIGTERM before the first request, and never a SIGKILL before the SIGTERM.
    """
    requests = list(history.requests)
    terminate: list[int] = []
    kill: list[int] = []
    for request in history.requests:
        if request.source == "service":
            terminate.append(request.at_ns + graces.service_terminate_ns)
            kill.append(terminate[-1] + graces.kill_ns)
    if history.insisted_ns is not None:
        terminate.append(history.insisted_ns)
        kill.append(history.insisted_ns + graces.kill_ns)
    if history.deadline_ns is not None:
        end = history.command_started_ns + history.deadline_ns
        flag = max(history.command_started_ns + history.deadline_ns // 2, end - graces.deadline_flag_ns)
        requests.append(Request(source="ci", at_ns=flag, deadline=True))
        terminate.append(max(flag, end - graces.deadline_terminate_ns))
        kill.append(end)
    return Ladder(
        requests=tuple(sorted(requests, key=lambda request: request.at_ns)),
        terminate_ns=min(terminate, default=None),
        kill_ns=min(kill, default=None),
    )
