"""ONNX models that the project makes itself: deterministic bytes, weights from a fixed seed."""

from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

CHANNELS, SIDE = 8, 16  # of every feature map
OPSET, IR_VERSION = 17, 9  # old enough for every TensorRT that has a progress monitor


def chain_model(layers: int) -> bytes:
    """Return an ONNX model of ``layers`` 3x3 convolutions, each with a ReLU.

    Its build time grows faster than its size, nearly all of it in one silent compile window: on two
    cores 100 layers took 0.2 s, 500 took 1.2 s and 1000 took 2.8 s (tensorrt-rtx 1.7.1, CPU only).
    """
    rng = np.random.default_rng(20261130)
    nodes, weights = [], []
    tensor = "input"
    for index in range(layers):
        kernel = (rng.standard_normal((CHANNELS, CHANNELS, 3, 3)) * 0.1).astype(np.float32)
        weights.append(numpy_helper.from_array(kernel, f"weight_{index}"))
        nodes.append(
            helper.make_node(
                "Conv", [tensor, f"weight_{index}"], [f"conv_{index}"], name=f"conv_{index}", pads=[1, 1, 1, 1]
            )
        )
        tensor = "output" if index == layers - 1 else f"relu_{index}"
        nodes.append(helper.make_node("Relu", [f"conv_{index}"], [tensor], name=f"relu_{index}"))
    shape = [1, CHANNELS, SIDE, SIDE]
    graph = helper.make_graph(
        nodes,
        f"chain_{layers}",
        [helper.make_tensor_value_info("input", TensorProto.FLOAT, shape)],
        [helper.make_tensor_value_info("output", TensorProto.FLOAT, shape)],
        weights,
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], producer_name="enginetrail")
    model.ir_version = IR_VERSION
    onnx.checker.check_model(model)
    return bytes(model.SerializeToString(deterministic=True))


def write_chain(path: Path, layers: int) -> Path:
    """Write the model and return its path."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(chain_model(layers))
    return path
