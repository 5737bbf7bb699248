"""What a baseline must say before anything is concluded from it. Pure."""

from collections.abc import Iterator

from analytics.evidence import RunEvidence
from analytics.reasons import Code
from analytics.verdict import Reason
from build_events.events import BaselineRecorded

USE_BUILD = "use run.build(builder, network, config, inputs=[...]) or `enginetrail build`, which see all of it"


def baseline_problems(item: RunEvidence) -> Iterator[Reason]:
    """Yield what a run does not say about its inputs, versions, configuration and machine."""
    name = f"run {item.run.run_id}"
    baseline = item.first(BaselineRecorded)
    if baseline is None:
        yield Reason(Code.BASELINE_MISSING, f"{name}: what it built with was not recorded", USE_BUILD)
        return
    unseen = unobserved_fields(baseline.event)
    if unseen:
        yield Reason(Code.UNOBSERVED, f"{name}: unobserved: {', '.join(unseen)}", USE_BUILD)
    if baseline.event.gpu_sku is None or (baseline.event.gpu_sku == "none" and not baseline.event.gpu_absence):
        text = f"{name}: no GPU on record, and no reason for its absence"
        yield Reason(Code.GPU_UNEXPLAINED, text, "build with an agent that can ask NVML: pip install enginetrail[cuda]")


def unobserved_fields(baseline: BaselineRecorded) -> list[str]:
    """Return the fields that the baseline says it could not see, and those that it leaves empty without a word."""
    empty = {
        "tensorrt_version": baseline.tensorrt_version is None,
        "network_kind": baseline.network_kind is None,
        "builder_config": not baseline.builder_config,
        "inputs": not baseline.inputs,
        "build_config_hash": baseline.build_config_hash is None,
        "driver_version": baseline.driver_version is None and not baseline.driver_absence,
    }
    return sorted({*baseline.unobserved, *(field for field, missing in empty.items() if missing)})
