"""The five gates over a route: what they read, what they hold on, what they reject."""

from typing import Any

import pytest

from analytics.cbat import evaluate
from analytics.cbat.report import CbatReport
from analytics.policy import Policy
from analytics.policy_file import parse_policy
from analytics.verdict import Finding
from build_events import events as ev
from build_events.clock import NS_PER_S
from tests.analytics.scenes import (
    DIGEST,
    MODEL,
    NOON,
    POLICY,
    ROUTE,
    TARGET,
    Build,
    Entry,
    changed,
    entry,
    number,
    source,
    validation,
    without,
)
from tests.analytics.store import collected

AS_OF = NOON + 60 * NS_PER_S
BUILT = Build(run_id="run-1").entries()
FULL = [*BUILT, source(), validation()]
GATES = ["source", "environment", "bundle", "parity", "release"]


def judged(entries: list[Entry], policy: Policy = POLICY, **how: Any) -> CbatReport:
    """Return the report on the route of a history, over a store."""
    return evaluate(collected(number(entries)), ROUTE, policy, as_of_ns=AS_OF, **how)


def gate(report: CbatReport, name: str) -> Finding:
    """Return one gate's finding."""
    return next(item for item in report.gates if item.id == name)


def codes(finding: Finding) -> list[str]:
    """Return the reason codes of a finding."""
    return [reason.code.value for reason in finding.reasons]


def ruled(text: str, **sections: str) -> Policy:
    """Return the default policy with some [cbat.*] sections, or [validation], of a TOML text."""
    given = parse_policy(text, "test")
    cbat = POLICY.cbat.model_copy(update={name: getattr(given.cbat, name) for name in sections})
    return POLICY.model_copy(update={"cbat": cbat, "validation": given.validation or POLICY.validation})


def test_source_environment_and_parity_pass_on_full_evidence() -> None:
    """Bundle and release hold, because what they ask for is recorded by no release yet."""
    report = judged(FULL)
    assert [item.id for item in report.gates] == GATES
    assert {item.id: item.verdict for item in report.gates} == {
        "source": "pass", "environment": "pass", "bundle": "hold", "parity": "pass", "release": "hold",
    }  # fmt: skip
    assert codes(gate(report, "bundle")) == ["manifest_missing"]
    assert codes(gate(report, "release")) == ["canary_missing", "rollback_drill_missing", "approval_missing"]
    assert report.verdict == "hold"
    assert gate(report, "source").evidence == ("route/source/0", "run-1/main/3")


def test_the_summary_has_the_keys_and_values_that_others_script_against() -> None:
    """Canary and rollback say what no evidence says otherwise."""
    assert judged(FULL).to_json()["summary"] == {
        "route_name": ROUTE,
        "checkpoint_revision": "4f2a9c1",
        "bundle_digest": DIGEST,
        "runtime_target": "sm89",
        "validation_status": "pass",
        "canary_status": "not_started",
        "rollback_status": "blocked",
    }


UNREAD = entry("target", TARGET, None)
CASES: list[tuple[str, list[Entry], str, str]] = [
    ("source", BUILT, "hold", "source_missing"),
    ("source", [*BUILT, source(input_sha256="9" * 64)], "hold", "source_missing"),
    ("source", changed(FULL, ev.BaselineRecorded, inputs=[]), "hold", "inputs_unknown"),
    ("source", [*FULL, source(checkpoint_revision="77777777")], "hold", "source_conflict"),
    ("source", [*BUILT, source(checkpoint_revision="Main")], "reject", "revision_not_pinned"),
    ("environment", without(FULL, ev.BaselineRecorded), "hold", "baseline_missing"),
    ("environment", changed(FULL, ev.BaselineRecorded, build_config_hash=None), "hold", "unobserved"),
    ("environment", changed(FULL, ev.BaselineRecorded, gpu_sku=None), "hold", "gpu_unexplained"),
    ("bundle", without(FULL, ev.ArtifactPublished), "hold", "artifact_unpublished"),
    ("bundle", changed(FULL, ev.ArtifactPublished, by="sweep"), "hold", "artifact_unpublished"),
    ("bundle", changed(FULL, ev.ArtifactPublished, checks=[]), "hold", "check_missing"),
    ("bundle", without(FULL, ev.ArtifactInventoried), "hold", "inventory_missing"),
    ("bundle", changed(FULL, ev.ArtifactInventoried, entries=[]), "reject", "digest_mismatch"),
    ("bundle", changed(FULL, ev.ArtifactInventoried, entries=[UNREAD]), "hold", "target_unverified"),
    (
        "bundle",
        [*FULL[:-4], Entry("run-1/main", 1_555, ev.ArtifactRemoved(path=TARGET, reason="withdrawn")), *FULL[-4:]],
        "reject",
        "artifact_withdrawn",
    ),
    ("parity", [*BUILT, source()], "hold", "validation_missing"),
    ("parity", [*BUILT, validation(runtime_target="x86")], "hold", "wrong_target"),
    ("parity", [*BUILT, validation(artifact_sha256="6" * 64)], "hold", "validation_missing"),
    ("parity", [*BUILT, validation(kind="smoke")], "hold", "validation_missing"),
    ("parity", [*FULL, validation(status="fail", kind="smoke")], "reject", "validation_failed"),
    ("parity", [*BUILT, validation(status="fail", runtime_target="x86")], "hold", "wrong_target"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "entries", "verdict", "code"), CASES)
def test_a_gate_says_what_its_evidence_lacks(name: str, entries: list[Entry], verdict: str, code: str) -> None:
    """Missing evidence holds, negative evidence rejects, each with its code and a next step."""
    finding = gate(judged(entries), name)
    assert finding.verdict == verdict
    [reason] = [item for item in finding.reasons if item.code.value == code]
    assert reason.next


@pytest.mark.parametrize(
    ("section", "name", "verdict", "code"),
    [
        ('[cbat.source]\nrefused_revisions = []\nallowed_licenses = ["mit"]', "source", "reject", "license_refused"),
        ("[cbat.source]\nrefused_revisions = []\nallowed_licenses = []", "source", "hold", "empty_policy"),
        ('[cbat.environment]\nallowed_tensorrt_versions = ["10.*"]', "environment", "reject", "version_refused"),
        ("[cbat.environment]\nallowed_tensorrt_versions = []", "environment", "hold", "empty_policy"),
        ('[cbat.bundle]\nrequired_checks = ["signature"]', "bundle", "hold", "check_missing"),
    ],
)
def test_a_policy_narrows_what_counts(section: str, name: str, verdict: str, code: str) -> None:
    """Lists are exact: what is not on them does not pass, and an empty list allows nothing."""
    finding = gate(judged(FULL, ruled(section, **{name: section})), name)
    assert finding.verdict == verdict
    assert code in codes(finding)


@pytest.mark.parametrize(
    ("section", "code"),
    [
        ('kinds = ["native_parity", "long_context"]\nmin_samples = 1', "validation_missing"),
        ('kinds = ["native_parity"]\nmin_samples = 299', "insufficient_samples"),
        ('kinds = ["native_parity"]\nmin_samples = 1\nmax_age_h = 0.001', "stale_evidence"),
        ('kinds = ["native_parity"]\nmin_samples = 1\nruntime_target = "sm120"', "wrong_target"),
        ("kinds = []\nmin_samples = 1", "empty_policy"),
    ],
)
def test_validations_count_only_as_the_policy_says(section: str, code: str) -> None:
    """Kind, samples, age and target are all asked for."""
    assert codes(gate(judged(FULL, ruled(f"[validation]\n{section}")), "parity")) == [code]


def test_a_license_that_nobody_recorded_holds() -> None:
    """Not to know a license is not to have one."""
    policy = ruled('[cbat.source]\nrefused_revisions = []\nallowed_licenses = ["MIT"]', source="")
    assert codes(gate(judged([*BUILT, source(license=None)], policy), "source")) == ["license_missing"]


def test_the_newest_completed_run_is_judged() -> None:
    """A newer digest starts from nothing: validations of the older one do not carry over."""
    newer = Build(run_id="run-2", start_ms=30_000, digest="7" * 64).entries()
    report = judged([*FULL, *newer])
    assert report.artifact_sha256 == "7" * 64
    assert codes(gate(report, "parity")) == ["validation_missing"]
    assert gate(judged([*FULL, *newer], digest=DIGEST), "parity").verdict == "pass"


def test_newer_runs_without_an_engine_warn_and_change_nothing() -> None:
    """An open or lost run beside the judged one is named."""
    beside = [
        *Build(run_id="run-2", end="open", start_ms=30_000).entries(),
        *Build(run_id="run-3", end="lost", start_ms=40_000).entries(),
    ]
    report: Any = judged([*FULL, *beside]).to_json()
    assert report["run_id"] == "run-1"
    assert [item["code"] for item in report["warnings"]] == ["run_open", "run_lost"]
    assert {item["id"] for item in report["gates"] if item["verdict"] == "pass"} == {"source", "environment", "parity"}


def test_a_route_without_runs_holds() -> None:
    """A mistyped route is no crash and no pass; nothing is recorded about it."""
    report = evaluate(collected([]), "no/such/route", POLICY, as_of_ns=AS_OF)
    assert all("no_runs" in codes(item) for item in report.gates)
    assert report.verdict == "hold"
    assert report.subjects == ()


@pytest.mark.parametrize("end", ["killed", "lost", "open", "cancelled"])
def test_a_route_whose_runs_gave_no_engine_holds(end: Any) -> None:
    """What a killed or lost run left at the target counts for no gate."""
    report = judged(Build(run_id="run-1", end=end).entries())
    assert all("no_completed_run" in codes(item) for item in report.gates)
    assert {item.verdict for item in report.gates} == {"hold"}


def test_a_digest_that_nobody_published_holds() -> None:
    """An asked digest stays the subject of the report."""
    report = judged(FULL, digest=MODEL)
    assert all("unknown_digest" in codes(item) for item in report.gates)
    assert report.artifact_sha256 == MODEL


def test_a_missing_event_holds_every_gate_and_is_named() -> None:
    """A gap in the judged run, or in a stream of the route, may hide what speaks against it."""
    closed = [*FULL, Entry("route/validation", 20_001, ev.StreamClosed(events=0, dropped=0))]
    for gone, text in (("run-1/main/6", "main stream run-1/main lacks sequence 6"), ("route/validation/0", "route")):
        records = [record for record in number(closed) if record.event_id != gone]
        report = evaluate(collected(records), ROUTE, POLICY, as_of_ns=AS_OF)
        for item in report.gates:
            assert item.verdict == "hold"
            assert any(text in reason.text for reason in item.reasons if reason.code.value == "missing_sequences")


def test_a_store_that_is_behind_holds() -> None:
    """What the store has not taken in may speak against the route."""
    assert all("store_behind" in codes(item) for item in judged(FULL, behind=lambda: True).gates)
