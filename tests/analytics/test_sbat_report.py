"""The SBAT report: its summary, its chains, the operator's questions."""

from typing import Any

import pytest

from analytics.errors import UnknownRunError
from analytics.policy_file import parse_policy
from analytics.sbat import judge
from analytics.sbat.questions import answers
from analytics.sbat.report import judge_trial
from analytics.sbat.trial import Trial
from build_events import codec
from build_events import events as ev
from build_events.clock import NS_PER_S
from tests.analytics.scenes import (
    HASH,
    NOON,
    POLICY,
    Build,
    Entry,
    changed,
    number,
    passing,
    trial,
    validation,
    without,
)
from tests.analytics.store import collected

AS_OF = NOON + 60 * NS_PER_S
KEYS = [
    "framework", "tensorrtVersion", "language", "buildConfigHash", "gpuSku", "timingCacheMode", "cancelSource",
    "cancelLatencyMs", "cleanupStatus", "retryPolicy", "validationStatus",
]  # fmt: skip


def report_of(entries: list[Entry]) -> dict[str, Any]:
    """Return the report of all runs of a history, as it is printed."""
    return judge_trial(trial(entries), ["run-1"]).to_json()


def test_the_summary_is_of_the_last_cancelled_run() -> None:
    """Keys and values are exactly those that others script against."""
    report = report_of(passing())
    assert report["summary"] == {
        "framework": "Optijara Stuck-Build Acceptance Test",
        "tensorrtVersion": "1.7.1.116",
        "language": "python",
        "buildConfigHash": HASH,
        "gpuSku": "none",
        "timingCacheMode": "cold",
        "cancelSource": "ctrl_c",
        "cancelLatencyMs": 52.0,
        "cleanupStatus": "cleaned",
        "retryPolicy": "retry_cold",
        "validationStatus": "not_applicable",
    }
    assert [list(item) for item in report["summaries"]] == [KEYS, KEYS]
    assert [item["run_id"] for item in report["runs"]] == ["run-1", "run-2"]
    assert report["summaries"][1]["validationStatus"] == "pass"


def test_without_a_cancelled_run_the_summary_is_of_the_last_one() -> None:
    """A build that nobody stopped has no cancel source and no latency."""
    summary = report_of(Build(run_id="run-1").entries())["summary"]
    assert (summary["cancelSource"], summary["cancelLatencyMs"], summary["validationStatus"]) == (None, None, "pending")


def test_what_a_run_does_not_say_is_null() -> None:
    """A missing fact is no value of the summary's lists."""
    bare = without(without(passing(), ev.BaselineRecorded), ev.TimingCacheRecorded)
    summary = report_of(without(bare, ev.CleanupFinished))["summary"]
    unknown = ("tensorrtVersion", "buildConfigHash", "gpuSku", "timingCacheMode", "cleanupStatus", "cancelLatencyMs")
    assert [summary[key] for key in unknown] == [None] * len(unknown)


def test_a_failed_validation_is_the_status_of_its_artifact() -> None:
    """One failure on the runtime target decides, whatever else passed."""
    report = report_of([*passing(), validation(status="fail")])
    assert report["summaries"][1]["validationStatus"] == "fail"
    assert report["verdict"] == "reject"


def test_a_run_is_judged_with_its_whole_retry_chain() -> None:
    """Ancestors and descendants belong to the test; a stranger does not."""
    third = Build(run_id="run-3", start_ms=20_000, retry_of="run-2", retry_policy="retry_cold", end="cancelled")
    stranger = Build(run_id="run-9", start_ms=30_000)
    query = collected(number([*passing(), *third.entries(), *stranger.entries()]))
    for given in (["run-1"], ["run-2"], ["run-3"], ["run-3", "run-1"]):
        report: Any = judge(query, given, POLICY, as_of_ns=AS_OF).to_json()
        assert [(item["run_id"], item["given"]) for item in report["runs"]] == [
            (run_id, run_id in given) for run_id in ("run-1", "run-2", "run-3")
        ]


def test_the_store_and_the_records_give_one_report() -> None:
    """Judging over SQL and judging the records differ in nothing that is printed."""
    query = collected(number(passing()))
    assert judge(query, ["run-1"], POLICY, as_of_ns=AS_OF).to_json() == report_of(passing())


def test_a_long_chain_is_judged_as_one() -> None:
    """However many retries there were, the store and the records give one report on all of them."""
    entries = Build(run_id="run-0", end="failed").entries()
    for index in range(1, 9):
        retry = Build(
            run_id=f"run-{index}",
            end="completed" if index == 8 else "failed",
            start_ms=10_000 * index,
            retry_of=f"run-{index - 1}",
            retry_policy="retry_cold",
        )
        entries += retry.entries()
    entries.append(validation())
    report = judge(collected(number(entries)), ["run-4"], POLICY, as_of_ns=AS_OF)
    assert len(report.trial.runs) == 9
    assert report.to_json() == judge_trial(trial(entries), ["run-4"]).to_json()
    assert next(item for item in report.criteria if item.id == "retried_validated").verdict == "pass"


def test_an_unknown_run_is_an_error_that_names_it() -> None:
    """A mistyped id is no test that holds."""
    with pytest.raises(UnknownRunError, match=r"run-7.*enginetrail runs"):
        judge(collected(number(passing())), ["run-1", "run-7"], POLICY, as_of_ns=AS_OF)


def test_a_missing_event_holds_and_its_sequence_is_named() -> None:
    """One event lost from the middle of the main stream: every criterion holds and says which."""
    records = [record for record in number(passing()) if record.event_id != "run-1/main/6"]
    report = judge(collected(records), ["run-1"], POLICY, as_of_ns=AS_OF)
    assert {finding.verdict for finding in report.criteria} == {"hold"}
    for finding in report.criteria:
        [text] = [reason.text for reason in finding.reasons if reason.code.value == "missing_sequences"]
        assert text == "run run-1: main stream run-1/main lacks sequence 6"


def test_a_gap_in_an_observer_stream_holds() -> None:
    """A supervisor's lost fact may be the one that speaks against the run."""
    records = [record for record in number(passing()) if record.event_id != "run-1/observer/0"]
    report = judge(collected(records), ["run-1"], POLICY, as_of_ns=AS_OF)
    assert {finding.verdict for finding in report.criteria} == {"hold"}


def test_a_damaged_record_holds() -> None:
    """Bytes of the run's log that are no event count against it."""
    stray = number([Entry("run-2/stray", 1, ev.RetryPlanned(policy="rollback", reason="any"))])
    damaged = codec.encode(stray[0]).replace(b'"rollback"', b'"no such policy"')
    report = judge(collected(number(passing()), [damaged]), ["run-1"], POLICY, as_of_ns=AS_OF)
    assert {finding.verdict for finding in report.criteria} == {"hold"}
    assert all("dead_letters" in {reason.code.value for reason in finding.reasons} for finding in report.criteria)


def answered(as_of_ms: int, policy: str = "[sbat.explainable]\nunheard_heartbeats = 2") -> tuple[str, str]:
    """Return whether to let an open run continue and whether to cancel it, some time after its last heartbeat."""
    open_run = trial(Build(run_id="run-1", end="open").entries())
    later = Trial(evidence=open_run.evidence, policy=parse_policy(policy, "test"), as_of_ns=NOON + as_of_ms * 1_000_000)
    answer: Any = answers(later, later.runs[0])
    return answer["continue"]["answer"], answer["cancel"]["answer"]


def test_a_run_that_is_heard_may_continue() -> None:
    """Slow is not stuck while heartbeats arrive."""
    assert answered(3_000) == ("yes", "no")


def test_a_run_that_is_not_heard_is_unknown() -> None:
    """After its lease nobody can say whether the process lives."""
    assert answered(100_000) == ("unknown", "unknown")


def test_a_silence_over_the_policys_bound_is_a_reason_to_cancel() -> None:
    """How long a builder may be silent is the policy's to say."""
    assert answered(3_000, "[sbat.explainable]\nunheard_heartbeats = 2\nmax_silence_ms = 500") == ("no", "yes")


def test_the_plan_of_a_run_answers_what_to_retry_with() -> None:
    """A planned rollback says to go back to a known engine, and gives the event that says so."""
    planned = changed(passing(), ev.RetryPlanned, policy="rollback")
    judged = trial(planned)
    answer: Any = answers(judged, judged.runs[0])
    assert answer["known_engine"]["answer"] == "yes"
    assert answer["retry_with_cache"]["answer"] == "no"
    assert answer["known_engine"]["evidence"] == ["run-1/main/16"]
