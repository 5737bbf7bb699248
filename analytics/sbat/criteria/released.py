"""``released``: process and GPU gave back what the build used. Pure."""

from collections.abc import Iterator

from analytics.evidence import RunEvidence
from analytics.policy import Released
from analytics.reasons import Code
from analytics.sbat.trial import Trial
from analytics.verdict import Finding, Reason
from build_events.events import BaselineRecorded, Event, ProcessExited, ProcessObserved
from build_events.facts import Fact

SUPERVISE = "build supervised: `enginetrail build` sees its process exit"


def released(trial: Trial) -> Finding:
    """A supervised build's process was seen to exit; an embedded one is back within bounds; the GPU is accounted for.

    GPU memory that was not observed is accepted only where the baseline says why there is no GPU.
    """
    bounds = trial.policy.sbat.released
    problems = [reason for item in trial.runs for reason in _problems(item, bounds)]
    exits = sum(item.run.mode == "supervised" for item in trial.runs)
    return trial.conclude(
        "released",
        problems,
        met=f"{exits} supervised and {len(trial.runs) - exits} embedded builds gave back process and GPU",
        evidence=[fact for item in trial.runs for fact in _evidence(item)],
    )


def _evidence(item: RunEvidence) -> list[Fact[Event]]:
    kinds: tuple[type[Event], ...] = (ProcessExited, ProcessObserved, BaselineRecorded)
    return [fact for kind in kinds for fact in item.all(kind)]


def _problems(item: RunEvidence, bounds: Released | None) -> Iterator[Reason]:
    name = f"run {item.run.run_id}"
    if item.run.mode == "embedded":
        yield from _embedded_problems(name, item, bounds)
    elif item.first(ProcessExited) is None:
        yield Reason(Code.EXIT_NOT_SEEN, f"{name}: nobody saw its process exit", SUPERVISE)
    seen = any(fact.event.gpu_memory_bytes is not None for fact in item.all(ProcessObserved))
    if not seen and not _says_no_gpu(item):
        why = next((fact.event.gpu_unobserved for fact in item.all(ProcessObserved)), None)
        text = f"{name}: GPU memory was not observed ({why or 'no reason given'})"
        yield Reason(Code.GPU_UNOBSERVED, text, "install enginetrail[cuda] beside the GPU's driver and build again")


def _says_no_gpu(item: RunEvidence) -> bool:
    baseline = item.first(BaselineRecorded)
    return baseline is not None and baseline.event.gpu_sku == "none" and bool(baseline.event.gpu_absence)


def _embedded_problems(name: str, item: RunEvidence, bounds: Released | None) -> Iterator[Reason]:
    before, after = _observed(item, "before"), _observed(item, "after")
    if bounds is None:
        yield Reason(Code.EMPTY_POLICY, "the policy has no [sbat.released]", "add it to the policy")
        return
    if before is None or after is None:
        moment = "before" if before is None else "after"
        yield Reason(Code.PROCESS_UNSEEN, f"{name}: its process was not observed {moment} the build", SUPERVISE)
        return
    for what, extra, allowed in (
        ("threads", after.threads - before.threads, bounds.max_extra_threads),
        ("open files", after.open_files - before.open_files, bounds.max_extra_open_files),
        ("bytes of GPU memory", _extra_gpu(before, after), bounds.max_extra_gpu_memory_bytes),
    ):
        if extra > allowed:
            text = f"{name}: {extra} more {what} than before; the policy allows {allowed}"
            yield Reason(Code.BOUND_EXCEEDED, text, f"find what the build left open; {SUPERVISE}")


def _extra_gpu(before: ProcessObserved, after: ProcessObserved) -> int:
    # A process without a GPU context before the build held nothing.
    return (after.gpu_memory_bytes or 0) - (before.gpu_memory_bytes or 0)


def _observed(item: RunEvidence, moment: str) -> ProcessObserved | None:
    found = [fact.event for fact in item.all(ProcessObserved) if fact.event.moment == moment]
    return found[-1] if found else None
