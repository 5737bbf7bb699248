"""Atomic publishing: the target holds the old artifact or the whole new one, never anything else."""

import hashlib
import os
import signal
import struct
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from build_events.events import (
    ArtifactInventoried,
    ArtifactPublished,
    ArtifactPublishing,
    ArtifactQuarantined,
    ArtifactRemoved,
    ErrorRecorded,
    Event,
    InventoryEntry,
)
from builder_agent.errors import ArtifactWriteError, OutputBusyError, OutputFolderError
from builder_agent.files.artifact import CHUNK_BYTES, ArtifactWriter
from builder_agent.files.output_folder import (
    LISTED_FILES,
    OutputLock,
    inventory,
    lock_path,
    quarantine,
    quarantine_folder,
    temp_owner,
    temp_path,
    temporaries,
)
from tests.waiting import until

RUN = "6f1c1d5e-0000-4000-8000-000000000001"


class Shop:
    """A writer for one target, with what it said."""

    def __init__(self, target: Path, durable: Callable[[], object] = lambda: None) -> None:
        self.target = target
        self.events: list[Event] = []
        self.writer = ArtifactWriter(target, RUN, post=self.events.append, durable=durable)

    def names(self) -> list[str]:
        """Return the names beside the target."""
        return sorted(path.name for path in self.target.parent.iterdir())


def rtx_engine(*, promised: int | None = None, trailer: str = "998b8d8b") -> bytes:
    """Return bytes that claim the layout of a TensorRT-RTX engine."""
    size = 64
    head = struct.pack("<4s4xQQ", b"vtrt", 2, size if promised is None else promised)
    return head.ljust(size - 4, b"\0") + bytes.fromhex(trailer)


def test_an_artifact_is_published_whole_with_its_checks(tmp_path: Path) -> None:
    """Content, digest, size and checks; no temporary file is left."""
    shop = Shop(tmp_path / "a.engine")
    data = rtx_engine()
    published = shop.writer.save(memoryview(data))
    assert shop.target.read_bytes() == data
    assert published.sha256 == hashlib.sha256(data).hexdigest()
    assert published.checks == ["read_back", "size_field", "trailer", "folder_fsync"]
    assert shop.names() == ["a.engine"]
    assert [type(event) for event in shop.events] == [ArtifactPublishing, ArtifactPublished]


def test_an_artifact_larger_than_one_chunk_is_whole(tmp_path: Path) -> None:
    """Chunks are joined without loss at their borders."""
    shop = Shop(tmp_path / "a.engine")
    data = os.urandom(CHUNK_BYTES + 12345)
    assert shop.writer.save(memoryview(data)).checks == ["read_back", "folder_fsync"]
    assert hashlib.sha256(shop.target.read_bytes()).digest() == hashlib.sha256(data).digest()


def test_publishing_is_durable_before_the_target_changes(tmp_path: Path) -> None:
    """A sweep must be able to tell a finished file from a torn one."""
    target = tmp_path / "a.engine"
    target.write_bytes(b"old")
    seen: list[tuple[bytes, bool]] = []
    shop = Shop(target, durable=lambda: seen.append((target.read_bytes(), temp_path(target, RUN).exists())))
    shop.writer.save(memoryview(b"new"))
    assert seen == [(b"old", True)]
    assert target.read_bytes() == b"new"


@pytest.mark.parametrize("damage", [{"promised": 65}, {"trailer": "00000000"}], ids=["size", "trailer"])
def test_an_engine_that_contradicts_its_own_layout_is_quarantined(tmp_path: Path, damage: dict[str, object]) -> None:
    """The target stays as it was, and the bytes are kept to be looked at."""
    shop = Shop(tmp_path / "a.engine")
    shop.target.write_bytes(b"old")
    data = rtx_engine(**damage)  # type: ignore[arg-type] # the cases above name its arguments
    with pytest.raises(ArtifactWriteError, match="not published"):
        shop.writer.save(memoryview(data))
    assert shop.target.read_bytes() == b"old"
    (moved,) = [event for event in shop.events if isinstance(event, ArtifactQuarantined)]
    assert Path(moved.quarantine).read_bytes() == data
    assert not temporaries(shop.target)


def test_a_layout_of_another_format_is_not_judged(tmp_path: Path) -> None:
    """A future release must not be refused by today's rules."""
    data = bytearray(rtx_engine(promised=1))
    data[8] = 3
    assert Shop(tmp_path / "a.engine").writer.save(memoryview(data)).checks == ["read_back", "folder_fsync"]


def test_a_target_that_became_a_folder_keeps_the_artifact_in_quarantine(tmp_path: Path) -> None:
    """A rename that fails loses nothing."""
    shop = Shop(tmp_path / "a.engine")
    shop.target.mkdir()
    (shop.target / "something").touch()
    with pytest.raises(ArtifactWriteError):
        shop.writer.save(memoryview(b"new"))
    assert [event for event in shop.events if isinstance(event, ArtifactQuarantined)]


def test_a_full_disk_leaves_the_target_and_no_temporary_file(tmp_path: Path) -> None:
    """The error says which file, why, and what the target holds."""
    code = f"""
import resource, signal, sys
from pathlib import Path
from builder_agent.files.artifact import ArtifactWriter
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, 1 << 20))
events = []
writer = ArtifactWriter(Path("a.engine").absolute(), {RUN!r}, post=events.append, durable=lambda: None)
try:
    writer.save(memoryview(bytes(2 << 20)))
except Exception as error:
    print(type(error).__name__, error.error_type, [type(event).__name__ for event in events])
"""
    (tmp_path / "a.engine").write_bytes(b"old")
    ran = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert ran.stdout.split("\n")[0] == f"ArtifactWriteError artifact_write ['{ArtifactRemoved.__name__}']"
    assert [path.name for path in tmp_path.iterdir()] == ["a.engine"]
    assert (tmp_path / "a.engine").read_bytes() == b"old"


def test_two_builds_to_one_output_do_not_meet(tmp_path: Path) -> None:
    """The second is refused at once, with who and what; after the first it may."""
    first, second = OutputLock(tmp_path / "a.engine"), OutputLock(tmp_path / "a.engine")
    first.acquire()
    with pytest.raises(OutputBusyError, match=r"another build is writing it .*enginetrail-lock"):
        second.acquire()
    first.release()
    second.acquire()
    second.release()
    assert lock_path(tmp_path / "a.engine").exists(), "the lock file may remain, and is never renamed"


def test_locks_of_two_outputs_do_not_touch(tmp_path: Path) -> None:
    """One lock file for each target."""
    locks = [OutputLock(tmp_path / name) for name in ("a.engine", "b.engine")]
    for lock in locks:
        lock.acquire()
    for lock in locks:
        lock.release()


def test_a_forked_child_does_not_keep_the_lock(tmp_path: Path) -> None:
    """The descriptor is closed in the child, or the lock would outlive the parent."""
    lock = OutputLock(tmp_path / "a.engine")
    lock.acquire()
    child = os.fork()
    if child == 0:
        signal.pause()
    try:
        lock.release()
        again = OutputLock(tmp_path / "a.engine")
        until(lambda: acquired(again))
        again.release()
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)


def acquired(lock: OutputLock) -> bool:
    """Take the lock if it is free; the child needs a moment to let go."""
    try:
        lock.acquire()
    except OutputBusyError:
        return False
    return True


@pytest.mark.parametrize(
    ("output", "why"),
    [
        ("missing/a.engine", "does not exist"),
        ("file/a.engine", "does not exist"),
        (".", "is a folder"),
        ("x" * 240, "no room"),
    ],
)
def test_an_output_that_cannot_be_written_is_refused_before_the_run(tmp_path: Path, output: str, why: str) -> None:
    """A usage error, with the folder and what to do."""
    (tmp_path / "file").touch()
    with pytest.raises(OutputFolderError, match=why):
        OutputLock(tmp_path / output).acquire()


def test_temporary_files_are_known_by_target_and_run(tmp_path: Path) -> None:
    """A target whose name begins with another's does not take its files."""
    short, long = tmp_path / "a", tmp_path / "a.engine"
    for target in (short, long):
        temp_path(target, RUN).touch()
    assert temporaries(short) == [temp_path(short, RUN)]
    assert temp_owner(temp_path(long, RUN), long) == RUN
    assert temp_owner(long, long) is None


def test_the_inventory_lists_target_temporaries_and_quarantine(tmp_path: Path) -> None:
    """Every file that a run could have left, with its digest, and nothing of other targets."""
    target = tmp_path / "a.engine"
    target.write_bytes(b"old")
    temp_path(target, "run-2").write_bytes(b"half")
    temp_path(target, "run-3").write_bytes(b"torn")
    (tmp_path / "b.engine").write_bytes(b"other")
    quarantine(temp_path(target, "run-3"), target, "run-3", "left behind")
    entries = listed(target, RUN)
    assert [(entry.role, entry.size_bytes) for entry in entries] == [("target", 3), ("temporary", 4), ("quarantine", 4)]
    assert entries[0].sha256 == hashlib.sha256(b"old").hexdigest()


def listed(target: Path, run_id: str) -> list[InventoryEntry]:
    """Return the entries of an inventory that leaves nothing out."""
    (event,) = inventory(target, run_id, "before")
    assert isinstance(event, ArtifactInventoried)
    return event.entries


def test_the_inventory_reads_only_the_target_and_the_files_of_its_run(tmp_path: Path) -> None:
    """A quarantine full of old engines costs a build no reading; sizes are enough to see what lies there."""
    target = tmp_path / "a.engine"
    target.write_bytes(b"old")
    for run_id in (RUN, "run-2"):
        temp_path(target, run_id).write_bytes(b"torn")
        quarantine(temp_path(target, run_id), target, run_id, "test")
        temp_path(target, run_id).write_bytes(b"half")
    hashed = {entry.path for entry in listed(target, RUN) if entry.sha256 is not None}
    mine = {str(target), str(temp_path(target, RUN)), str(quarantine_folder(target, RUN) / temp_path(target, RUN).name)}
    assert hashed == mine
    assert len(listed(target, RUN)) == 5


@pytest.mark.parametrize("directory", ["short", "/".join(["long" * 50 + "\x01" * 50] * 6)])
def test_an_inventory_fits_into_one_event_and_says_what_it_leaves_out(tmp_path: Path, directory: str) -> None:
    """Of a thousand old files the newest are listed, the target and this run's always, and the rest are counted."""
    target = tmp_path / directory / "a.engine"
    target.parent.mkdir(parents=True)
    target.write_bytes(b"old")
    temp_path(target, RUN).write_bytes(b"half")
    for number in range(1000):
        place = quarantine_folder(target, f"run-{number}") / "a.engine"
        place.parent.mkdir(parents=True)
        place.touch()
        os.utime(place, ns=(number, number))
    event, unlisted = inventory(target, RUN, "after")
    assert isinstance(event, ArtifactInventoried)
    assert isinstance(unlisted, ErrorRecorded)
    assert len(event.model_dump_json().encode()) < 128 << 10
    assert [entry.role for entry in event.entries[:2]] == ["target", "temporary"]
    listed_runs = [Path(entry.path).parent.name for entry in event.entries[2:]]
    assert listed_runs == [f"run-{999 - number}" for number in range(len(listed_runs))]
    assert len(listed_runs) == LISTED_FILES - 2 or directory != "short"
    assert f"{1000 - len(listed_runs)} further files" in unlisted.message


def test_a_file_whose_name_is_not_utf_8_is_listed_all_the_same(tmp_path: Path) -> None:
    """What others put beside a target must not cost the run its inventory."""
    target = tmp_path / "a.engine"
    place = quarantine_folder(target, "run-2") / "a.engine.caf\udce9"
    place.parent.mkdir(parents=True)
    place.touch()
    (entry,) = listed(target, RUN)
    assert entry.path.endswith("a.engine.caf\\udce9")
    assert entry.model_dump_json()


def test_quarantine_never_overwrites(tmp_path: Path) -> None:
    """Two files of one name are both kept."""
    target = tmp_path / "a.engine"
    places = []
    for content in (b"one", b"two"):
        temp_path(target, RUN).write_bytes(content)
        places.append(Path(quarantine(temp_path(target, RUN), target, RUN, "test").quarantine))
    assert [place.read_bytes() for place in places] == [b"one", b"two"]
