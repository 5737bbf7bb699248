"""Real ONNX models, as they ship inside wheels, through the whole agent."""

from pathlib import Path

import pytest

import builder_agent
from build_events.events import BaselineRecorded
from tests.builder_agent.builds import folded, model_in_wheel, objects, of_type, records_at


@pytest.mark.parametrize(
    ("package", "path"),
    [
        ("magika", "models/standard_v3_3/model.onnx"),
        ("silero_vad", "data/silero_vad_16k_sequence.onnx"),
        ("silero_vad", "data/silero_vad_openvino_16k.onnx"),
    ],
)
def test_a_real_model_is_built_or_refused_with_every_promise_kept(tmp_path: Path, package: str, path: str) -> None:
    """Dynamic models get no profile here, so the builder may refuse: then in its own words, never silently."""
    model = tmp_path / Path(path).name
    model.write_bytes(model_in_wheel(package, path))
    with builder_agent.observe(route="real", output=tmp_path / "out.engine", home=tmp_path / "home") as run:
        result = run.build(*objects(model.read_bytes()), inputs=[model])
    state = folded(tmp_path / "home", run.run_id)
    assert (state.run.complete, state.anomalies) == (True, ())
    assert state.run.outcome == result.outcome
    assert of_type(records_at(tmp_path / "home", run.run_id), BaselineRecorded)[0].build_config_hash is not None
    if result.outcome == "failed":
        assert "Error Code" in (result.error_message or "")
        assert not (tmp_path / "out.engine").exists()
    else:
        assert result.outcome == "completed"
        assert {phase.status for phase in state.phases} == {"finished"}
