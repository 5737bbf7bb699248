"""What to do next after a run that gave no engine. Pure.

* Cancelled: nothing is wrong with the build. With a timing cache that held or gained measurements in
  play, retry with it; otherwise cold.
* Failed: the same build fails the same way, so somebody must look first. That holds for the
  builder's no, for a fault of the monitor, and for a file that could not be written.

``rollback`` is never planned here: whether a known-good engine exists is known to the one who judges.
"""

from build_events.events import CacheMode, RetryPlanned

_WITH_CACHE: tuple[CacheMode, ...] = ("reused", "updated")


def plan_retry(
    outcome: str, *, cache_mode: CacheMode | None, cache_reason: str | None, error_type: str | None
) -> RetryPlanned | None:
    """Return the plan for ``cancelled`` and ``failed``; ``None`` for a run that gave an engine."""
    if outcome == "cancelled":
        if cache_mode in _WITH_CACHE:
            return RetryPlanned(policy="retry_with_cache", reason=f"cancelled; the timing cache was {cache_mode}")
        why = cache_reason or "its state was not observed"
        return RetryPlanned(policy="retry_cold", reason=f"cancelled; no usable timing cache ({why})")
    if outcome == "failed":
        return RetryPlanned(policy="investigate", reason=f"failed ({error_type}): the same build would fail again")
    return None
