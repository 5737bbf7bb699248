"""How a run used a timing cache, read from its builder config."""

import hashlib
from dataclasses import dataclass
from types import ModuleType
from typing import Any

from build_events.events import TimingCacheRecorded
from builder_agent.trt import tensorrt_rtx_backend


@dataclass(frozen=True, slots=True, kw_only=True)
class CacheBefore:
    """What stood in the cache when the build began."""

    event: TimingCacheRecorded
    cache: Any = None  # the package's ITimingCache, to be compared after the build


def before_build(trt: ModuleType, package: str, config: Any) -> CacheBefore:
    """Return the fact about the cache that a build starts with.

    TensorRT-RTX ignores timing caches (measured: the blob is the same 172 bytes whatever is built), so
    there every run is cold. Full TensorRT: a cache that holds keys is reused.
    """
    if package == tensorrt_rtx_backend.NAME:
        return CacheBefore(event=TimingCacheRecorded(mode="cold", reason="cache_noop"))
    if config.get_flag(trt.BuilderFlag.DISABLE_TIMING_CACHE):
        return CacheBefore(event=TimingCacheRecorded(mode="cold", reason="disabled_by_flag"))
    cache = config.get_timing_cache()
    if cache is None:
        return CacheBefore(event=TimingCacheRecorded(mode="cold", reason="no_cache_given"))
    digest = _digest(cache)
    if not cache.queryKeys():
        return CacheBefore(event=TimingCacheRecorded(mode="cold", reason="empty", sha256_before=digest), cache=cache)
    return CacheBefore(event=TimingCacheRecorded(mode="reused", reason="given", sha256_before=digest), cache=cache)


def after_build(before: CacheBefore) -> TimingCacheRecorded | None:
    """Return the fact that the build changed its cache, ``None`` where there is nothing new to say."""
    if before.cache is None:
        return None
    digest = _digest(before.cache)
    if digest == before.event.sha256_before:
        return None
    return TimingCacheRecorded(
        mode="updated",
        reason="the build added measurements",
        sha256_before=before.event.sha256_before,
        sha256_after=digest,
    )


def _digest(cache: Any) -> str:
    return hashlib.sha256(memoryview(cache.serialize())).hexdigest()
