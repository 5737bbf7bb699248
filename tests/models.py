"""ONNX models that the tests build: the same bytes every time."""

import functools
from collections.abc import Sequence

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

_IR_VERSION = 9  # fixed, so that a newer onnx package writes the same bytes
_OPSET = 17


@functools.cache
def small_model() -> bytes:
    """Return a model that builds in a few hundredths of a second."""
    return chain_model(3)


@functools.cache
def chain_model(layers: int, *, channels: int = 8, size: int = 16) -> bytes:
    """Return a chain of convolution and ReLU pairs.

    The builder is silent for most of its build: about 2.8 s at 1,000 layers on two cores, of which
    over 90 % lie between two callbacks.
    """
    random = np.random.default_rng(0)
    nodes, weights, tensor = [], [], "x"
    for layer in range(layers):
        values = (random.standard_normal((channels, channels, 3, 3)) * 0.1).astype(np.float32)
        weights.append(numpy_helper.from_array(values, f"w{layer}"))
        nodes.append(
            helper.make_node("Conv", [tensor, f"w{layer}"], [f"c{layer}"], name=f"conv{layer}", pads=[1, 1, 1, 1])
        )
        nodes.append(helper.make_node("Relu", [f"c{layer}"], [f"r{layer}"], name=f"relu{layer}"))
        tensor = f"r{layer}"
    nodes.append(helper.make_node("Identity", [tensor], ["y"], name="out"))
    return _model(nodes, [1, channels, size, size], weights)


@functools.cache
def unsupported_model() -> bytes:
    """Return a valid model with an operator that no builder knows."""
    return _model([helper.make_node("NoSuchOperator", ["x"], ["y"], name="unknown")], [1, 8])


@functools.cache
def dynamic_model() -> bytes:
    """Return a model with an input of unknown size: without a profile the builder refuses it, with no callback."""
    return _model([helper.make_node("Relu", ["x"], ["y"], name="relu")], ["batch", 8])


@functools.cache
def external_model(location: str = "weights.bin") -> tuple[bytes, bytes]:
    """Return a model whose one weight lies in a file beside it, and that file's content."""
    weight = np.ones((8, 8), dtype=np.float32)
    tensor = TensorProto(name="w", data_type=TensorProto.FLOAT, dims=weight.shape, data_location=TensorProto.EXTERNAL)
    tensor.external_data.add(key="location", value=location)
    node = helper.make_node("MatMul", ["x", "w"], ["y"], name="matmul")
    return _model([node], [1, 8], [tensor]), weight.tobytes()


def _model(
    nodes: list[onnx.NodeProto], shape: Sequence[int | str], weights: list[onnx.TensorProto] | None = None
) -> bytes:
    graph = helper.make_graph(
        nodes,
        "graph",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, shape)],
        weights or [],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", _OPSET)], producer_name="enginetrail")
    model.ir_version = _IR_VERSION
    return bytes(model.SerializeToString(deterministic=True))
