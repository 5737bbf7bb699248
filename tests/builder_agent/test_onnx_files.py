"""Which files a model consists of, without the onnx package; checked against that package."""

import contextlib
from pathlib import Path

import numpy as np
import onnx
import pytest
from hypothesis import given
from hypothesis import strategies as st
from onnx import TensorProto, helper, numpy_helper

from builder_agent.files.inputs import hash_inputs
from builder_agent.files.onnx_files import ModelFileError, external_files
from builder_agent.files.output_folder import sha256_of
from tests import models
from tests.builder_agent.builds import model_in_wheel


def external(name: str, location: str) -> TensorProto:
    """Return a tensor whose values lie in another file."""
    tensor = numpy_helper.from_array(np.arange(64, dtype=np.float32), name)
    onnx.external_data_helper.set_external_data(tensor, location)
    tensor.ClearField("raw_data")
    tensor.data_location = TensorProto.EXTERNAL
    return tensor


def graph(name: str, nodes: list[onnx.NodeProto], weights: list[TensorProto]) -> onnx.GraphProto:
    """Return a graph without inputs."""
    output = helper.make_tensor_value_info("y", TensorProto.FLOAT, [64])
    return helper.make_graph(nodes, name, [], [output], weights)


def test_weights_of_the_graph_of_nested_graphs_of_constants_and_of_sparse_tensors_are_found(tmp_path: Path) -> None:
    """Every place of the format where a tensor can stand."""
    inner = graph("inner", [helper.make_node("Identity", ["w"], ["y"])], [external("w", "inner.bin")])
    constant = helper.make_node("Constant", [], ["c"])
    constant.attribute.append(helper.make_attribute("value", external("value", "constant.bin")))
    branch = helper.make_node("If", ["c"], ["y"], then_branch=inner, else_branch=inner)
    outer = graph("outer", [constant, branch], [external("w", "outer.bin"), external("v", "folder/outer.bin")])
    sparse = onnx.SparseTensorProto(values=external("s", "sparse.bin"), indices=external("i", "sparse.bin"))
    outer.sparse_initializer.append(sparse)
    model = helper.make_model(outer)
    function = helper.make_function("custom", "F", [], ["y"], [constant], [helper.make_opsetid("", 17)])
    function.node[0].attribute[0].t.external_data[0].value = "function.bin"
    model.functions.append(function)
    path = tmp_path / "model.onnx"
    path.write_bytes(model.SerializeToString())
    names = ["inner.bin", "constant.bin", "outer.bin", "folder/outer.bin", "sparse.bin", "function.bin"]
    assert set(external_files(path)) == {tmp_path / name for name in names}


def test_what_onnx_itself_saves_beside_a_model_is_hashed_with_it(tmp_path: Path) -> None:
    """The digests of a model in two files name both."""
    path = tmp_path / "model.onnx"
    model = onnx.load_from_string(models.small_model())
    onnx.save(model, path, save_as_external_data=True, location="weights.bin", size_threshold=0)
    found, unread = hash_inputs([path])
    assert [(file.role, Path(file.path).name) for file in found] == [
        ("model", "model.onnx"),
        ("external_weights", "weights.bin"),
    ]
    assert [file.sha256 for file in found] == [sha256_of(path), sha256_of(tmp_path / "weights.bin")]
    assert not unread


@pytest.mark.parametrize(
    ("package", "path"),
    [
        ("rapidocr_onnxruntime", "models/ch_PP-OCRv4_det_infer.onnx"),
        ("magika", "models/standard_v3_3/model.onnx"),
        ("silero_vad", "data/silero_vad.onnx"),
    ],
)
def test_real_models_in_one_file_have_no_external_weights(tmp_path: Path, package: str, path: str) -> None:
    """The scan reads real exports, control flow included, to their end."""
    target = tmp_path / "model.onnx"
    target.write_bytes(model_in_wheel(package, path))
    assert external_files(target) == []


@pytest.mark.parametrize("location", ["../secret", "/etc/passwd"])
def test_a_location_outside_the_models_folder_is_refused(tmp_path: Path, location: str) -> None:
    """A model must not make a build read any file of the machine."""
    path = tmp_path / "model.onnx"
    path.write_bytes(helper.make_model(graph("g", [], [external("w", location)])).SerializeToString())
    with pytest.raises(ModelFileError, match="leads out"):
        external_files(path)


@given(content=st.binary(max_size=200))
def test_no_bytes_make_the_scan_fail_in_another_way(tmp_path_factory: pytest.TempPathFactory, content: bytes) -> None:
    """A file is scanned or refused; the scan ends either way."""
    path = tmp_path_factory.mktemp("scan") / "model.onnx"
    path.write_bytes(content)
    with contextlib.suppress(ModelFileError):
        external_files(path)


@given(cut=st.integers(1, 5000))
def test_a_model_that_is_cut_short_is_scanned_or_refused(tmp_path_factory: pytest.TempPathFactory, cut: int) -> None:
    """A torn download must not hang or crash the baseline."""
    path = tmp_path_factory.mktemp("scan") / "model.onnx"
    path.write_bytes(models.small_model()[:cut])
    found, unread = hash_inputs([path])
    assert len(found) == 1
    assert unread in ([], ["inputs.model.onnx"])


def test_inputs_that_cannot_be_read_are_named_and_do_not_fail(tmp_path: Path) -> None:
    """A baseline must not end a build."""
    assert hash_inputs([tmp_path / "nothing.onnx"]) == ([], ["inputs.nothing.onnx"])
    model = tmp_path / "model.onnx"
    model.write_bytes(helper.make_model(graph("g", [], [external("w", "gone.bin")])).SerializeToString())
    found, unread = hash_inputs([model])
    assert [Path(file.path).name for file in found] == ["model.onnx"]
    assert unread == ["inputs.gone.bin"]
