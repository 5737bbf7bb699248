"""The baseline: what a build ran with, so that a slow build can be told from a stuck one."""

import hashlib
import json
import platform
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import rfc8785
from pydantic import JsonValue

from build_events.events import BaselineRecorded, InputFile
from builder_agent.files.inputs import hash_inputs
from builder_agent.texts import MESSAGE_BYTES, cut
from builder_agent.trt import backends, builder_config
from builder_agent.trt.gpu import GpuFacts, gpu_facts
from builder_agent.trt.listing import fitted

_FROM_THE_CONFIG = ["targets", "network_kind", "network_flags", "builder_config"]
_FROM_THE_INPUTS = ["inputs", "build_config_hash"]
_RANDOMIZE = Path("/proc/sys/kernel/randomize_va_space")
_PERSONALITY = Path("/proc/self/personality")
_ADDR_NO_RANDOMIZE = 0x0040000  # linux/personality.h, what setarch -R sets


def partial_baseline(output: Path, trt: ModuleType | None) -> BaselineRecorded:
    """Return what can be seen without the builder's objects; the rest is named in ``unobserved``."""
    package = [] if trt is not None else ["tensorrt_package", "tensorrt_version"]
    return _baseline(output, trt, gpu_facts(), unobserved=[*package, *_FROM_THE_CONFIG, *_FROM_THE_INPUTS])


def full_baseline(
    output: Path, trt: ModuleType, network: Any, config: Any, *, inputs: Sequence[Path | str], profiles: Sequence[Any]
) -> BaselineRecorded:
    """Return everything: read back from the network and the config, with the digests of the inputs."""
    gpu = gpu_facts()
    package = backends.package_of(config)
    files, unobserved = hash_inputs(inputs)
    settings = builder_config.read_config(trt, package, config)
    if len(profiles) == settings["num_optimization_profiles"]:
        settings["optimization_profiles"] = builder_config.read_profiles(network, profiles)
    else:
        unobserved.append("builder_config.optimization_profiles")
    flags = builder_config.read_network_flags(trt, network)
    # The full package builds for the GPU of this machine and has no other target.
    targets = builder_config.targets(config) or ([] if package == "tensorrt_rtx" else list(gpu.targets))
    digest = None
    if files and not unobserved:
        version = f"{package} {backends.version_of(trt)}"
        digest = build_config_hash(files, flags, settings, targets=targets, version=version)
    else:
        unobserved += [name for name in _FROM_THE_INPUTS if name != "inputs" or not files]
    return _baseline(
        output,
        trt,
        gpu,
        unobserved=unobserved,
        targets=targets,
        network_kind="strongly_typed" if flags.get("STRONGLY_TYPED") else "weakly_typed",
        network_flags=flags,
        builder_config=_listed(settings),
        inputs=files,
        build_config_hash=digest,
    )


def build_config_hash(
    inputs: Sequence[InputFile],
    network_flags: dict[str, bool],
    settings: dict[str, Any],
    *,
    targets: Sequence[str],
    version: str,
) -> str:
    """Return the SHA-256 of the canonical JSON (RFC 8785) of what decides an engine, in hexadecimal digits.

    Input digests by role, network flags, builder config, targets and version; no paths, cache state,
    monitor or times (docs/contract.md section 2). Equal hashes mean equal orders, not equal engines: TensorRT's
    own output differs between builds of some networks.
    """
    document: Any = {
        "inputs": sorted([file.role, file.sha256] for file in inputs),
        "networkFlags": network_flags,
        "builderConfig": settings,
        "targets": list(targets),
        "tensorrtVersion": version,
    }
    return hashlib.sha256(rfc8785.dumps(document)).hexdigest()


def _listed(settings: dict[str, JsonValue]) -> dict[str, JsonValue]:
    """Return the settings as they fit into an event: very many profiles as text, cut. The hash is over all of them."""
    profiles = json.dumps(settings.get("optimization_profiles"))
    if len(profiles) <= MESSAGE_BYTES // 2:
        return settings
    return {**settings, "optimization_profiles": cut(profiles, MESSAGE_BYTES // 2)}


def address_randomized() -> bool | None:
    """Say whether this process's addresses are random (ASLR), ``None`` where the kernel does not tell."""
    try:
        enabled = _RANDOMIZE.read_text(encoding="ascii").strip() != "0"
        return enabled and not int(_PERSONALITY.read_text(encoding="ascii"), 16) & _ADDR_NO_RANDOMIZE
    except (OSError, ValueError):
        return None


def _baseline(
    output: Path, trt: ModuleType | None, gpu: GpuFacts, *, unobserved: list[str], **seen: Any
) -> BaselineRecorded:
    randomized = address_randomized()
    event = BaselineRecorded(
        tensorrt_package=None if trt is None else trt.__name__,
        tensorrt_version=None if trt is None else backends.version_of(trt),
        python_version=platform.python_version(),
        platform=platform.platform(),
        gpu_sku=gpu.sku,
        gpu_absence=gpu.absence,
        driver_version=gpu.driver_version,
        driver_absence=gpu.driver_absence,
        output_path=str(output),
        address_randomized=randomized,
        unobserved=[*unobserved, *([] if randomized is not None else ["address_randomized"])],
        **seen,
    )
    return fitted(event)
