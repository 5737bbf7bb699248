"""Policy files: TOML read into a policy, with errors that name file, key and what is allowed."""

import tomllib
from importlib import resources
from pathlib import Path
from types import UnionType
from typing import Any, get_args

import pydantic
from pydantic import BaseModel

from analytics.errors import PolicyError
from analytics.policy import Policy

DEFAULT = "default.toml"


def load_policy(path: Path | None) -> Policy:
    """Return the policy in a file, or the packaged default without one.

    Raises:
        PolicyError: the file cannot be read, is no TOML, or holds an unknown key or a wrong value.
    """
    if path is None:
        text = resources.files("analytics.policies").joinpath(DEFAULT).read_text(encoding="utf-8")
        return parse_policy(text, f"packaged policy {DEFAULT}")
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise PolicyError(f"{path}: cannot read the policy: {error.strerror}; give the path of a TOML file") from None
    except UnicodeDecodeError as error:
        raise PolicyError(f"{path}: not UTF-8 at byte {error.start}; a policy is a TOML file in UTF-8") from None
    return parse_policy(text, str(path))


def parse_policy(text: str, origin: str) -> Policy:
    """Return the policy in a TOML text; ``origin`` names it in errors.

    Raises:
        PolicyError: as ``load_policy``.
    """
    try:
        return Policy.model_validate(tomllib.loads(text))
    except tomllib.TOMLDecodeError as error:
        raise PolicyError(f"{origin}: no TOML: {error}") from None
    except pydantic.ValidationError as error:
        raise PolicyError(f"{origin}: {'; '.join(_problem(item) for item in error.errors())}") from None


def _problem(error: Any) -> str:
    path = [str(part) for part in error["loc"]]
    key = ".".join(path)
    section = _section(path[:-1])
    allowed = ", ".join(section.model_fields)
    where = f"[{'.'.join(path[:-1])}]" if path[:-1] else "the top level"
    match error["type"]:
        case "extra_forbidden":
            return f"unknown key {key}; allowed in {where}: {allowed}"
        case "missing":
            return f"missing key {key}; {where} takes: {allowed}"
        case _:
            return f"key {key}: {error['msg']} (found {error['input']!r})"


def _section(path: list[str]) -> type[BaseModel]:
    """Return the model that holds the last key of a path; list indexes stay in the section they stand in."""
    model: type[BaseModel] = Policy
    for name in path:
        field = model.model_fields.get(name)
        inner = _model_of(field.annotation) if field else None
        if inner is None:
            break
        model = inner
    return model


def _model_of(annotation: Any) -> type[BaseModel] | None:
    options = get_args(annotation) if isinstance(annotation, UnionType) else (annotation,)
    return next((item for item in options if isinstance(item, type) and issubclass(item, BaseModel)), None)
