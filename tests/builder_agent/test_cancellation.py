"""The cancel state: first wins, deferred in zones, safe in a handler that interrupts itself."""

import signal
import threading
from types import FrameType

import pytest

from build_events.clock import Instant, system_clock
from build_events.events import CancelDeferred, CancelRequested, CancelSignalled, Event
from builder_agent.cancellation import LISTED_REQUESTS, CancelState


class Listener:
    """Takes the posted events."""

    def __init__(self) -> None:
        self.events: list[Event] = []
        self.state = CancelState(clock=system_clock, post=self.post)

    def post(self, event: Event, at: Instant) -> None:
        """Keep an event."""
        assert at.monotonic_ns > 0
        self.events.append(event)

    def names(self) -> list[str]:
        """Return the types in short."""
        return [event.type.split(".")[3] for event in self.events]


def test_the_first_request_wins_and_later_ones_are_recorded() -> None:
    """Every request is an event; one flag, one winner, one signalled."""
    heard = Listener()
    first = heard.state.request("ctrl_c", reason="key")
    second = heard.state.request("service")
    assert first is second is heard.state.winner
    assert heard.state.flag
    assert heard.names() == ["requested", "signalled", "requested"]
    assert heard.state.level == "requested"


def test_of_many_threads_exactly_one_wins() -> None:
    """All get the same winner and the flag is signalled once."""
    heard = Listener()
    barrier = threading.Barrier(16)
    winners: list[str] = []

    def ask() -> None:
        barrier.wait()
        winners.append(heard.state.request("api").request_id)

    threads = [threading.Thread(target=ask) for _ in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(winners)) == 1
    assert heard.names().count("signalled") == 1
    assert heard.names().count("requested") == 16


def test_a_request_in_a_zone_waits_for_its_end_and_says_so() -> None:
    """The flag rises when the outermost zone closes."""
    heard = Listener()
    with heard.state.zone("publish"):
        with heard.state.zone("inner"):
            request = heard.state.request("ci", deadline=True)
        assert heard.state.requested
        assert not heard.state.flag
    assert heard.state.flag
    assert heard.events[1:] == [
        CancelDeferred(request_id=request.request_id, zone="inner"),
        CancelSignalled(request_id=request.request_id),
    ]


def test_a_zone_without_a_request_changes_nothing() -> None:
    """Zones record nothing by themselves, also when their body fails."""
    heard = Listener()
    with pytest.raises(OSError, match="disk"), heard.state.zone("publish"):
        raise OSError("disk")
    assert not heard.state.flag
    assert not heard.events


def test_a_request_that_another_process_wrote_is_only_signalled_here() -> None:
    """The supervisor's record of the request is the one in the log; its id and time are kept."""
    heard = Listener()
    at = Instant(5, 7)
    request = heard.state.request("ci", request_id="r-1", at=at, announce=False)
    assert (request.request_id, request.at) == ("r-1", at)
    assert heard.events == [CancelSignalled(request_id="r-1")]


def test_a_burst_is_listed_up_to_a_bound_and_counted_beyond_it() -> None:
    """Nothing is lost silently: the run tells the count at its end."""
    heard = Listener()
    for _ in range(LISTED_REQUESTS + 5):
        heard.state.request("ctrl_c")
    assert len([event for event in heard.events if isinstance(event, CancelRequested)]) == LISTED_REQUESTS
    assert heard.state.unlisted_requests == 5


def test_observing_without_the_builder_is_recorded_once() -> None:
    """A run that was told to stop outside the builder says when it did."""
    heard = Listener()
    heard.state.observe()
    assert not heard.events
    heard.state.request("ctrl_c")
    heard.state.observe()
    heard.state.observe()
    assert heard.names() == ["requested", "signalled", "observed"]
    assert heard.state.level == "observed"


def test_a_handler_that_interrupts_itself_does_not_deadlock() -> None:
    """A signal that arrives inside the request of another one: the case that deadlocks Event.set."""
    heard = Listener()
    depth = 0

    def handler(number: int, _: FrameType | None) -> None:
        nonlocal depth
        depth += 1
        if depth < 200:
            signal.raise_signal(number)  # handled before the next line
        heard.state.request("ctrl_c")

    previous = signal.signal(signal.SIGUSR1, handler)
    try:
        signal.raise_signal(signal.SIGUSR1)
    finally:
        signal.signal(signal.SIGUSR1, previous)
    assert depth == 200
    assert heard.state.flag
    assert heard.names().count("signalled") == 1
