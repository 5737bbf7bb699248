import json
import re
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import get_type_hints

import pytest
from hypothesis import given

from build_events import codec, schemas
from build_events.envelope import Recorded
from build_events.events import EVENT_TYPES
from tests.build_events.json_schema import violations
from tests.build_events.strategies import events, records

COMMITTED = {path.stem: json.loads(path.read_bytes()) for path in schemas.FOLDER.glob("*.json")}


def test_the_committed_schemas_are_those_of_this_release() -> None:
    """A changed event cannot pass unseen: its schema file must change in the same commit."""
    assert schemas.differences(schemas.FOLDER) == []
    assert set(COMMITTED) == {*EVENT_TYPES, schemas.ENVELOPE}


@given(record=records(events()))
def test_every_event_on_the_wire_fits_its_schema(record: Recorded) -> None:
    """The schemas describe the bytes, e.g. nanoseconds as decimal strings, and not the Python types."""
    wire = json.loads(codec.encode(record))
    assert violations(COMMITTED[schemas.ENVELOPE], wire) == []
    assert violations(COMMITTED[wire["type"]], wire["data"]) == []


@given(record=records())
def test_attribute_names_are_lower_case_letters_and_digits(record: Recorded) -> None:
    """CloudEvents allows no other characters, and the envelope's schema names every attribute."""
    names = set(json.loads(codec.encode(record)))
    assert all(re.fullmatch("[a-z0-9]{1,20}", name) for name in names)
    assert names <= set(get_type_hints(schemas.CloudEvent))


def test_the_check_names_each_file_and_the_command_to_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Missing, changed and left-over files fail the check by name; writing heals all three."""
    assert schemas.main([], tmp_path) == 0
    assert schemas.main(["--check"], tmp_path) == 0
    (tmp_path / "trt.build.run.started.v1.json").unlink()
    (tmp_path / "trt.stream.closed.v1.json").write_text("{}\n", encoding="utf-8")
    (tmp_path / "trt.build.gone.v1.json").write_text("{}\n", encoding="utf-8")
    assert schemas.main(["--check"], tmp_path) == 1
    said = capsys.readouterr().err
    for line in (
        "run.started.v1.json: missing",
        "closed.v1.json: differs",
        "gone.v1.json: no event type",
        "Run `python",
    ):
        assert line in said
    assert schemas.main([], tmp_path) == 0
    assert schemas.main(["--check"], tmp_path) == 0


def test_an_unknown_argument_is_wrong_usage(tmp_path: Path) -> None:
    """The command refuses what it does not know, and writes nothing."""
    assert schemas.main(["--chek"], tmp_path) == 2
    assert list(tmp_path.iterdir()) == []


def test_the_wheel_carries_the_schemas(tmp_path: Path) -> None:
    """Consumers in other languages take them from the package."""
    root = schemas.FOLDER.parents[1]
    line = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path)]
    subprocess.run(line, cwd=root, check=True, capture_output=True)
    [wheel] = tmp_path.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        assert {f"build_events/schema/{name}" for name in schemas.files()} <= set(archive.namelist())
