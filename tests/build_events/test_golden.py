"""Old histories are read for ever: ``tests/golden`` is never edited, and this release still reads all of it."""

import hashlib
from pathlib import Path

import pytest

from build_events import codec
from build_events.envelope import Recorded
from build_events.events import EVENT_TYPES
from build_events.fold import fold
from build_events.local_log import LocalLog
from build_events.local_log.lines import frame
from tests.build_events.log_files import content

GOLDEN = Path(__file__).parents[1] / "golden"
V1 = GOLDEN / "v1"
RUN = "3f0c1f5e-6d1b-4a55-9b7c-0a4f1f6f2c0"
# Another digest means an edited history: add a new one beside it instead.
SHA256 = {
    "v1": "a1409da865a1befd93df2f025bf595d66a39baf6078a24dbc2f37f3c8e468377",
    "v1_callback_cost": "52a98e7389ec0e8adc7e7855e08e3a36909282692ddc2a1aca416368a541b88a",
    "v1_fenced": "c82e507a88479f1a2488c2d9bfc850edfe735d47949b3a6fa10f87586a5a3cf2",
    "v1_telemetry": "91ca9df9fd70b21e180b5431007701ee5e273ae2f67e21cf741cc0e7986b598b",
}

lines = [line for path in sorted(GOLDEN.rglob("*.jsonl")) for line in path.read_bytes().splitlines(keepends=True)]


@pytest.fixture(scope="module")
def records() -> list[Recorded]:
    """Every record of the history."""
    got = content(LocalLog(V1))
    assert got.rejects == []
    return got.records


def test_the_histories_are_what_was_committed() -> None:
    """Nobody edits a golden history, not even to make a test pass."""
    digests = {}
    for folder in GOLDEN.iterdir():
        digest = hashlib.sha256()
        for path in sorted(path for path in folder.rglob("*") if path.is_file()):
            digest.update(path.relative_to(folder).as_posix().encode() + b"\n" + path.read_bytes())
        digests[folder.name] = digest.hexdigest()
    assert digests == SHA256


def test_every_event_type_occurs_in_a_history() -> None:
    """A type that no history holds could change unseen."""
    histories = [content(LocalLog(folder)).records for folder in GOLDEN.iterdir()]
    assert {record.event.type for records in histories for record in records} == set(EVENT_TYPES)


@pytest.mark.parametrize("line", lines, ids=range(len(lines)))
def test_a_line_is_written_again_as_it_was(line: bytes) -> None:
    """Decoding a line and encoding it gives the same bytes, checksum included."""
    payload = line[: line.rindex(b',"crc":')] + b"}"
    assert frame(codec.encode(codec.decode(payload))) == line


def test_the_runs_of_the_history_still_mean_what_they_meant(records: list[Recorded]) -> None:
    """A cancelled run, its completed retry, one killed at its deadline and one that was lost."""
    runs = {run_id: state.run for run_id, state in fold(records).items()}
    assert [(runs[f"{RUN}{number}"].outcome, runs[f"{RUN}{number}"].complete) for number in (1, 2, 3, 4)] == [
        ("cancelled", True),
        ("completed", True),
        ("killed", True),
        ("lost", False),
    ]
    assert runs[f"{RUN}2"].retry_of == f"{RUN}1"
    assert not any(state.anomalies for state in fold(records).values())


def test_a_fenced_run_still_means_what_it_meant() -> None:
    """Its own word came after the fence: it is lost, has no artifact, and says what came late."""
    (state,) = fold(content(LocalLog(GOLDEN / "v1_fenced")).records).values()
    assert (state.run.outcome, state.run.late_outcome, state.run.complete) == ("lost", "completed", False)
    assert (state.run.artifact_sha256, state.run.finished_at_ns, state.run.duration_ns) == (None, None, None)
    assert state.anomalies == ()
