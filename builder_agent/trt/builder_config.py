"""A builder config and a network's flags, read back by name from the objects themselves."""

import enum
from collections.abc import Iterable
from types import ModuleType
from typing import Any

from pydantic import JsonValue

from builder_agent.texts import NAME_BYTES, cut

# Not settings of the engine: callbacks, streams and what the library calls deprecated objects.
_NOT_SETTINGS = frozenset({"progress_monitor", "profile_stream", "int8_calibrator", "algorithm_selector"})
# Reading these is refused by the package with an error in the caller's log (measured on 1.7.1).
_UNSUPPORTED = {"tensorrt_rtx": frozenset({"hardware_compatibility_level"})}
_UNKNOWN = -1  # TensorRT's size of a dimension that only a profile bounds
_MAX_SAFE_INTEGER = 2**53 - 1  # RFC 8785 numbers are doubles


def read_config(trt: ModuleType, package: str, config: Any) -> dict[str, JsonValue]:
    """Return every property of a builder config by name, and what its getters tell.

    ``flags_set``, ``preview_features``, ``memory_pool_limits``, ``tactic_sources`` and
    ``compute_capabilities`` are read by the getters, member by member of the package's enumerations.
    """
    unsupported = _UNSUPPORTED.get(package, frozenset())
    values: dict[str, JsonValue] = {}
    for name in _property_names(config):
        if name in unsupported:
            values[name] = "unsupported"
        elif name not in _NOT_SETTINGS:
            values[name] = _json(getattr(config, name))
    values["flags_set"] = [name for name, flag in _members(trt, "BuilderFlag") if config.get_flag(flag)]
    values["preview_features"] = [
        name for name, feature in _members(trt, "PreviewFeature") if config.get_preview_feature(feature)
    ]
    values["memory_pool_limits"] = {
        name: _json(config.get_memory_pool_limit(pool)) for name, pool in _members(trt, "MemoryPoolType")
    }
    values["tactic_sources"] = _json(config.get_tactic_sources())
    values["compute_capabilities"] = list(targets(config))
    return values


def targets(config: Any) -> list[str]:
    """Return the compute capabilities that the engine is built for, e.g. ``sm89``; empty = the library's default."""
    count = getattr(config, "num_compute_capabilities", 0)  # TensorRT-RTX only
    return [config.get_compute_capability(index).name.lower() for index in range(count)]


def read_profiles(network: Any, profiles: Iterable[Any]) -> list[JsonValue]:
    """Return the optimization profiles' shapes (min, opt, max) by input name; a config does not give them out.

    Only inputs that a profile decides: to ask for another is an error in the caller's log.
    """
    inputs = [network.get_input(index) for index in range(network.num_inputs)]
    dynamic = [tensor for tensor in inputs if tensor.is_shape_tensor or _UNKNOWN in tuple(tensor.shape)]
    return [{tensor.name: _shapes(profile, tensor) for tensor in dynamic} for profile in profiles]


def read_network_flags(trt: ModuleType, network: Any) -> dict[str, bool]:
    """Return each creation flag of the network by name."""
    return {name: bool(network.get_flag(flag)) for name, flag in _members(trt, "NetworkDefinitionCreationFlag")}


def _property_names(config: Any) -> list[str]:
    # Of the class: asking the object would already read the property.
    cls = type(config)
    return [name for name in dir(cls) if not name.startswith("_") and isinstance(getattr(cls, name), property)]


def _members(trt: ModuleType, enumeration: str) -> list[tuple[str, Any]]:
    return list(getattr(trt, enumeration).__members__.items())


def _shapes(profile: Any, tensor: Any) -> JsonValue:
    read = profile.get_shape_input if tensor.is_shape_tensor else profile.get_shape
    return [[int(size) for size in shape] for shape in read(tensor.name)]


def _json(value: Any) -> JsonValue:
    if value is None or isinstance(value, (bool, float)):
        return value
    if isinstance(value, str):
        return cut(value, NAME_BYTES)
    if isinstance(value, enum.Enum) or hasattr(type(value), "__members__"):
        return str(value.name)
    if isinstance(value, int):
        return value if abs(value) <= _MAX_SAFE_INTEGER else str(value)
    if isinstance(value, (list, tuple)):
        return [_json(item) for item in value]
    return cut(str(value), NAME_BYTES)
