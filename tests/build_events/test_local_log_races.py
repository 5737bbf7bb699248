"""Moments that a test with free-running processes meets rarely: here each is made to happen."""

import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from typing_extensions import override

from build_events import codec
from build_events.errors import LogUnavailableError
from build_events.local_log import LocalLog, SegmentTail, locks
from build_events.local_log.lines import frame
from tests.build_events.log_files import content, segment
from tests.build_events.log_processes import BEAT, stream_in


@pytest.fixture
def log(tmp_path: Path) -> LocalLog:
    """An empty log whose segments hold about three events."""
    return LocalLog.create(tmp_path / "log", segment_bytes=1_000)


def once(action: Callable[[], None]) -> Callable[[], None]:
    """Return a call that acts the first time only."""
    left = [action]

    def call() -> None:
        if left:
            left.pop()()

    return call


def test_a_line_that_is_finished_while_the_reader_asks_for_the_lock_is_no_torn_tail(
    log: LocalLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The reader reads to the end again after it saw the lock free: the writer may have ended in order."""
    stream = stream_in(log, "run-1", "main")
    stream.append(BEAT)
    line = frame(codec.encode(stream.record(BEAT)))
    path = segment(log.folder, "run-1", "main")
    with path.open("ab", buffering=0) as file:
        file.write(line[:50])
        is_held = locks.is_held

        def finish() -> None:
            file.write(line[50:])
            stream.close()

        finish_once = once(finish)

        def asked_meanwhile(lock: str) -> bool:
            finish_once()
            return is_held(lock)

        monkeypatch.setattr(locks, "is_held", asked_meanwhile)
        got = content(LocalLog(log.folder))
    assert (got.sequences, got.rejects) == ([0, 1, 2], [])
    assert got.positions == log.ends()


def test_a_lock_file_that_a_pass_over_the_folder_missed_is_seen_by_the_second(
    log: LocalLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A listing of a folder that changes may hold a segment and not the lock that came before it."""
    stream_in(log, "run-1", "main").append(BEAT)
    path = segment(log.folder, "run-1", "main")
    end = path.stat().st_size
    with path.open("ab") as file:
        file.write(b'{"half":')
    scandir = os.scandir
    passes: list[str] = []

    @contextmanager
    def blind_at_first(folder: str) -> Iterator[list[os.DirEntry[str]]]:
        passes.append(folder)
        with scandir(folder) as entries:
            first = folder.endswith("run-1") and passes.count(folder) == 1
            yield [entry for entry in entries if not (first and entry.name == "main.lock")]

    monkeypatch.setattr(os, "scandir", blind_at_first)
    assert LocalLog(log.folder).ends() == {"runs/run-1/main.0000.jsonl": end}


def test_a_change_within_one_tick_of_the_kernels_clock_is_not_missed(log: LocalLog) -> None:
    """Two changes of a folder can carry the same time; a folder that changed just now is listed again."""
    stream_in(log, "run-1", "main").close(BEAT)
    now = time.time_ns()
    folder = log.folder / "runs" / "run-1"
    os.utime(folder, ns=(now, now))
    reader = LocalLog(log.folder)
    seen = content(reader).positions
    stream_in(log, "run-1", "validator", "observer").close(BEAT)
    os.utime(folder, ns=(now, now))
    assert content(reader, seen).sequences == [0, 1]


def test_a_tail_misses_nothing_that_was_written_just_before_the_roll_over(log: LocalLog) -> None:
    """The last lines of a segment may come between a poll's read and its look for the next segment."""
    stream = stream_in(log, "run-1", "main")
    written = stream.append(BEAT)

    def write_and_roll_over() -> None:
        for _ in range(4):
            written.extend(stream.append(BEAT))

    roll_over = once(write_and_roll_over)

    class Overtaken(SegmentTail):
        @override
        def _open(self, number: int) -> int | None:
            if number == 1:
                roll_over()
            return super()._open(number)

    tail = Overtaken(log.folder, "run-1", "main")
    assert tail.poll() == written
    assert segment(log.folder, "run-1", "main", 1).exists()
    assert len(written) == 5
    tail.close()


def test_append_returns_after_the_data_and_the_names_are_durable(
    log: LocalLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first append syncs the folders that hold its names; every append ends with its segment's fdatasync."""
    synced: list[str] = []

    def recording(name: str) -> Callable[[int], None]:
        original: Any = getattr(os, name)

        def call(descriptor: int) -> None:
            original(descriptor)
            synced.append(f"{name} {Path(f'/proc/self/fd/{descriptor}').readlink().name}")

        return call

    for name in ("fsync", "fdatasync"):
        monkeypatch.setattr(os, name, recording(name))
    stream = stream_in(log, "run-1", "main")
    stream.append(BEAT)
    assert synced == ["fsync runs", "fsync run-1", "fdatasync main.0000.jsonl"]
    stream.append(BEAT)
    assert synced[3:] == ["fdatasync main.0000.jsonl"]


def test_a_segment_whose_name_is_not_durable_yet_acknowledges_nothing(
    log: LocalLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    """When the sync of the folder fails, the repeated append does it again before it returns."""
    stream = stream_in(log, "run-1", "main")
    records = [stream.record(BEAT)]
    fsync, left = os.fsync, [OSError(5, "Input/output error")]
    synced: list[str] = []

    def fail_once(descriptor: int) -> None:
        name = Path(f"/proc/self/fd/{descriptor}").readlink().name
        if name == "run-1" and left:
            raise left.pop()
        fsync(descriptor)
        synced.append(name)

    monkeypatch.setattr(os, "fsync", fail_once)
    with pytest.raises(LogUnavailableError, match="Input/output error"):
        log.append(records)
    assert synced == ["runs"]
    log.append(records)
    assert synced == ["runs", "run-1"]
    assert content(log).sequences == [0]


def test_after_a_failed_fdatasync_nothing_more_goes_to_that_segment(
    log: LocalLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The kernel reports a lost write once only: a later success on the same file would prove nothing."""
    stream = stream_in(log, "run-1", "main")
    stream.append(BEAT)
    failed = [stream.record(BEAT)]

    def fail(_: int) -> None:
        raise OSError(5, "Input/output error")

    with monkeypatch.context() as broken:
        broken.setattr(os, "fdatasync", fail)
        with pytest.raises(LogUnavailableError, match=r"main\.0000\.jsonl: Input/output error"):
            log.append(failed)
    log.append(failed)
    stream.close()
    assert segment(log.folder, "run-1", "main", 1).exists()
    assert content(log).sequences == [0, 1, 1, 2]


def test_a_signal_handler_that_raises_in_a_write_leaves_a_segment_that_is_not_written_again(
    log: LocalLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ctrl-C can come between the write and its bookkeeping; half a line may stand there."""
    stream = stream_in(log, "run-1", "main")
    stream.append(BEAT)
    record = stream.record(BEAT)
    write = os.write

    def interrupted(descriptor: int, data: memoryview) -> int:
        write(descriptor, data[:40])
        raise KeyboardInterrupt

    with monkeypatch.context() as broken:
        broken.setattr(os, "write", interrupted)
        with pytest.raises(KeyboardInterrupt):
            log.append([record])
    log.append([record])
    got = content(log)
    assert (got.sequences, got.reasons) == ([0, 1], ["torn_tail"])
    assert got.positions == log.ends()
