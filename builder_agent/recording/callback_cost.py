"""What the agent costs the builder, from samples of single callbacks. Pure."""

from collections.abc import Collection

from build_events.events import CallbackCostRecorded


def callback_cost(costs_ns: Collection[int]) -> CallbackCostRecorded | None:
    """Return mean, 99th percentile (the least value that 99 % do not exceed) and maximum; ``None`` without samples."""
    if not costs_ns:
        return None
    ordered = sorted(costs_ns)
    return CallbackCostRecorded(
        samples=len(ordered),
        mean_ns=sum(ordered) // len(ordered),
        p99_ns=ordered[-(-len(ordered) * 99 // 100) - 1],
        max_ns=ordered[-1],
    )
