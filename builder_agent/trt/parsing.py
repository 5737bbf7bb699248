"""An ONNX file to what the builder takes: network and configuration, or the parser's own words."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from builder_agent.errors import AgentError
from builder_agent.files.onnx_files import ModelFileError, external_files


class ModelUnreadableError(AgentError):
    """The model file cannot be read, or holds no ONNX model; refused before the run begins."""

    def __init__(self, model: Path, why: str) -> None:
        self.model = model
        super().__init__(f"model {model}: {why}. Give the path of an ONNX model file.")


class UnknownTargetError(AgentError):
    """The installed library builds for no such compute capability; refused before the run begins."""

    def __init__(self, target: str, package: str, known: list[str]) -> None:
        self.target, self.known = target, known
        names = ", ".join(known) or "none: it builds for this machine's GPU only"
        super().__init__(f"target {target!r}: {package} does not know it. Give one of these: {names}.")


@dataclass(frozen=True, slots=True, kw_only=True)
class Parsed:
    """One model in the library's hands. ``parser`` owns weights that the network points to."""

    builder: Any
    network: Any
    config: Any
    parser: Any
    errors: tuple[tuple[str, str], ...]  # (code, text) of the parser; empty if it took the model


def read_model(model: Path) -> bytes:
    """Return the file's bytes.

    Raises:
        ModelUnreadableError: it cannot be read.
    """
    try:
        return model.read_bytes()
    except OSError as error:
        raise ModelUnreadableError(model, error.strerror or str(error)) from None


def check_weights(model: Path) -> None:
    """Refuse a model whose external weight files are not all there.

    Raises:
        ModelUnreadableError: a file is missing, or lies where a model may not reach.
    """
    try:
        missing = [path for path in external_files(model) if not path.is_file()]
    except OSError as error:
        raise ModelUnreadableError(model, error.strerror or str(error)) from None
    except ModelFileError:
        return  # the parser says in its own words what it makes of such bytes
    if missing:
        raise ModelUnreadableError(model, f"its external weights are missing: {', '.join(map(str, missing))}")


def parse(trt: Any, content: bytes, model: Path, *, target: str | None, logger: Any) -> Parsed:
    """Parse a model with either package's module.

    ``target`` is a compute capability such as ``sm89``; ``None`` leaves the library's default. Inputs
    of unknown size get no profile: what the builder says to that is the evidence.

    Raises:
        UnknownTargetError: the library has no such target.
        ModelUnreadableError: the bytes are no ONNX model at all.
    """
    builder = trt.Builder(logger)
    config = builder.create_builder_config()
    if target is not None:
        _set_target(trt, config, target)
    network = builder.create_network(0)
    parser = trt.OnnxParser(network, logger)
    taken = parser.parse(content, str(model))  # the path is where external weights are looked for
    errors = [parser.get_error(index) for index in range(parser.num_errors)]
    if any(error.code() == trt.ErrorCode.MODEL_DESERIALIZE_FAILED for error in errors):
        raise ModelUnreadableError(model, "it holds no ONNX model")
    # Protocol Buffers read much of what is no model as one with unknown fields only, without an error.
    if taken and not (network.num_layers or network.num_inputs or network.num_outputs):
        raise ModelUnreadableError(model, "it holds no ONNX model")
    texts = tuple((error.code().name, str(error)) for error in errors)
    if not taken and not texts:
        texts = (("UNKNOWN", "the parser refused the model without an error text"),)
    return Parsed(builder=builder, network=network, config=config, parser=parser, errors=() if taken else texts)


def _set_target(trt: Any, config: Any, target: str) -> None:
    capabilities = getattr(trt, "ComputeCapability", None)  # only TensorRT-RTX has it
    known = {name.lower(): value for name, value in capabilities.__members__.items()} if capabilities else {}
    selectable = sorted((name for name in known if name.startswith("sm")), key=lambda name: int(name[2:]))
    if target.lower() not in selectable:
        raise UnknownTargetError(target, trt.__name__, selectable)
    config.num_compute_capabilities = 1
    config.set_compute_capability(known[target.lower()], 0)
