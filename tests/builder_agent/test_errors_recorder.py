"""Our error recorder: the builder's words as events, and still in the caller's log."""

import hashlib
from typing import Any

import pytest
import tensorrt_rtx as trt

from build_events.events import ErrorRecorded
from builder_agent.cancellation import CancelState
from builder_agent.recording.monitor import Callbacks, monitor_class
from builder_agent.texts import MESSAGE_BYTES, cut
from builder_agent.trt.build_call import NETWORK_NAME, watched
from builder_agent.trt.errors_recorder import RECORDED, ErrorRecorder
from tests import models
from tests.builder_agent.builds import ManualClock, logger, objects


class ListRecorder(trt.IErrorRecorder):  # type: ignore[misc] # the package has no types
    """A recorder that a caller may have set before."""

    def __init__(self) -> None:
        trt.IErrorRecorder.__init__(self)
        self.reported: list[tuple[Any, str]] = []

    def report_error(self, code: Any, text: str) -> bool:
        """Keep an error."""
        self.reported.append((code, text))
        return True

    def num_errors(self) -> int:
        """Return how many there are."""
        return len(self.reported)

    def get_error_code(self, index: int) -> Any:
        """Return a code."""
        return self.reported[index][0]

    def get_error_desc(self, index: int) -> str:
        """Return a text."""
        return self.reported[index][1]

    def has_overflowed(self) -> bool:
        """Say no."""
        return False

    def clear(self) -> None:
        """Keep everything."""


def monitor() -> Callbacks:
    """Return a monitor that nobody reads."""
    cancel = CancelState(clock=ManualClock(), post=lambda *_: None)
    return monitor_class(trt)([], cancel, capacity=0)  # type: ignore[arg-type] # an inbox that only takes


def test_the_builders_errors_reach_the_events_and_the_recorder_that_the_caller_had() -> None:
    """And afterwards the caller's objects are as they were."""
    theirs = ListRecorder()
    ours: list[ErrorRecorded] = []
    builder, network, config = objects(models.dynamic_model())
    builder.error_recorder = theirs
    with watched(trt, builder, network, config, monitor=monitor(), post=ours.append) as recorder:
        assert builder.build_serialized_network(network, config) is None
    assert [event.code for event in ours] == ["INVALID_CONFIG"]
    assert "no optimization profile has been defined" in recorder.messages[0]
    assert [text for _, text in theirs.reported] == recorder.messages
    assert builder.error_recorder is theirs
    assert config.progress_monitor is None


def test_without_a_recorder_of_the_caller_the_errors_go_to_the_builders_logger(
    capfd: pytest.CaptureFixture[str],
) -> None:
    """A recorder diverts errors from the log, so each is handed on."""
    builder, network, config = objects(models.dynamic_model())
    with watched(trt, builder, network, config, monitor=monitor(), post=lambda _: None):
        builder.build_serialized_network(network, config)
    assert logger() is not None
    assert "no optimization profile has been defined" in "".join(capfd.readouterr())


def test_a_network_without_a_name_gets_a_fixed_one_and_a_name_is_kept() -> None:
    """The default name is a counter of the process and stands in the engine."""
    for name, expected in ((None, NETWORK_NAME), ("mine", "mine")):
        builder, network, config = objects(models.small_model())
        network.name = name or "Unnamed Network 7"
        with watched(trt, builder, network, config, monitor=monitor(), post=lambda _: None):
            assert network.name == expected


def test_a_caller_whose_log_fails_does_not_stop_the_builder() -> None:
    """Nothing may leave a callback."""

    def broken(*_: object) -> None:
        raise OSError("log is full")

    heard: list[ErrorRecorded] = []
    assert ErrorRecorder(heard.append, broken).report_error(4, "text") is True
    assert [event.message for event in heard] == ["text"]


def test_errors_beyond_the_bound_are_counted() -> None:
    """A flood does not fill memory or log."""
    heard: list[ErrorRecorded] = []
    recorder = ErrorRecorder(heard.append, lambda *_: None)
    for number in range(RECORDED + 3):
        recorder.report_error(1, str(number))
    assert len(heard) == recorder.num_errors() == RECORDED
    assert recorder.unlisted == 3
    assert recorder.has_overflowed()


def test_a_long_text_is_cut_and_its_digest_kept() -> None:
    """At a border of characters, with the length of the whole."""
    text = "ä" * MESSAGE_BYTES
    short = cut(text)
    assert len(short.encode()) < MESSAGE_BYTES + 200
    assert hashlib.sha256(text.encode()).hexdigest() in short
    assert f"{2 * MESSAGE_BYTES} bytes" in short
    assert cut("short") == "short"
