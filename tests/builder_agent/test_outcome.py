"""How a run ends and what to do next: pure rules."""

import pytest

from build_events.events import CacheMode
from builder_agent.outcome import Conclusion, Evidence, conclude, public_outcome
from builder_agent.retry import plan_retry

CANCELED = "IBuilder::buildSerializedNetwork: Error Code 7: BuildCanceled (Build canceled by user)"
NO_OUTPUT = "IBuilder::buildSerializedNetwork: Error Code 4: API Usage Error (Network must have at least one output.)"


def test_a_published_engine_is_a_completed_run() -> None:
    """Whatever else happened; a request that came too late changes only the name that people see."""
    late = Evidence(published=True, builder_returned=True, cancel_requested=True, exception=RuntimeError("later"))
    assert conclude(late) == Conclusion(outcome="completed")
    assert public_outcome(conclude(late), cancel_requested=True) == "completed_despite_cancel"
    assert public_outcome(conclude(late), cancel_requested=False) == "completed"


def test_no_engine_after_our_false_is_a_cancelled_run() -> None:
    """With or without the builder's text, and also when the body then stumbles over the missing engine."""
    cancelled = Evidence(builder_returned=True, returned_false=True, cancel_requested=True)
    assert conclude(cancelled) == Conclusion(outcome="cancelled")
    stumbled = Evidence(returned_false=True, cancel_requested=True, exception=TypeError("None has no len()"))
    assert conclude(stumbled) == Conclusion(outcome="cancelled")


def test_no_engine_without_our_false_is_a_failed_run_in_the_builders_words() -> None:
    """A request alone does not make a failure a cancellation."""
    refused = Evidence(builder_returned=True, cancel_requested=True, builder_errors=[NO_OUTPUT])
    assert conclude(refused) == Conclusion(outcome="failed", error_type="builder_error", error_message=NO_OUTPUT)


def test_a_failure_without_text_says_that_none_could_be_seen() -> None:
    """Three lines of embedding have no error recorder."""
    assert conclude(Evidence(builder_returned=True)).error_message == "unobserved"


def test_a_cancellation_that_nobody_asked_for_is_a_fault_of_the_monitor() -> None:
    """TensorRT takes an exception in a callback for a False; its text is the same."""
    fault = Evidence(builder_returned=True, builder_errors=[CANCELED], monitor_fault=ValueError("broken"))
    assert conclude(fault) == Conclusion(
        outcome="failed", error_type="monitor_fault", error_message="ValueError: broken"
    )
    assert conclude(Evidence(builder_returned=True, builder_errors=[CANCELED])).error_message == CANCELED


def test_an_exception_of_the_body_fails_the_run_under_its_own_name() -> None:
    """And an interrupt that left the body is a request that was obeyed."""
    parsing = Evidence(exception=ValueError("no model"))
    assert conclude(parsing) == Conclusion(outcome="failed", error_type="ValueError", error_message="no model")
    assert conclude(Evidence(exception=KeyboardInterrupt(), cancel_requested=True)).outcome == "cancelled"


def test_a_file_that_cannot_be_written_fails_the_run() -> None:
    """Although there was an engine."""
    full = Evidence(builder_returned=True, artifact_error=OSError("disk full"), exception=OSError("disk full"))
    assert conclude(full) == Conclusion(outcome="failed", error_type="artifact_write", error_message="disk full")


def test_a_run_that_built_nothing_says_so() -> None:
    """Neither save nor build was called."""
    assert conclude(Evidence()).error_type == "no_engine"


def test_an_unwanted_late_engine_is_a_cancelled_run() -> None:
    """discard_late: the engine came after the request and was not published."""
    assert conclude(Evidence(builder_returned=True, discarded_late=True, cancel_requested=True)).outcome == "cancelled"


@pytest.mark.parametrize(
    ("mode", "policy"),
    [
        ("reused", "retry_with_cache"),
        ("updated", "retry_with_cache"),
        ("cold", "retry_cold"),
        ("quarantined", "retry_cold"),
        ("discarded", "retry_cold"),
        (None, "retry_cold"),
    ],
)
def test_a_cancelled_run_is_retried_with_the_cache_only_where_one_was_in_play(
    mode: CacheMode | None, policy: str
) -> None:
    """An unclear cache is never retried with."""
    plan = plan_retry("cancelled", cache_mode=mode, cache_reason=None, error_type=None)
    assert plan is not None
    assert plan.policy == policy


def test_a_failed_run_is_investigated_and_a_completed_one_is_not_retried() -> None:
    """The same build fails the same way, whatever the cache."""
    plan = plan_retry("failed", cache_mode="reused", cache_reason=None, error_type="monitor_fault")
    assert plan is not None
    assert plan.policy == "investigate"
    assert "monitor_fault" in plan.reason
    assert plan_retry("completed", cache_mode="reused", cache_reason=None, error_type=None) is None
