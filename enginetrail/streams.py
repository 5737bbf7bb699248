"""Short streams of the commands: one append that ends with ``stream.closed``."""

from collections.abc import Sequence

from build_events import clock, ids
from build_events.envelope import Recorded, StreamHeader
from build_events.events import Event
from build_events.local_log import LocalLog
from build_events.stream import EventStream
from enginetrail.home import Home


def append_route_events(home: Home, route: str, events: Sequence[Event]) -> list[Recorded]:
    """Append facts about a route in a fresh stream of it; return all its records.

    Raises:
        LogUnavailableError: the log did not store them.
    """
    return _append(home, events, StreamHeader(role="route", route=route, **_identity()))


def append_run_events(home: Home, run_id: str, events: Sequence[Event]) -> list[Recorded]:
    """Append facts about a run in a fresh observer stream of it; return all its records.

    Raises:
        LogUnavailableError: the log did not store them.
    """
    return _append(home, events, StreamHeader(role="observer", run_id=run_id, **_identity()))


def _identity() -> dict[str, str]:
    return {"stream_id": ids.random_id(), "source": "enginetrail/command", "boot_id": clock.boot_id()}


def _append(home: Home, events: Sequence[Event], header: StreamHeader) -> list[Recorded]:
    records = EventStream(header, LocalLog.create(home.log_folder), clock=clock.system_clock).close(*events)
    if home.kafka is not None:
        from enginetrail.draining import drain_briefly  # noqa: PLC0415 # a chosen adapter

        drain_briefly(home)
    return records
