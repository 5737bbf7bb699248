"""Real networks with profiles where they need them, built by a host of the agent: ``python -m`` with its home."""

import sys
from pathlib import Path

import builder_agent
from tests.builder_agent.builds import model_in_wheel, objects
from tests.builder_agent.test_real_models import profiles

_ZOO = "backend/test/data/light/light_{}.onnx"  # real topologies; their weights are constants
MODELS = [
    *(("onnx", _ZOO.format(name)) for name in ("bvlc_alexnet", "inception_v1", "squeezenet", "vgg19", "zfnet512")),
    ("magika", "models/standard_v3_3/model.onnx"),
    ("rapidocr_onnxruntime", "models/ch_PP-OCRv4_det_infer.onnx"),
    ("rapidocr_onnxruntime", "models/ch_ppocr_mobile_v2.0_cls_infer.onnx"),
    ("silero_vad", "data/silero_vad_16k_sequence.onnx"),
    ("silero_vad", "data/silero_vad_openvino_16k.onnx"),
]


def main(folder: Path) -> None:
    """Build them all one after the other; print each run's id."""
    for package, path in MODELS:
        built = objects(model_in_wheel(package, path))
        with builder_agent.observe(
            route=Path(path).stem, output=folder / f"{Path(path).stem}.engine", home=folder / "home"
        ) as run:
            run.build(*built, profiles=profiles(built))
        print(run.run_id)  # noqa: T201 # the test reads it


if __name__ == "__main__":
    main(Path(sys.argv[1]))
