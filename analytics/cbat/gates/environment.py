"""``environment``: what the artifact was built with, and by which recipe. Pure."""

import fnmatch
from collections.abc import Iterator

from analytics.baseline import baseline_problems
from analytics.cbat.candidate import Candidate
from analytics.reasons import Code
from analytics.verdict import Finding, Reason


def environment(candidate: Candidate) -> Finding:
    """Versions, machine, builder configuration and recipe are on record, and the policy allows the version."""
    baseline = candidate.baseline
    recipe = (baseline.event.build_config_hash or "")[:12] if baseline else ""
    version = baseline.event.tensorrt_version if baseline else None
    return candidate.conclude(
        "environment",
        list(_problems(candidate)),
        met=f"TensorRT {version}, recipe {recipe}",
        evidence=[baseline],
    )


def _problems(candidate: Candidate) -> Iterator[Reason]:
    bounds, judged, baseline = candidate.policy.cbat.environment, candidate.judged, candidate.baseline
    if bounds is None:
        yield Reason(Code.EMPTY_POLICY, "the policy has no [cbat.environment]", "add it to the policy")
    if judged is None:
        return
    yield from baseline_problems(judged)
    if baseline is None:
        return
    patterns = bounds.allowed_tensorrt_versions if bounds else None
    version = baseline.event.tensorrt_version
    if patterns is not None and not patterns:
        yield Reason(Code.EMPTY_POLICY, "the policy allows no TensorRT version", "name some, or leave the key out")
    elif patterns and version is not None and not any(fnmatch.fnmatchcase(version, pattern) for pattern in patterns):
        text = f"run {judged.run.run_id}: TensorRT {version} is not among {', '.join(patterns)}"
        yield Reason(Code.VERSION_REFUSED, text, "build with an allowed version, or change the policy")
