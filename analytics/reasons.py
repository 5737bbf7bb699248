"""The closed list of reason codes: what each means and what it does to a verdict.

Programs may rely on the codes; texts are for people and may change. ``docs/deciding.md`` names all.
"""

from enum import Enum
from typing import Self

from build_events.events import Verdict


class Code(Enum):
    """A reason code. Its value is what reports carry."""

    effect: Verdict
    meaning: str

    def __new__(cls, code: str, effect: Verdict, meaning: str) -> Self:
        """Make a member whose value is its code alone."""
        member = object.__new__(cls)
        member._value_ = code
        member.effect = effect
        member.meaning = meaning
        return member

    MET = ("met", "pass", "everything that is asked for is there")

    # What may be judged at all.
    EMPTY_POLICY = ("empty_policy", "hold", "the policy says nothing about this, and nothing is no permission")
    STORE_BEHIND = ("store_behind", "hold", "the store had not taken in the whole log when it answered")
    NO_RUNS = ("no_runs", "hold", "the route has no run")
    NO_COMPLETED_RUN = ("no_completed_run", "hold", "no run of the route completed with an artifact")
    UNKNOWN_DIGEST = ("unknown_digest", "hold", "no completed run of the route published this digest")
    RETRIED_RUN_MISSING = ("retried_run_missing", "hold", "a run names the run it retries, which is not in the log")
    RUN_OPEN = ("run_open", "hold", "the run has not ended")
    RUN_LOST = ("run_lost", "hold", "nobody saw the run's end")
    NO_MAIN_STREAM = ("no_main_stream", "hold", "the building process recorded nothing")
    NO_DECLARED_END = ("no_declared_end", "hold", "a main stream without a declared end")
    MISSING_SEQUENCES = ("missing_sequences", "hold", "events of a stream are not in the log")
    DROPPED_EVENTS = ("dropped_events", "hold", "a writer gave up events")
    DEAD_LETTERS = ("dead_letters", "hold", "the log holds bytes of the run or route that are no event")

    # What was seen of the build.
    NO_CALLBACKS = ("no_callbacks", "hold", "the builder never called back, so nothing of it was seen")
    PHASE_INCOMPLETE = ("phase_incomplete", "hold", "a phase lacks its start or its end")
    PHASE_TREE_BROKEN = ("phase_tree_broken", "hold", "no root phase, or a phase whose parent is not there")
    MONITOR_FAULT = ("monitor_fault", "reject", "a fault in our own callback ended the build")
    BASELINE_MISSING = ("baseline_missing", "hold", "what the run built with was not recorded")
    UNOBSERVED = ("unobserved", "hold", "the baseline names fields that could not be seen")
    CACHE_UNKNOWN = ("cache_unknown", "hold", "how the run used its timing cache was not recorded")
    GPU_UNEXPLAINED = ("gpu_unexplained", "hold", "neither a GPU nor a reason for its absence was recorded")
    PROCESS_UNSEEN = ("process_unseen", "hold", "the process was not observed at a moment that is asked for")
    SILENCE_UNMEASURED = ("silence_unmeasured", "hold", "the longest silence of the builder is not known")
    SILENCE_UNWATCHED = ("silence_unwatched", "hold", "nothing tells whether the process lived in its longest silence")
    BOUND_EXCEEDED = ("bound_exceeded", "reject", "a measured value is over the policy's bound")

    # Cancellation.
    NO_CANCELLATION = ("no_cancellation", "hold", "no run of the test was asked to stop")
    NOT_SIGNALLED = ("not_signalled", "hold", "the build ended without naming the request that stopped it")
    CANCEL_OVERTAKEN = ("cancel_overtaken", "hold", "the build failed before it could see the request")
    CANCEL_FAILED = ("cancel_failed", "reject", "the builder was told to stop and the run ended otherwise")
    LEG_MISSING = ("leg_missing", "hold", "a latency that the outcome implies was not measured")

    # What the run left behind.
    INVENTORY_MISSING = ("inventory_missing", "hold", "the files at the target were not listed before or after")
    CLEANUP_MISSING = ("cleanup_missing", "hold", "no end of the cleanup was recorded")
    CLEANUP_FAILED = ("cleanup_failed", "reject", "the cleanup failed")
    LEFTOVER = ("leftover", "reject", "a temporary file of the run is left")
    TARGET_UNVERIFIED = ("target_unverified", "hold", "the file at the target has no digest on record")
    TARGET_CHANGED = ("target_changed", "reject", "a run that published nothing changed the target")
    DIGEST_MISMATCH = ("digest_mismatch", "reject", "the file at the target is not the one that was published")
    CACHE_MODE_REFUSED = ("cache_mode_refused", "reject", "the policy does not allow this use of the timing cache")
    CACHE_CHANGED = ("cache_changed", "reject", "a run without an engine changed the shared timing cache")
    EXIT_NOT_SEEN = ("exit_not_seen", "hold", "nobody saw the building process exit")
    GPU_UNOBSERVED = ("gpu_unobserved", "hold", "GPU memory was not observed, and not for lack of a GPU")

    # Retry and validation.
    NO_RETRY = ("no_retry", "hold", "no run of the test had to be retried")
    RETRY_PLAN_MISSING = ("retry_plan_missing", "hold", "a run without an engine says not what to do next")
    RETRY_MISSING = ("retry_missing", "hold", "a run without an engine was not retried")
    RETRY_PLAN_IGNORED = ("retry_plan_ignored", "reject", "a retry followed another policy than the planned one")
    VALIDATION_MISSING = ("validation_missing", "hold", "nobody validated the artifact")
    VALIDATION_FAILED = ("validation_failed", "reject", "a validation of the artifact failed")
    RUNTIME_TARGET_UNKNOWN = ("runtime_target_unknown", "hold", "neither policy nor baseline names the runtime target")
    WRONG_TARGET = ("wrong_target", "hold", "the artifact was validated, but not on its runtime target")
    INSUFFICIENT_SAMPLES = ("insufficient_samples", "hold", "a validation compared too little")
    STALE_EVIDENCE = ("stale_evidence", "hold", "the evidence is older than the policy allows")

    # Promotion.
    INPUTS_UNKNOWN = ("inputs_unknown", "hold", "the baseline names no model file that the build read")
    SOURCE_MISSING = ("source_missing", "hold", "nobody recorded where an input came from")
    SOURCE_CONFLICT = ("source_conflict", "hold", "records of one input's source contradict each other")
    REVISION_NOT_PINNED = ("revision_not_pinned", "reject", "the checkpoint revision is a name that moves")
    LICENSE_MISSING = ("license_missing", "hold", "the policy asks for a license and none was recorded")
    LICENSE_REFUSED = ("license_refused", "reject", "the policy does not allow the license")
    VERSION_REFUSED = ("version_refused", "reject", "the policy does not allow the TensorRT version")
    ARTIFACT_UNPUBLISHED = ("artifact_unpublished", "hold", "the run did not publish the artifact itself")
    CHECK_MISSING = ("check_missing", "hold", "a check of the artifact that the policy asks for was not made")
    ARTIFACT_WITHDRAWN = ("artifact_withdrawn", "reject", "the artifact was quarantined or removed after publishing")
    MANIFEST_MISSING = ("manifest_missing", "hold", "no bundle manifest for the digest")
    CANARY_MISSING = ("canary_missing", "hold", "no canary for the digest")
    ROLLBACK_DRILL_MISSING = ("rollback_drill_missing", "hold", "no executed rollback drill for the digest")
    APPROVAL_MISSING = ("approval_missing", "hold", "nobody approved the digest")
