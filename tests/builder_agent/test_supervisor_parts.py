"""The supervisor's parts by themselves: what they promise to each other."""

import os
import signal
import threading
import time
from pathlib import Path

import pytest

from build_events.clock import NS_PER_MS, NS_PER_S, Instant, system_clock
from build_events.events import CancelSource
from builder_agent.errors import UsageError
from builder_agent.supervised.control import CancelMessage
from builder_agent.supervised.ends import exit_code_without_run, plan_unseen
from builder_agent.supervised.feed import Feed
from builder_agent.supervised.memory_kills import oom_kills
from builder_agent.supervised.signals import signals_noted
from builder_agent.supervised.supervise import Mailbox, supervise
from builder_agent.supervisor_lock import SupervisorLock, is_supervised, lock_path, remove_abandoned_locks
from tests.builder_agent.supervised import Place, is_running, wait_until
from tests.models import small_model


def test_a_grandchild_goes_with_the_build(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever the building process started in its group is gone when the build is."""
    (tmp_path / "site").mkdir()
    (tmp_path / "site" / "sitecustomize.py").write_text(
        "import os, pathlib, subprocess, sys\n"
        "if 'builder_agent.supervised.child' in sys.orig_argv:\n"
        "    pid = subprocess.Popen(['sleep', '300']).pid\n"
        f"    pathlib.Path({str(tmp_path / 'pid')!r}).write_text(str(pid))\n",
        encoding="utf-8",
    )
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "site"))
    result = Place(tmp_path / "build", small_model()).build()
    assert result.exit_code == 0
    pid = int((tmp_path / "pid").read_text(encoding="utf-8"))
    wait_until(lambda: not is_running(pid), "the grandchild's end")


def test_a_failing_callback_neither_stops_nor_spoils_the_build(tmp_path: Path) -> None:
    """Its exception comes out at the end, when everything is built and recorded."""
    place = Place(tmp_path, small_model())
    spec = place.spec()

    def fail(_: object) -> None:
        raise RuntimeError("the display broke")

    with pytest.raises(RuntimeError, match="the display broke"):
        place.build(spec, on_event=fail)
    state = place.state(spec.run_id)
    assert (state.run.outcome, state.run.complete) == ("completed", True)


def test_what_the_child_prints_is_handed_on_line_by_line(tmp_path: Path) -> None:
    """A caller that has the terminal in use gets the refusal, and every line, before the call returns."""
    place = Place(tmp_path)
    lines: list[str] = []
    result = supervise(place.spec(), clock=system_clock, on_output=lines.append)
    assert result.exit_code == 2
    assert lines == [
        f"enginetrail build: model {place.model}: No such file or directory. Give the path of an ONNX model file."
    ]


def test_supervision_outside_the_main_thread_is_refused(tmp_path: Path) -> None:
    """Signals do not reach it there, and the kernel ends the child with the thread that forked it."""
    place = Place(tmp_path, small_model())
    caught: list[BaseException] = []

    def call() -> None:
        try:
            supervise(place.spec(), clock=system_clock)
        except UsageError as error:
            caught.append(error)

    thread = threading.Thread(target=call)
    thread.start()
    thread.join()
    assert "main thread" in str(caught[0])
    assert not place.log.exists()


def test_signals_are_noted_with_their_time_and_their_source() -> None:
    """One note each, in order, and nothing else happens."""
    noted: list[tuple[CancelSource, Instant]] = []
    with signals_noted(lambda source, at: noted.append((source, at)), system_clock):
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            os.kill(os.getpid(), number)
    assert [source for source, _ in noted] == ["ctrl_c", "service", "service"]
    times = [at.monotonic_ns for _, at in noted]
    assert times == sorted(times)


def test_an_ignored_hangup_stays_ignored() -> None:
    """``nohup`` means that the build outlives its terminal."""
    noted: list[CancelSource] = []
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with signals_noted(lambda source, _at: noted.append(source), system_clock):
            os.kill(os.getpid(), signal.SIGHUP)
        assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGHUP, before)
    assert noted == []


@pytest.mark.quiet
def test_the_feed_tells_in_order_and_waits_for_nobody() -> None:
    """A callback that stands still delays neither the caller nor, beyond its bound, the end."""
    told: list[str] = []
    go_on = threading.Event()

    def slow(text: str) -> None:
        go_on.wait()
        told.append(text)

    feed = Feed(lambda _record: None, slow)
    for number in range(3):
        feed.message(str(number))
    began_ns = time.monotonic_ns()
    assert not feed.close(20 * NS_PER_MS)
    assert time.monotonic_ns() - began_ns < NS_PER_S
    go_on.set()
    assert feed.close(10 * NS_PER_S)
    assert told == ["0", "1", "2"]


def test_the_mailbox_gives_all_that_came(tmp_path: Path) -> None:
    """A flood is taken at once; an empty box returns after the time-out."""
    mailbox = Mailbox(clock=system_clock)
    for _ in range(1000):
        mailbox.request_cancel("ctrl_c")
    assert len(mailbox.take(0)) == 1000
    assert mailbox.take(NS_PER_MS) == []
    assert list(tmp_path.iterdir()) == []


def test_a_supervisor_is_seen_while_it_lives_and_cleared_away_after(tmp_path: Path) -> None:
    """The lock of one that ended in order is gone; that of a dead one is removed by the next start."""
    lock = SupervisorLock(tmp_path, "run/1")
    assert not is_supervised(tmp_path, "run/1")
    lock.acquire()
    remove_abandoned_locks(tmp_path)
    assert is_supervised(tmp_path, "run/1")
    lock.after_fork_in_child()  # what is left of a killed supervisor: the file, and nobody who holds it
    assert not is_supervised(tmp_path, "run/1")
    assert lock_path(tmp_path, "run/1").exists()
    remove_abandoned_locks(tmp_path)
    assert not lock_path(tmp_path, "run/1").exists()


@pytest.mark.parametrize(
    ("membership", "file", "content", "expected"),
    [
        ("0::/builds/one", "builds/one/memory.events", "low 0\noom 3\noom_kill 2\n", 2),
        ("4:memory:/builds\n0::/", "memory/builds/memory.oom_control", "oom_kill_disable 0\noom_kill 7\n", 7),
        ("0::/builds/one", "elsewhere/memory.events", "oom_kill 2\n", None),
        ("0::/builds/one", "builds/one/memory.events", "low 0\n", None),
    ],
    ids=["v2", "v1", "no file", "no counter"],
)
def test_kills_for_memory_are_read_where_the_kernel_counts_them(
    tmp_path: Path, membership: str, file: str, content: str, expected: int | None
) -> None:
    """Both versions of control groups; a machine that does not say is no evidence."""
    (tmp_path / "proc" / "1").mkdir(parents=True)
    (tmp_path / "proc" / "1" / "cgroup").write_text(membership + "\n", encoding="ascii")
    counters = tmp_path / "cgroup" / file
    counters.parent.mkdir(parents=True)
    counters.write_text(content, encoding="ascii")
    assert oom_kills(1, cgroups=tmp_path / "cgroup", proc=tmp_path / "proc") == expected


@pytest.mark.parametrize(
    ("returncode", "source", "deadline", "expected"),
    [
        (2, None, False, 2),
        (2, "ctrl_c", False, 2),
        (-9, "ci", True, 124),
        (130, "ctrl_c", False, 130),
        (-15, "service", False, 143),
        (130, "ide", False, 130),
        (-11, None, False, 1),
        (1, None, False, 1),
    ],
)
def test_a_build_that_never_began_has_an_exit_code_of_its_own(
    returncode: int, source: CancelSource | None, *, deadline: bool, expected: int
) -> None:
    """A refusal is 2; else who asked first decides; else it is a fault."""
    request = source and CancelMessage(request_id="r", source=source, deadline=deadline, wall_ns=0, monotonic_ns=0)
    assert exit_code_without_run(returncode, request or None) == expected


def test_only_an_end_that_the_build_did_not_see_is_planned_for() -> None:
    """The building process plans for its own ends; the rest is cold, or looked at first."""
    plans = {
        outcome: plan.policy if (plan := plan_unseen(outcome)) else None
        for outcome in ("completed", "cancelled", "failed", "killed", "lost", "crashed", "oom_killed")
    }
    assert plans == {
        "completed": None,
        "cancelled": None,
        "failed": None,
        "killed": "retry_cold",
        "lost": "retry_cold",
        "crashed": "investigate",
        "oom_killed": "investigate",
    }
