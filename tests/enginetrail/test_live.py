"""The two views of a running build."""

import io

from hypothesis import given
from rich.console import Console

from build_events.envelope import Recorded
from build_events.events import PhaseFinished, PhaseStarted
from enginetrail.live import LiveView, PlainView, build_view
from tests.build_events.strategies import histories

WIDTH, HEIGHT = 80, 24


@given(history=histories())
def test_plain_lines_show_every_phase_and_no_control_code(history: list[Recorded]) -> None:
    """A CI log gets one line for each start and each finish, whatever the run's end."""
    output = io.StringIO()
    view = PlainView(output)
    for record in history:
        view.event(record)
    lines = output.getvalue().splitlines()
    events = [record.event for record in history]
    assert sum(" start  " in line for line in lines) == sum(isinstance(event, PhaseStarted) for event in events)
    assert sum(" finish " in line for line in lines) == sum(isinstance(event, PhaseFinished) for event in events)
    assert "\x1b" not in output.getvalue()


@given(history=histories())
def test_the_live_tree_can_be_drawn_after_every_event(history: list[Recorded]) -> None:
    """The refresh may come at any moment of any run; every phase seen so far stands in the tree."""
    view = LiveView()
    for record in history:
        view.event(record)
        drawn = io.StringIO()
        Console(file=drawn, width=500).print(view)
    for record in history:
        if isinstance(record.event, PhaseStarted):
            assert record.event.name in drawn.getvalue()


def test_what_to_do_stays_visible_when_the_tree_is_longer_than_the_terminal() -> None:
    """Sentences to act on stand above the tree, where a small terminal does not cut them off."""
    view = LiveView()
    view.message("Ctrl-C again ends it now")
    drawn = io.StringIO()
    Console(file=drawn, width=WIDTH, height=HEIGHT).print(view)
    assert drawn.getvalue().startswith("Ctrl-C again ends it now")


def test_only_a_terminal_gets_the_live_tree() -> None:
    """Pipes and files get plain lines."""
    with build_view(Console(file=io.StringIO())) as view:
        assert isinstance(view, PlainView)
    with build_view(Console(file=io.StringIO(), force_terminal=True)) as view:
        assert isinstance(view, LiveView)
