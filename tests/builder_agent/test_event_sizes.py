"""One event fits into one record of every log, whatever texts others put into it."""

import hashlib
from pathlib import Path

import pytest

from build_events import codec, ids
from build_events.clock import Instant, system_clock
from build_events.envelope import Recorded, StreamHeader
from build_events.errors import EventTooLargeError
from build_events.events import (
    BaselineRecorded,
    CancelRequested,
    ErrorRecorded,
    Event,
    InputFile,
    PhaseStarted,
    StreamClosed,
)
from build_events.local_log import LocalLog
from build_events.log import InMemoryEventLog
from build_events.stream import EventStream
from builder_agent.cancellation import CancelState
from builder_agent.recording.outlet import Outlet
from builder_agent.recording.phases import FINISH, START, PhaseTracker
from builder_agent.settings import DeliverySettings
from builder_agent.texts import MESSAGE_BYTES, cut
from builder_agent.trt import builder_config
from builder_agent.trt.baseline import build_config_hash
from builder_agent.trt.listing import fitted
from tests import models
from tests.builder_agent.builds import objects
from tests.builder_agent.test_baseline import baseline

EVENT_BYTES = 128 << 10
LONG = 1 << 20
# Text of every kind: plain, of several bytes, of one byte that JSON writes as six, and no Unicode at all.
TEXTS = {"plain": "x" * LONG, "wide": "ä€" * LONG, "escaped": '\x01"\\\n' * LONG, "broken": "\udcff" * LONG}


def size_of(event: Event) -> int:
    """Return the bytes of an event as the log gets it, in an envelope of the largest kind."""
    header = StreamHeader(
        stream_id=ids.random_id(), role="main", run_id=ids.random_id(), trace_id=ids.trace_id(), source="x" * 100,
        boot_id=ids.random_id(),
    )  # fmt: skip
    span_id = ids.span_id("run", 1)
    record = Recorded(
        stream=header, sequence=2**31 - 1, wall_ns=1, monotonic_ns=2**63 - 1, span_id=span_id, event=event
    )
    return len(codec.encode(record))


@pytest.fixture(params=TEXTS)
def text(request: pytest.FixtureRequest) -> str:
    """Return a text that is far too long."""
    return TEXTS[request.param]


def test_a_message_fits(text: str) -> None:
    """Escapes count: a text of control characters is six times as long in JSON."""
    short = cut(text)
    assert (
        size_of(ErrorRecorded(component="builder", code="x" * 100, message=short)) < MESSAGE_BYTES + 2000 < EVENT_BYTES
    )
    assert "[cut: " in short


def test_phase_events_fit_and_phases_stay_apart(text: str) -> None:
    """Two long names that begin alike are two phases, each finished by its own name."""
    tracker = PhaseTracker("run", 1)
    names = [text, text + "2"]
    facts = [*tracker.feed((START, 1, 1, False, False, names[0], 1, None))]
    facts += tracker.feed((START, 2, 1, False, False, names[1], 1, names[0]))
    facts += tracker.feed((FINISH, 3, 1, False, False, names[1], 0, None))
    facts += tracker.feed((FINISH, 4, 1, False, False, names[0], 0, None))
    facts += tracker.feed((FINISH, 5, 1, False, False, "unknown" + text, 0, None))
    assert [fact.ordinal for fact in facts] == [1, 2, 2, 1, 0]
    assert max(size_of(fact.event) for fact in facts) < EVENT_BYTES // 8
    started = [fact.event for fact in facts if isinstance(fact.event, PhaseStarted)]
    assert started[0].name != started[1].name


def test_the_reason_of_a_request_fits(text: str) -> None:
    """Whoever asks may say why at any length."""
    heard: list[Event] = []
    CancelState(clock=lambda: Instant(1, 1), post=lambda event, _at: heard.append(event)).request("api", reason=text)
    assert isinstance(heard[0], CancelRequested)
    assert size_of(heard[0]) < EVENT_BYTES // 8


def test_a_baseline_of_long_settings_fits(text: str) -> None:
    """Sixty properties, each a text without end."""
    settings = {f"property_{number}": builder_config._json(text) for number in range(60)}
    event = BaselineRecorded(python_version="3", platform="p", output_path="/" + "x" * 4000, builder_config=settings)
    assert size_of(event) < EVENT_BYTES


def test_a_baseline_of_very_many_profiles_fits_and_its_hash_knows_them_all(tmp_path: Path) -> None:
    """The profiles are shown as text with a digest, and one more makes another hash."""
    built = objects(models.dynamic_model())
    profile = built.builder.create_optimization_profile()
    profile.set_shape("x", (1, 8), (4, 8), (16, 8))
    found = []
    for count in (3000, 3001):
        while built.config.num_optimization_profiles < count:
            built.config.add_optimization_profile(profile)
        found.append(baseline(tmp_path, built, profiles=(profile,) * count))
    assert max(size_of(event) for event in found) < EVENT_BYTES
    assert "[cut: " in str(found[0].builder_config["optimization_profiles"])
    assert found[0].build_config_hash != found[1].build_config_hash
    assert found[0].build_config_hash is not None


@pytest.mark.parametrize("count", [3, 3000])
def test_a_baseline_of_very_many_weight_files_fits_and_its_hash_knows_them_all(tmp_path: Path, count: int) -> None:
    """What is not listed is counted and has a digest; the model itself is always listed."""
    files = [InputFile(path="/m/model.onnx", role="model", size_bytes=1, sha256="0" * 64)]
    files += [
        InputFile(path=f"/m/{'w' * 100}.{number}", role="external_weights", size_bytes=7, sha256=f"{number:064x}")
        for number in range(count)
    ]
    plain = baseline(tmp_path, objects(models.small_model()))
    event = fitted(plain.model_copy(update={"inputs": files, "builder_config": {"long": "x" * (60 << 10)}}))
    assert size_of(event) < EVENT_BYTES
    assert event.inputs[0] == files[0]
    assert sum(file.size_bytes for file in event.inputs) == sum(file.size_bytes for file in files)
    assert (event.inputs == files) is (count == 3)
    assert event.unobserved == []
    assert build_config_hash(files, {}, {}, targets=[], version="") != build_config_hash(
        files[:-1], {}, {}, targets=[], version=""
    )
    if count > 3:
        listed = event.inputs[:-1]
        digests = "".join(f"{file.sha256}\n" for file in files[len(listed) :])
        assert event.inputs[-1].sha256 == hashlib.sha256(digests.encode()).hexdigest()
        assert event.inputs[-1].path == f"[cut: {len(files) - len(listed)} files, sha256 of their digests]"


def test_a_baseline_that_cannot_list_its_models_is_not_whole(tmp_path: Path) -> None:
    """A gate looks for the source of each model: those that it cannot see must hold it."""
    files = [
        InputFile(path=f"/{number}", role="model", size_bytes=1, sha256=f"{number:064x}") for number in range(3000)
    ]
    plain = baseline(tmp_path, objects(models.small_model()))
    unread = [f"inputs.{'x' * 200}{number}" for number in range(3000)]
    event = fitted(plain.model_copy(update={"inputs": files, "unobserved": unread}))
    assert size_of(event) < EVENT_BYTES
    assert event.unobserved[-1] == "inputs"
    assert event.unobserved[-2].endswith(" more")


def test_no_log_takes_an_event_that_is_too_long(tmp_path: Path) -> None:
    """The error says which and how long; nothing of it is stored, and the log goes on."""
    header = StreamHeader(stream_id="s", role="main", run_id="r", source="x", boot_id="b")
    long, short = (ErrorRecorded(component="builder", code="x", message="x" * size) for size in (EVENT_BYTES, 1))
    for log in (InMemoryEventLog(), LocalLog.create(tmp_path)):
        stream = EventStream(header, log, clock=system_clock)
        with pytest.raises(EventTooLargeError, match=r"trt\.build\.error\.recorded\.v1 of r: 131\d+ bytes"):
            stream.append(long)
        EventStream(header, log, clock=system_clock).close(short)
        assert sum(len(chunk.payloads) for chunk in log.read({}, max_bytes=1 << 20)) == 2


def test_the_agent_drops_an_event_that_is_too_long_and_declares_it() -> None:
    """The run is not complete, and says so; what comes behind the event is stored."""
    header = StreamHeader(stream_id="s", role="main", run_id="r", source="x", boot_id="b")
    log = InMemoryEventLog()
    outlet = Outlet(EventStream(header, log, clock=system_clock), log, DeliverySettings())
    for size in (EVENT_BYTES, 1):
        outlet.add(ErrorRecorded(component="builder", code="x", message="x" * size), system_clock(), None)
    assert outlet.close(system_clock(), None, lost_callbacks=0)
    (chunk,) = log.read({}, max_bytes=1 << 20)
    *_, closed = [codec.decode(payload).event for payload in chunk.payloads]
    assert closed == StreamClosed(events=2, dropped=1)
