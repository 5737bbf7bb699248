"""What the local log's writer promises: durable order, roll-over, and failures that cost nothing stored."""

import contextlib
import re
import resource
import subprocess
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from build_events import clock
from build_events.envelope import Recorded, StreamHeader
from build_events.errors import LogUnavailableError
from build_events.events import StreamClosed
from build_events.local_log import LocalLog
from build_events.stream import EventStream
from tests.build_events.log_files import content, segment
from tests.build_events.log_processes import BEAT, process, stream_in
from tests.build_events.scenes import Scene, flatten

Release = Callable[[], None]
KIBIBYTE = 1024


@pytest.fixture
def log(tmp_path: Path) -> LocalLog:
    """An empty log."""
    return LocalLog.create(tmp_path / "log")


def test_the_lock_file_lives_from_before_the_first_event_to_after_the_last(log: LocalLog) -> None:
    """While it is there the stream has a writer; closing the stream removes it."""
    stream = stream_in(log, "run-1", "main")
    lock = segment(log.folder, "run-1", "main").with_name("main.lock")
    assert not lock.exists()
    stream.append(BEAT)
    assert lock.exists()
    stream.close()
    assert sorted(path.name for path in lock.parent.iterdir()) == ["main.0000.jsonl"]


def test_a_stream_rolls_over_to_further_segments(tmp_path: Path) -> None:
    """A segment that reached its size is followed by the next; reading joins them in order."""
    log = LocalLog.create(tmp_path / "log", segment_bytes=1_000)
    stream = stream_in(log, "run-1", "main")
    for _ in range(30):
        stream.append(BEAT)
    stream.close()
    paths = sorted(segment(log.folder, "run-1", "main").parent.iterdir())
    assert [path.name for path in paths] == [f"main.{number:04d}.jsonl" for number in range(len(paths))]
    assert len(paths) > 5
    assert all(path.stat().st_size >= 1_000 for path in paths[:-1])
    assert content(log).sequences == list(range(31))


def test_two_threads_write_two_streams_through_one_log(log: LocalLog) -> None:
    """Each stream keeps its order; neither waits for the other or mixes with it."""

    def write(stream: EventStream) -> None:
        for _ in range(100):
            stream.append(BEAT)
        stream.close()

    threads = [threading.Thread(target=write, args=[stream_in(log, "run-1", name)]) for name in ("one", "two")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    got = content(log)
    assert got.rejects == []
    for name in ("one", "two"):
        assert [record.sequence for record in got.records if record.stream.stream_id == name] == list(range(101))


def test_one_append_may_carry_several_streams(log: LocalLog) -> None:
    """Records are sorted out to their streams, each in the order given."""
    run = Scene().play("killed", flatten(((), ())), 4)
    log.append(run)
    got = content(log)
    for stream_id in {record.stream.stream_id for record in run}:
        expected = [record for record in run if record.stream.stream_id == stream_id]
        assert [record for record in got.records if record.stream.stream_id == stream_id] == expected


def test_processes_that_make_a_log_at_once_agree_on_its_identity(tmp_path: Path) -> None:
    """The first identity stays; nobody replaces it."""
    folder = tmp_path / "deep" / "log"
    with process("create", folder) as one, process("create", folder) as two, process("create", folder) as three:
        said = {child.communicate("go\n", timeout=60)[0] for child in (one, two, three)}
    assert len(said) == 1
    assert said == {f"{LocalLog.create(folder).identity()}\n"}
    assert [path.name for path in folder.iterdir() if path.is_file()] == ["identity.json"]


def test_a_log_that_was_not_made_takes_nothing(tmp_path: Path) -> None:
    """Opening a log makes no folder; the error says what to do."""
    log = LocalLog(tmp_path / "log")
    with pytest.raises(LogUnavailableError, match=r"identity\.json: missing"):
        stream_in(log, "run-1", "main").append(BEAT)
    assert list(tmp_path.iterdir()) == []


def test_a_log_cannot_be_made_where_no_folder_can_be(tmp_path: Path) -> None:
    """A file in the way is named, with what to do."""
    (tmp_path / "file").touch()
    with pytest.raises(LogUnavailableError, match=r"file.*Give a folder"):
        LocalLog.create(tmp_path / "file" / "log")


def test_a_folder_that_turns_unwritable_is_named_and_the_append_can_be_repeated(log: LocalLog) -> None:
    """Nothing counts as stored until the folder is back; then the same append goes through."""
    runs = log.folder / "runs"
    runs.rmdir()
    runs.touch()  # root may write to any folder, but nobody to a folder that is a file
    stream = stream_in(log, "run-1", "main")
    records = [stream.record(BEAT), stream.record(StreamClosed(events=2, dropped=0))]
    with pytest.raises(LogUnavailableError, match=r"runs.*append again"):
        log.append(records)
    runs.unlink()
    runs.mkdir()
    log.append(records)
    assert content(log).sequences == [0, 1]
    assert list(log.folder.rglob("*.lock")) == []


@pytest.mark.parametrize("subject", ["x" * 300, "ß" * 60])
def test_a_name_that_no_file_can_have_is_an_error_and_not_a_crash(log: LocalLog, subject: str) -> None:
    """File names end at 255 bytes; the error shows the name."""
    header = StreamHeader(stream_id="main", role="route", route=subject, source="tests", boot_id="boot-1")
    with pytest.raises(LogUnavailableError, match="name too long"):
        EventStream(header, log, clock=clock.system_clock).append(BEAT)


@contextmanager
def file_size_limit(_: Path) -> Iterator[Release]:
    """Files of this process end at 64 KiB: a write beyond is cut short, the next one fails."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (64 * KIBIBYTE, before[1]))
    try:
        yield lambda: resource.setrlimit(resource.RLIMIT_FSIZE, before)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


@contextmanager
def small_disk(mount_point: Path) -> Iterator[Release]:
    """A file system of 128 KiB, half of it taken; the file size limit where this user cannot mount one."""
    mount_point.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=128k", "tmpfs", mount_point], check=False, capture_output=True
    )
    if mounted.returncode != 0:
        with file_size_limit(mount_point) as release:
            yield release
        return
    ballast = mount_point / "ballast"
    ballast.write_bytes(bytes(64 * KIBIBYTE))
    try:
        yield ballast.unlink
    finally:
        subprocess.run(["umount", mount_point], check=True)


def append_until_full(log: LocalLog, stream: EventStream) -> tuple[int, list[Recorded], str]:
    """Append seven events at a time; return how many were stored, the seven that were not, and the error."""
    for acknowledged in range(0, 7_000, 7):
        records = [stream.record(BEAT) for _ in range(7)]
        try:
            log.append(records)
        except LogUnavailableError as error:
            return acknowledged, records, str(error)
    pytest.fail("the disk never filled up")


def test_half_a_line_of_a_failed_append_is_never_glued_to_another(tmp_path: Path) -> None:
    """The next append begins a new segment; the half line is left while the stream lives in it, and then torn."""
    with file_size_limit(tmp_path) as release:
        log = LocalLog.create(tmp_path / "log")
        stream = stream_in(log, "run-1", "main")
        acknowledged, failed, error = append_until_full(log, stream)
        assert re.search(r"main\.0000\.jsonl: File too large.*append again", error)
        assert content(log).sequences[:acknowledged] == list(range(acknowledged))
        assert content(log).rejects == []
        log.append(failed)
        assert content(log).reasons == ["torn_tail"]  # final, although the writer lives on
        assert content(log).positions == log.ends()
        release()
        stream.close()
    got = content(log)
    assert sorted(set(got.sequences)) == list(range(acknowledged + 8))
    [reject] = got.rejects
    assert reject.reason == "torn_tail"
    first = segment(log.folder, "run-1", "main")
    assert reject.offset + len(reject.payload) == first.stat().st_size == 64 * KIBIBYTE
    assert got.positions == log.ends()


def test_a_full_disk_loses_nothing_that_was_acknowledged(tmp_path: Path) -> None:
    """However often the append is tried again, it costs no file each time, and goes through once there is room."""
    with small_disk(tmp_path / "disk") as release:
        log = LocalLog.create(tmp_path / "disk" / "log")
        stream = stream_in(log, "run-1", "main")
        acknowledged, failed, error = append_until_full(log, stream)
        assert re.search(r"main\.0000\.jsonl: (No space left|File too large).*append again", error)
        for _ in range(10):
            with contextlib.suppress(LogUnavailableError):
                log.append(failed)
        assert acknowledged > 30
        assert set(content(log).sequences) >= set(range(acknowledged))
        assert len(list(log.folder.rglob("*.jsonl"))) <= 3
        release()
        log.append(failed)
        stream.close()
        got = content(log)
        assert set(got.sequences) == set(range(acknowledged + 8))
        assert set(got.reasons) <= {"torn_tail"}
        assert got.positions == log.ends()
        assert list(log.folder.rglob("*.lock")) == []
