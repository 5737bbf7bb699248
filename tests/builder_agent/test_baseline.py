"""The baseline: everything that decides an engine, read back, and a hash of it."""

from pathlib import Path
from typing import Any

import pytest
import tensorrt_rtx as trt

from build_events.events import BaselineRecorded
from builder_agent.errors import BackendError
from builder_agent.trt import backends, timing_cache
from builder_agent.trt.baseline import address_randomized, full_baseline, partial_baseline
from tests import models
from tests.builder_agent.builds import Objects, objects


def baseline(folder: Path, built: Objects, *, profiles: tuple[Any, ...] = ()) -> BaselineRecorded:
    """Return the full baseline of a build of the small model."""
    path = folder / "model.onnx"
    path.write_bytes(models.small_model())
    return full_baseline(folder / "out.engine", trt, built.network, built.config, inputs=[path], profiles=profiles)


def test_every_property_of_the_config_is_read_back_by_name(tmp_path: Path) -> None:
    """None of the object's own settings is missing, and callbacks are none."""
    built = objects(models.small_model())
    built.config.builder_optimization_level = 1
    found = baseline(tmp_path, built)
    settings = {name for name in dir(type(built.config)) if isinstance(getattr(type(built.config), name), property)} - {
        "progress_monitor",
        "profile_stream",
    }
    assert settings <= set(found.builder_config)
    assert found.builder_config["builder_optimization_level"] == 1
    assert found.builder_config["flags_set"] == ["TF32"]
    assert found.builder_config["compute_capabilities"] == found.targets == ["sm89"]
    assert found.network_kind == "strongly_typed"
    assert (found.tensorrt_package, found.tensorrt_version) == ("tensorrt_rtx", trt.__version__)
    assert not found.unobserved


def test_a_machine_without_a_gpu_says_so_and_why(tmp_path: Path) -> None:
    """No GPU is a fact with a reason, not a gap."""
    found = partial_baseline(tmp_path / "out.engine", trt)
    assert found.gpu_sku is not None
    assert (found.gpu_absence is not None) == (found.gpu_sku == "none")


def test_what_three_lines_cannot_see_is_named(tmp_path: Path) -> None:
    """The gate holds on these names."""
    found = partial_baseline(tmp_path / "out.engine", trt)
    assert {"builder_config", "network_kind", "inputs", "build_config_hash", "targets"} <= set(found.unobserved)
    assert partial_baseline(tmp_path / "out.engine", None).tensorrt_version is None


def test_the_hash_is_the_same_for_the_same_orders_and_not_for_others(tmp_path: Path) -> None:
    """Paths do not matter; target, flags, level, inputs and pools do."""
    (tmp_path / "elsewhere").mkdir()
    first = baseline(tmp_path, objects(models.small_model())).build_config_hash
    assert first == baseline(tmp_path / "elsewhere", objects(models.small_model())).build_config_hash
    changes: list[Any] = [
        lambda config: setattr(config, "builder_optimization_level", 2),
        lambda config: config.set_compute_capability(trt.ComputeCapability.SM86, 0),
        lambda config: config.clear_flag(trt.BuilderFlag.TF32),
        lambda config: config.set_memory_pool_limit(trt.MemoryPoolType.WORKSPACE, 1 << 20),
    ]
    others = set()
    for change in changes:
        built = objects(models.small_model())
        change(built.config)
        others.add(baseline(tmp_path, built).build_config_hash)
    assert len(others | {first}) == len(changes) + 1


def test_profiles_are_read_where_they_are_given_and_named_where_not(tmp_path: Path) -> None:
    """A config does not give out its profiles, and an engine depends on them."""
    built = objects(models.dynamic_model())
    profile = built.builder.create_optimization_profile()
    profile.set_shape("x", (1, 8), (4, 8), (16, 8))
    built.config.add_optimization_profile(profile)
    assert baseline(tmp_path, built, profiles=(profile,)).builder_config["optimization_profiles"] == [
        {"x": [[1, 8], [4, 8], [16, 8]]}
    ]
    blind = baseline(tmp_path, built)
    assert blind.build_config_hash is None
    assert {"builder_config.optimization_profiles", "build_config_hash"} <= set(blind.unobserved)


def test_inputs_that_are_not_given_leave_the_hash_unobserved(tmp_path: Path) -> None:
    """Without the digests there is nothing to compare."""
    built = objects(models.small_model())
    found = full_baseline(tmp_path / "o", trt, built.network, built.config, inputs=[], profiles=[])
    assert found.build_config_hash is None
    assert found.unobserved == ["inputs", "build_config_hash"]


def test_reading_a_config_back_leaves_no_word_in_the_callers_log(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """One property of TensorRT-RTX answers with a fatal line in the log; it is not asked."""
    built = objects(models.small_model())
    baseline(tmp_path, built)
    assert "".join(capfd.readouterr()) == ""


def test_address_randomization_is_known_on_linux() -> None:
    """It changes the bytes of some engines."""
    assert address_randomized() in {True, False}


def test_a_build_on_tensorrt_rtx_is_cold_because_its_cache_does_nothing() -> None:
    """Recorded with its reason."""
    built = objects(models.small_model())
    before = timing_cache.before_build(trt, "tensorrt_rtx", built.config)
    assert (before.event.mode, before.event.reason) == ("cold", "cache_noop")
    assert timing_cache.after_build(before) is None


class FullCache:
    """A timing cache as the full TensorRT has it."""

    def __init__(self, *keys: str) -> None:
        self.keys = list(keys)

    def serialize(self) -> bytes:
        """Return the content."""
        return repr(self.keys).encode()

    def queryKeys(self) -> list[str]:  # noqa: N802 # TensorRT's name
        """Return the keys."""
        return self.keys


class FullConfig:
    """A builder config as the full TensorRT has it; that package needs a GPU and is not installed here."""

    def __init__(self, cache: FullCache | None, *, disabled: bool = False) -> None:
        self.cache, self.disabled = cache, disabled

    def get_flag(self, flag: object) -> bool:
        """Say whether the cache is disabled."""
        return flag == trt.BuilderFlag.DISABLE_TIMING_CACHE and self.disabled

    def get_timing_cache(self) -> FullCache | None:
        """Return the cache."""
        return self.cache


@pytest.mark.parametrize(
    ("config", "mode", "reason"),
    [
        (FullConfig(None), "cold", "no_cache_given"),
        (FullConfig(FullCache("a"), disabled=True), "cold", "disabled_by_flag"),
        (FullConfig(FullCache()), "cold", "empty"),
        (FullConfig(FullCache("a")), "reused", "given"),
    ],
)
def test_the_full_packages_cache_is_read_from_the_config(config: FullConfig, mode: str, reason: str) -> None:
    """Reused only where it holds something and is not switched off."""
    event = timing_cache.before_build(trt, "tensorrt", config).event
    assert (event.mode, event.reason) == (mode, reason)


def test_a_cache_that_gained_measurements_is_updated() -> None:
    """With the digests before and after."""
    cache = FullCache("a")
    before = timing_cache.before_build(trt, "tensorrt", FullConfig(cache))
    assert timing_cache.after_build(before) is None
    cache.keys.append("b")
    after = timing_cache.after_build(before)
    assert after is not None
    assert after.mode == "updated"
    assert after.sha256_before == before.event.sha256_before != after.sha256_after


def test_a_package_is_found_by_its_config_and_refused_by_name() -> None:
    """Which TensorRT is meant is never guessed."""
    assert backends.package_of(objects(models.small_model()).config) == "tensorrt_rtx"
    assert backends.loaded() is trt
    with pytest.raises(BackendError, match="is no TensorRT builder config"):
        backends.package_of(object())
    with pytest.raises(BackendError, match="give one of tensorrt_rtx, tensorrt"):
        backends.load("tensorflow")
    with pytest.raises(BackendError, match=r"pip install enginetrail\[tensorrt\]"):
        backends.load("tensorrt")
