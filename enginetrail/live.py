"""What a running build looks like: a live tree in a terminal, plain lines elsewhere."""

import time
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO, Protocol

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.text import Text
from rich.tree import Tree

from build_events.clock import NS_PER_S
from build_events.envelope import Recorded
from build_events.events import CancelRequested, PhaseFinished, PhaseStarted, RunFinished, RunStarted
from build_events.fold import advance
from build_events.state import PhaseState, StreamState

MESSAGES = 6  # lines above the tree: the newest


class BuildView(Protocol):
    """Shows a build to a person."""

    def event(self, record: Recorded) -> None:
        """Show one event of the build; observer events included."""
        ...

    def message(self, text: str) -> None:
        """Show a sentence to act on."""
        ...


@contextmanager
def build_view(console: Console) -> Iterator[BuildView]:
    """Yield the live tree on a terminal, else plain lines without control codes."""
    if not console.is_terminal:
        yield PlainView(console.file)
        return
    tree = LiveView()
    with Live(tree, console=console, refresh_per_second=8):
        yield tree


class PlainView:
    """One line for each phase as it starts and finishes."""

    def __init__(self, file: IO[str]) -> None:
        self._file = file
        self._broken = False
        self._depth: dict[int, int] = {}
        self._started_ns: int | None = None

    def event(self, record: Recorded) -> None:
        """Print the events that a person waits for."""
        event = record.event
        if self._started_ns is None:
            self._started_ns = record.monotonic_ns
        match event:
            case RunStarted():
                line = f"run {record.stream.run_id} started: {event.route} -> {event.output}"
            case PhaseStarted():
                depth = self._depth.get(event.parent_id or 0, -1) + 1
                self._depth[event.phase_id] = depth
                line = f"{'  ' * depth}start  {event.name}"
            case PhaseFinished():
                depth = self._depth.get(event.phase_id, 0)
                seconds = event.duration_ns / NS_PER_S
                line = f"{'  ' * depth}finish {event.name} ({event.steps_seen} steps, {seconds:.3f} s)"
            case CancelRequested():
                line = f"cancel requested by {event.source}" + (f": {event.reason}" if event.reason else "")
            case RunFinished():
                line = f"run finished: {event.outcome}"
            case _:
                return
        elapsed = (record.monotonic_ns - self._started_ns) / NS_PER_S
        self.message(f"{elapsed:8.3f} s  {line}")

    def message(self, text: str) -> None:
        """Print a line; where nobody can read any more, e.g. a closed pipe or a full disk, print no more."""
        if self._broken:
            return
        try:
            self._file.write(f"{text}\n")
            self._file.flush()
        except OSError:
            self._broken = True


class LiveView:
    """The phase tree as it grows, with the time since each phase began."""

    def __init__(self) -> None:
        self._state: StreamState | None = None
        self._head = Text("starting the builder")
        self._messages: deque[str] = deque(maxlen=MESSAGES)

    def event(self, record: Recorded) -> None:
        """Take the event in; the next refresh shows it."""
        event = record.event
        if record.stream.role == "main":
            self._state = advance(self._state or StreamState(header=record.stream), [record])
        match event:
            case RunStarted():
                self._head = Text(f"run {record.stream.run_id}  {event.route}")
            case CancelRequested():
                self.message(f"cancel requested by {event.source}")
            case RunFinished():
                self.message(f"run finished: {event.outcome}")
            case _:
                pass

    def message(self, text: str) -> None:
        """Keep a sentence above the tree."""
        if text not in self._messages:
            self._messages.append(text)

    def __rich__(self) -> RenderableType:
        phases = self._state.phases if self._state else {}
        root = Tree(self._head, guide_style="dim")
        nodes: dict[int | None, Tree] = {None: root}
        for phase_id in sorted(phases):
            phase = phases[phase_id]
            nodes[phase_id] = nodes.get(phase.parent_id, root).add(_label(phase))
        # Messages first: a tree longer than the terminal is cut at its end. A copy: another thread appends.
        return Group(*(Text(message, style="yellow") for message in tuple(self._messages)), root)


def _label(phase: PhaseState) -> Text:
    # Declared steps are not all reported by a healthy build, so there is no honest percentage.
    label = Text(f"{phase.name}  {phase.steps_seen} steps  ")
    if phase.duration_ns is not None:
        style = "green" if phase.ended == "finished" else "yellow"
        return label.append(f"{phase.duration_ns / NS_PER_S:.3f} s", style=style)
    if phase.started_at_ns is None:
        return label
    open_for = max(time.time_ns() - phase.started_at_ns, 0) / NS_PER_S
    return label.append(f"open for {open_for:.1f} s", style="bold")
