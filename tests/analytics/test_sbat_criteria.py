"""The eight criteria: what passes, what holds for want of evidence, what rejects."""

from collections.abc import Sequence
from typing import Any

import pytest

from analytics.policy import Policy
from analytics.policy_file import parse_policy
from analytics.reasons import Code
from analytics.sbat.criteria import CRITERIA
from analytics.sbat.report import judge_trial
from analytics.verdict import Finding
from build_events import events as ev
from tests.analytics.scenes import (
    POLICY,
    TARGET,
    Build,
    Entry,
    changed,
    entry,
    observed,
    passing,
    trial,
    validation,
    without,
)

IDS = [
    "observable", "explainable", "interruptible", "measured", "clean", "cache_safe", "released", "retried_validated",
]  # fmt: skip
GPU: dict[str, Any] = {"gpu_sku": "NVIDIA L4", "gpu_absence": None, "driver_version": "580.1", "driver_absence": None}
FAILED_AFTER_CANCEL = changed(passing(), ev.RunFinished, "run-1", outcome="failed")


def found(entries: Sequence[Entry], criterion: str, policy: Policy = POLICY, **how: Any) -> Finding:
    """Return one criterion's finding on a history."""
    report = judge_trial(trial(entries, policy, **how), [])
    return next(item for item in report.criteria if item.id == criterion)


def bounded(section: str) -> Policy:
    """Return the default policy with one section replaced by a TOML text."""
    name = section.splitlines()[0].strip("[]").split(".")[1]
    replaced = {name: getattr(parse_policy(section, "test").sbat, name)}
    return POLICY.model_copy(update={"sbat": POLICY.sbat.model_copy(update=replaced)})


def inventoried(*entries: ev.InventoryEntry, run_id: str) -> list[Entry]:
    """Return the passing test with another inventory after one run."""
    return [
        item
        if not (isinstance(item.event, ev.ArtifactInventoried) and item.event.moment == "after")
        or not item.stream.startswith(run_id)
        else Entry(item.stream, item.at_ms, ev.ArtifactInventoried(moment="after", entries=list(entries)))
        for item in passing()
    ]


@pytest.mark.parametrize("mode", ["supervised", "embedded"])
def test_a_cancelled_build_with_its_validated_retry_passes_all_eight(mode: str) -> None:
    """The one test that the product exists for; every criterion says what it saw."""
    report = judge_trial(trial(passing(mode=mode)), ["run-1"])
    assert [item.id for item in report.criteria] == IDS
    assert {(item.verdict, item.reasons[0].code) for item in report.criteria} == {("pass", Code.MET)}
    assert all(item.evidence for item in report.criteria)
    assert report.verdict == "pass"


HOLDS: list[tuple[str, list[Entry], str]] = [
    ("observable", without(passing(), ev.Phase), "no_callbacks"),
    ("observable", without(passing(), ev.PhaseStarted, lambda event: event.phase_id == 2), "phase_incomplete"),
    ("observable", without(passing(), ev.PhaseFinished, lambda event: event.phase_id == 2), "phase_incomplete"),
    ("observable", without(passing(), ev.Phase, lambda event: event.phase_id == 1), "phase_tree_broken"),
    ("explainable", without(passing(), ev.BaselineRecorded), "baseline_missing"),
    ("explainable", changed(passing(), ev.BaselineRecorded, unobserved=["inputs"]), "unobserved"),
    ("explainable", changed(passing(), ev.BaselineRecorded, network_kind=None), "unobserved"),
    ("explainable", changed(passing(), ev.BaselineRecorded, gpu_absence=None), "gpu_unexplained"),
    ("explainable", without(passing(), ev.TimingCacheRecorded), "cache_unknown"),
    ("explainable", changed(passing(), ev.TimingCacheRecorded, mode=None), "cache_unknown"),
    ("explainable", without(passing(), ev.ProcessObserved, lambda event: event.moment == "before"), "process_unseen"),
    ("explainable", without(passing(), ev.HeartbeatRecorded), "process_unseen"),
    ("explainable", changed(passing(), ev.PhaseFinished, longest_gap_ns=10**10), "silence_unwatched"),
    ("explainable", without(without(passing(), ev.Phase), ev.HeartbeatRecorded), "silence_unmeasured"),
    ("interruptible", Build(run_id="run-1").entries(), "no_cancellation"),
    ("interruptible", without(passing(), ev.CancelSignalled), "not_signalled"),
    ("interruptible", changed(passing(), ev.CancelSignalled, request_id="another"), "not_signalled"),
    ("interruptible", without(passing(), ev.CancelRequested), "not_signalled"),
    ("interruptible", without(FAILED_AFTER_CANCEL, ev.CancelObserved), "cancel_overtaken"),
    ("measured", Build(run_id="run-1").entries(), "no_cancellation"),
    ("measured", without(passing(), ev.BuilderReturned), "leg_missing"),
    ("measured", without(passing(), ev.CancelObserved), "leg_missing"),
    ("clean", without(passing(), ev.CleanupFinished), "cleanup_missing"),
    ("clean", without(passing(), ev.ArtifactInventoried, lambda event: event.moment == "before"), "inventory_missing"),
    ("clean", without(passing(), ev.ArtifactInventoried, lambda event: event.moment == "after"), "inventory_missing"),
    ("clean", inventoried(entry("target", TARGET, None), run_id="run-2"), "target_unverified"),
    ("cache_safe", without(passing(), ev.TimingCacheRecorded), "cache_unknown"),
    ("cache_safe", changed(passing(), ev.TimingCacheRecorded, mode=None), "cache_unknown"),
    ("released", without(passing(), ev.ProcessExited), "exit_not_seen"),
    ("released", changed(passing(), ev.BaselineRecorded, **GPU), "gpu_unobserved"),
    ("released", without(passing(), ev.BaselineRecorded), "gpu_unobserved"),
    ("released", without(passing(mode="embedded"), ev.ProcessObserved), "process_unseen"),
    ("retried_validated", Build(run_id="run-1").entries(), "no_retry"),
    ("retried_validated", Build(run_id="run-1", end="cancelled").entries(), "retry_missing"),
    ("retried_validated", without(passing(), ev.RetryPlanned), "retry_plan_missing"),
    ("retried_validated", passing()[:-1], "validation_missing"),
    ("retried_validated", [*passing()[:-1], validation(runtime_target="cpu")], "wrong_target"),
    ("retried_validated", [*passing()[:-1], validation(artifact_sha256="6" * 64)], "validation_missing"),
    ("retried_validated", changed(passing(), ev.BaselineRecorded, targets=[]), "runtime_target_unknown"),
]


@pytest.mark.parametrize(("criterion", "entries", "code"), HOLDS)
def test_missing_evidence_holds(criterion: str, entries: list[Entry], code: str) -> None:
    """Nothing passes without data: the reason names what is missing and the next step."""
    finding = found(entries, criterion)
    assert finding.verdict == "hold"
    [reason] = {reason.code.value: reason for reason in finding.reasons if reason.code.value == code}.values()
    assert reason.next


LEFTOVER = entry("temporary", "/models/.engine.plan.run-1.tmp", None)
OTHER = entry("target", TARGET, "c" * 64)
SHARED_CACHE = ev.TimingCacheRecorded(mode="updated", reason="merged", path="/cache/sm89.cache")
REJECTS: list[tuple[str, list[Entry], str]] = [
    ("observable", changed(passing(), ev.RunFinished, "run-1", error_type="monitor_fault"), "monitor_fault"),
    ("interruptible", FAILED_AFTER_CANCEL, "cancel_failed"),
    ("clean", changed(passing(), ev.CleanupFinished, status="failed"), "cleanup_failed"),
    ("clean", inventoried(LEFTOVER, run_id="run-1"), "leftover"),
    ("clean", inventoried(OTHER, run_id="run-1"), "target_changed"),
    ("clean", inventoried(OTHER, run_id="run-2"), "digest_mismatch"),
    ("clean", inventoried(run_id="run-2"), "digest_mismatch"),
    ("cache_safe", [*passing()[:3], Entry("run-1/main", 5, SHARED_CACHE), *passing()[3:]], "cache_changed"),
    ("retried_validated", changed(passing(), ev.RunStarted, "run-2", retry_policy="rollback"), "retry_plan_ignored"),
    ("retried_validated", [*passing(), validation(status="fail")], "validation_failed"),
]


@pytest.mark.parametrize(("criterion", "entries", "code"), REJECTS)
def test_negative_evidence_rejects(criterion: str, entries: list[Entry], code: str) -> None:
    """What went wrong is said, and no other evidence makes up for it."""
    finding = found(entries, criterion)
    assert finding.verdict == "reject"
    assert finding.reasons[0].code.value == code


@pytest.mark.parametrize(
    ("criterion", "section"),
    [
        ("explainable", "[sbat.explainable]\nunheard_heartbeats = 2\nmax_silence_ms = 1000"),
        ("measured", "[sbat.measured]\nmax_cleaned_ms = 10"),
        ("cache_safe", '[sbat.cache_safe]\nallowed_modes = ["reused"]'),
    ],
)
def test_a_value_over_its_bound_rejects(criterion: str, section: str) -> None:
    """Bounds are the policy's, in the units that its keys name."""
    finding = found(passing(), criterion, bounded(section))
    assert finding.verdict == "reject"
    assert finding.reasons[0].code in {Code.BOUND_EXCEEDED, Code.CACHE_MODE_REFUSED}


def test_an_embedded_build_that_leaves_threads_behind_rejects() -> None:
    """An embedded build is measured against the observation before it."""
    entries = [
        Entry(item.stream, item.at_ms, observed("after", threads=40))
        if isinstance(item.event, ev.ProcessObserved) and item.event.moment == "after"
        else item
        for item in passing(mode="embedded")
    ]
    assert found(entries, "released").reasons[0].code == Code.BOUND_EXCEEDED


def test_observed_gpu_memory_needs_no_reason() -> None:
    """With a GPU the memory must be on record; then it is accounted for."""
    with_gpu = changed(passing(), ev.BaselineRecorded, **GPU)
    assert found(changed(with_gpu, ev.ProcessObserved, gpu_memory_bytes=0), "released").verdict == "pass"


def test_a_noop_cache_passes_whatever_the_policy_allows() -> None:
    """A builder that ignores timing caches cannot break one."""
    noop = changed(passing(), ev.TimingCacheRecorded, reason="cache_noop")
    assert found(noop, "cache_safe", bounded('[sbat.cache_safe]\nallowed_modes = ["reused"]')).verdict == "pass"


@pytest.mark.parametrize("criterion", ["explainable", "measured", "cache_safe", "released", "retried_validated"])
def test_an_empty_policy_gives_no_permission(criterion: str) -> None:
    """A section that is left out holds what needs it."""
    finding = found(passing(mode="embedded"), criterion, parse_policy("", "test"))
    assert finding.verdict == "hold"
    assert Code.EMPTY_POLICY in {reason.code for reason in finding.reasons}


def test_a_killed_build_is_interruptible_and_measured() -> None:
    """A killed run implies its cleanup and its exit, not what only the builder could say."""
    killed = Build(run_id="run-1", end="killed").entries()
    assert found(killed, "interruptible").verdict == "pass"
    assert found(killed, "measured").verdict == "pass"
    assert found(killed, "observable").verdict == "pass"


def test_a_cancel_that_came_too_late_is_measured_by_return_and_exit() -> None:
    """An engine that came first is kept; the request still went through the shared state."""
    late = Build(run_id="run-1", end="completed_despite_cancel").entries()
    assert found(late, "interruptible").verdict == "pass"
    assert found(late, "measured").verdict == "pass"


def test_a_failed_build_without_callbacks_holds_observable() -> None:
    """The builder's no before its first callback shows nothing of a build."""
    failed = without(Build(run_id="run-1", end="failed").entries(), ev.Phase)
    assert found(failed, "observable").reasons[0].code == Code.NO_CALLBACKS


def test_every_criterion_holds_on_incomplete_evidence() -> None:
    """An open run, a lost one, a store behind: all eight say so, also those that saw nothing wrong."""
    histories = {
        "run_open": trial([*passing(), *Build(run_id="run-3", end="open", start_ms=30_000).entries()]),
        "run_lost": trial([*passing(), *Build(run_id="run-3", end="lost", start_ms=30_000).entries()]),
        "store_behind": trial(passing(), behind=True),
        "retried_run_missing": trial(Build(run_id="run-2", retry_of="run-1").entries()),
        "no_runs": trial([]),
    }
    for code, history in histories.items():
        for finding in [criterion(history) for criterion in CRITERIA]:
            assert code in {reason.code.value for reason in finding.reasons}
            assert finding.verdict != "pass"
