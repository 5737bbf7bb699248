"""Real ONNX models, as they ship inside wheels, through the whole agent."""

from pathlib import Path
from typing import Any

import pytest
import tensorrt_rtx as trt

import builder_agent
from build_events.events import BaselineRecorded
from tests.builder_agent.builds import Objects, folded, model_in_wheel, objects, of_type, records_at

BUILT = [
    ("rapidocr_onnxruntime", "models/ch_PP-OCRv4_det_infer.onnx"),
    ("magika", "models/standard_v3_3/model.onnx"),
    ("silero_vad", "data/silero_vad_16k_sequence.onnx"),
    ("silero_vad", "data/silero_vad_openvino_16k.onnx"),
]


def profiles(built: Objects) -> list[Any]:
    """Return, and add to the config, one profile where the model has inputs of unknown size."""
    inputs = [built.network.get_input(index) for index in range(built.network.num_inputs)]
    dynamic = [tensor for tensor in inputs if -1 in tuple(tensor.shape)]
    if not dynamic:
        return []
    profile = built.builder.create_optimization_profile()
    for tensor in dynamic:
        shape = [(64 if axis else 1) if size == -1 else size for axis, size in enumerate(tuple(tensor.shape))]
        profile.set_shape(tensor.name, shape, shape, shape)
    built.config.add_optimization_profile(profile)
    return [profile]


@pytest.mark.parametrize(("package", "path"), BUILT)
def test_a_real_model_is_built_with_every_promise_kept(
    tmp_path: Path, package: str, path: str, capfd: pytest.CaptureFixture[str]
) -> None:
    """All phases finish, the configuration is known whole, and the caller's log holds no error of ours."""
    model = tmp_path / Path(path).name
    model.write_bytes(model_in_wheel(package, path))
    built = objects(model.read_bytes())
    with builder_agent.observe(route="real", output=tmp_path / "out.engine", home=tmp_path / "home") as run:
        result = run.build(*built, inputs=[model], profiles=profiles(built))
    assert (result.outcome, result.error_message) == ("completed", None)
    state = folded(tmp_path / "home", run.run_id)
    assert (state.run.outcome, state.run.complete, state.anomalies) == ("completed", True, ())
    assert {phase.status for phase in state.phases} == {"finished"}
    assert of_type(records_at(tmp_path / "home", run.run_id), BaselineRecorded)[0].unobserved == []
    assert "[TRT] [E]" not in "".join(capfd.readouterr())


def test_a_real_model_that_the_builder_refuses_fails_in_its_words(tmp_path: Path) -> None:
    """Control flow that TensorRT-RTX cannot type: no engine, and its own text."""
    built = objects(model_in_wheel("silero_vad", "data/silero_vad.onnx"))
    with builder_agent.observe(route="real", output=tmp_path / "out.engine", home=tmp_path / "home") as run:
        result = run.build(*built, profiles=profiles(built))
    assert (result.outcome, result.error_type) == ("failed", "builder_error")
    assert "Error Code 2: Internal Error" in (result.error_message or "")
    assert folded(tmp_path / "home", run.run_id).run.complete
    assert trt.__version__ in {
        baseline.tensorrt_version for baseline in of_type(records_at(tmp_path / "home", run.run_id), BaselineRecorded)
    }
