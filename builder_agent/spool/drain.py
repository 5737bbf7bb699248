"""Hands on what is new in a spool, stream by stream, and deletes what is handed on (CONTRACT section 6).

For each group of streams: 1. take their drain locks, 2. read their cursors, 3. send what is behind
them, 4. wait for the answers, 5. put what was refused into dead letters, 6. write the cursors,
7. release. A process that dies anywhere between sends again what its cursors do not cover.
"""

import contextlib
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from build_events import kafka_record
from build_events.local_log.cursor import DrainLock, Position, read_cursor
from build_events.local_log.layout import StreamPlace, parse_segment
from build_events.local_log.listing import Listing, Segment
from builder_agent.spool.cleaning import remove_drained
from builder_agent.spool.dead_letters import bury
from builder_agent.spool.pieces import Item, Piece, pieces
from builder_agent.spool.sink import Answer, Sink

GROUP_BYTES = 8 << 20  # sent and not yet acknowledged: the client's own buffer has no bound
GROUP_STREAMS = 64  # two descriptors each


@dataclass(frozen=True, slots=True)
class Step:
    """What one pass over the spool did."""

    events: int  # acknowledged now
    refused: int  # put into dead letters now
    left: bool  # something could not be handed on, or another drainer has it


@dataclass(slots=True)
class _Stream:
    """A stream in the hands of this drainer."""

    lock: DrainLock
    position: Position
    pieces: list[Piece] = field(default_factory=list)
    cut_short: bool = False  # there is more than the group had room for


class SpoolDrain:
    """Drains a log folder into a sink. One thread uses it; other processes may drain the same folder."""

    def __init__(self, folder: Path, sink: Sink, *, run_first: str | None = None) -> None:
        """``run_first``: the run whose streams go before all others."""
        self._folder = folder
        self._sink = sink
        self._first = run_first
        self._listing = Listing(os.fspath(folder))
        self._identity = ""  # of the sink, once it was reached
        # What this drainer knows to be acknowledged: more than the cursors say where the disk has no room for them.
        self._positions: dict[StreamPlace, Position] = {}
        self._handed_on: dict[str, int] = {}  # source -> bytes known to be acknowledged, not to open it for nothing

    def step(self, give_up: Callable[[], bool]) -> Step:
        """Go over the spool once. Waits through an outage until ``give_up`` says so.

        Raises:
            SinkUnavailableError: the log behind the spool cannot be reached.
            OSError: the spool cannot be read, or its cursors not written.
        """
        work = self._work()
        events = refused = 0
        left = False
        if work:
            self._meet(self._sink.identity())
        while work and not give_up():
            group, work, held = self._group(work)
            left = left or held
            try:
                done = self._deliver(group, give_up)
            finally:
                for stream in group:
                    stream.lock.release()
            events, refused, left = events + done.events, refused + done.refused, left or done.left
        if self._identity:
            self._forget(remove_drained(self._folder, self._streams(), self._position))
        return Step(events, refused, left or bool(work))

    def _meet(self, identity: str) -> None:
        if identity != self._identity:
            self._identity = identity
            self._positions.clear()
            self._handed_on.clear()

    def _position(self, place: StreamPlace) -> Position:
        """Return how far the stream is acknowledged, by this drainer or another."""
        return max(read_cursor(place, self._identity), self._positions.get(place, Position()))

    def _streams(self) -> dict[StreamPlace, list[tuple[int, Segment]]]:
        """Return the spool's streams with their segments in order."""
        streams: dict[StreamPlace, list[tuple[int, Segment]]] = {}
        for segment in self._listing.segments():
            parsed = parse_segment(Path(segment.path).name)
            assert parsed is not None  # the listing names nothing else
            streams.setdefault(segment.place, []).append((parsed[1], segment))
        return streams

    def _work(self) -> list[tuple[StreamPlace, list[tuple[int, Segment]]]]:
        """Return the streams that may have something new, the first run's first."""
        found = [
            (place, segments)
            for place, segments in self._streams().items()
            if any(_size(segment) > self._handed_on.get(segment.source, 0) for _, segment in segments)
        ]
        return sorted(found, key=lambda item: item[0].run_id != self._first)

    def _group(
        self, work: list[tuple[StreamPlace, list[tuple[int, Segment]]]]
    ) -> tuple[list[_Stream], list[tuple[StreamPlace, list[tuple[int, Segment]]]], bool]:
        """Return the next streams with what they have to send, those that must wait, and whether others hold some."""
        group: list[_Stream] = []
        room, held = GROUP_BYTES, False
        for index, (place, segments) in enumerate(work):
            if room <= 0 or len(group) == GROUP_STREAMS:
                return group, work[index:], held
            lock = DrainLock.take(place)
            if lock is None:
                held = True
                continue
            stream = _Stream(lock, self._position(place))
            group.append(stream)
            for piece in pieces(segments, stream.position):
                if room <= 0:
                    stream.cut_short = True
                    break
                stream.pieces.append(piece)
                room -= piece.size
            if not stream.cut_short and not stream.pieces:
                self._note(place, stream.position)
        return group, [], held

    def _deliver(self, group: Sequence[_Stream], give_up: Callable[[], bool]) -> Step:
        records = [piece.record for stream in group for piece in stream.pieces if piece.record is not None]
        answers = iter(self._sink.deliver(records, give_up) if records else [])
        events = refused = 0
        left = False
        for stream in group:
            mine = [next(answers) if piece.record is not None else None for piece in stream.pieces]
            before = stream.position
            for piece, answer in zip(stream.pieces, mine, strict=True):
                settled = self._settle(stream, piece, answer, give_up)
                if settled is None:
                    left = True
                    break
                events, refused = events + settled[0], refused + settled[1]
                stream.position = max(stream.position, piece.end)
            left = left or stream.cut_short
            if stream.position != before:
                self._note(stream.lock.place, stream.position)
                with contextlib.suppress(OSError):  # a full disk: to go on makes room, and memory holds the position
                    stream.lock.write_cursor(stream.position, self._identity)
        return Step(events, refused, left)

    def _settle(
        self, stream: _Stream, piece: Piece, answer: Answer | None, give_up: Callable[[], bool]
    ) -> tuple[int, int] | None:
        """Return how many events of a piece are stored and refused; ``None`` where it must be sent again."""
        if answer is None:
            return 0, bury(stream.lock.place, piece.items, [item.defect or "" for item in piece.items])
        if answer.state == "stored":
            return len(piece.items), 0
        if answer.state == "unknown":
            return None
        return self._one_by_one(stream, piece.items, give_up)

    def _one_by_one(
        self, stream: _Stream, items: Sequence[Item], give_up: Callable[[], bool]
    ) -> tuple[int, int] | None:
        """Send each event of a refused record alone: the broker refuses whole batches for one of them."""
        stored = refused = 0
        for item in items:
            self._sink.identity()
            [answer] = self._sink.deliver([kafka_record.encode([item.payload])], give_up)
            if answer.state == "unknown":
                return None
            if answer.state == "refused":
                refused += bury(stream.lock.place, [item], [answer.reason])
            else:
                stored += 1
        return stored, refused

    def _note(self, place: StreamPlace, position: Position) -> None:
        self._positions[place] = position
        for number in range(position.segment):
            self._handed_on[place.source(number)] = 1 << 62  # whole, whatever its size
        self._handed_on[place.source(position.segment)] = position.offset

    def _forget(self, places: Sequence[StreamPlace]) -> None:
        for place in places:
            self._positions.pop(place, None)
        gone = {f"{place.kind}/{place.key}/{place.name}" for place in places}
        self._handed_on = {
            source: end for source, end in self._handed_on.items() if source.rsplit(".", 2)[0] not in gone
        }


def waiting_events(folder: Path) -> int:
    """Return how many lines of a spool its cursors do not cover.

    Raises:
        OSError: the spool cannot be read.
    """
    return sum(_lines_behind(segment) for segment in Listing(os.fspath(folder)).segments())


def _lines_behind(segment: Segment) -> int:
    parsed = parse_segment(Path(segment.path).name)
    position = read_cursor(segment.place)
    if parsed is None or parsed[1] < position.segment:
        return 0
    start = position.offset if parsed[1] == position.segment else 0
    return sum(block.count(b"\n") for block in _blocks(segment.path, start))


def _blocks(path: str, start: int) -> Iterator[bytes]:
    with contextlib.suppress(FileNotFoundError), Path(path).open("rb") as file:
        file.seek(start)
        while block := file.read(1 << 20):
            yield block


def _size(segment: Segment) -> int:
    if segment.size is not None:
        return segment.size
    try:
        return Path(segment.path).stat().st_size
    except FileNotFoundError:
        return 0
