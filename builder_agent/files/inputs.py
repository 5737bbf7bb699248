"""The files that a build reads, with their digests."""

from collections.abc import Iterable
from pathlib import Path

from build_events.events import InputFile
from builder_agent.errors import OutputIsInputError
from builder_agent.files.onnx_files import ModelFileError, external_files
from builder_agent.files.output_folder import sha256_of


def hash_inputs(paths: Iterable[Path | str]) -> tuple[list[InputFile], list[str]]:
    """Return every input file with its digest, and ``inputs.NAME`` for each that could not be read.

    An ``.onnx`` file brings its external weight files with it. Never raises: what the parser made of
    the files is for the caller, and a baseline must not end a build.
    """
    found: list[InputFile] = []
    unread: list[str] = []
    for given in paths:
        path = Path(given).absolute()
        is_model = path.suffix == ".onnx"
        try:
            found.append(_file(path, "model" if is_model else "other"))
            weights = external_files(path) if is_model else []
        except (OSError, ModelFileError):
            unread.append(f"inputs.{path.name}")
            continue
        for weight in weights:
            try:
                found.append(_file(weight, "external_weights"))
            except OSError:
                unread.append(f"inputs.{weight.name}")
    return found, unread


def refuse_input_as_output(target: Path, paths: Iterable[Path | str]) -> None:
    """Refuse a target that is one of the files that the build reads, external weights included.

    Raises:
        OutputIsInputError: publishing would replace that file.
    """
    for given in paths:
        path = Path(given)
        try:
            sources = [path, *(external_files(path) if path.suffix == ".onnx" else [])]
        except (OSError, ModelFileError):
            sources = [path]  # the build itself will say what is wrong with it
        for source in sources:
            if source.exists() and target.exists() and source.samefile(target):
                raise OutputIsInputError(target, source)


def _file(path: Path, role: str) -> InputFile:
    return InputFile.model_validate(
        {"path": str(path), "role": role, "size_bytes": path.stat().st_size, "sha256": sha256_of(path)}
    )
