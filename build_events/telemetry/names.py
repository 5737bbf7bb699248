"""Every attribute, span and metric name that leaves this program, pinned to one version of the conventions.

Standard names are those of the semantic conventions of ``SCHEMA_URL``, written out because the contract
imports no OpenTelemetry; a test compares them with the installed package. The CI/CD names are release
candidates, the hardware, process and host names in development: only this module knows them.
``trt.*`` and ``enginetrail.*`` are ours. ``docs/telemetry.md`` tables them all.
"""

from typing import Final, Literal

SCHEMA_URL: Final = "https://opentelemetry.io/schemas/1.44.0"
SCOPE: Final = "enginetrail"

# Resource
SERVICE_NAME: Final = "service.name"
SERVICE_VERSION: Final = "service.version"
SERVICE_INSTANCE_ID: Final = "service.instance.id"
HOST_ID: Final = "host.id"  # the boot id: the same in all processes of a host, and written in every event
HOST_NAME: Final = "host.name"
PROCESS_PID: Final = "process.pid"

# CI/CD
PIPELINE_NAME: Final = "cicd.pipeline.name"  # the route
PIPELINE_ACTION: Final = "cicd.pipeline.action.name"
PIPELINE_RUN_ID: Final = "cicd.pipeline.run.id"
PIPELINE_RUN_STATE: Final = "cicd.pipeline.run.state"
PIPELINE_RESULT: Final = "cicd.pipeline.result"
TASK_NAME: Final = "cicd.pipeline.task.name"  # the phase's name
TASK_TYPE: Final = "cicd.pipeline.task.type"
TASK_RUN_ID: Final = "cicd.pipeline.task.run.id"
TASK_RUN_URL: Final = "cicd.pipeline.task.run.url.full"
TASK_RUN_RESULT: Final = "cicd.pipeline.task.run.result"
WORKER_NAME: Final = "cicd.worker.name"

# Errors, hardware
ERROR_TYPE: Final = "error.type"
HW_NAME: Final = "hw.name"
HW_TYPE: Final = "hw.type"
HW_DRIVER_VERSION: Final = "hw.driver_version"

# Ours
SPAN_KIND: Final = "trt.span.kind"
VERSION: Final = "trt.version"
BUILD_MODE: Final = "trt.build.mode"
BUILD_OUTCOME: Final = "trt.build.outcome"  # docs/contract.md section 3: finer than cicd.pipeline.result
BUILD_TARGETS: Final = "trt.build.targets"
BUILD_CONFIG_HASH: Final = "trt.build.config_hash"
BUILD_COMPLETE: Final = "trt.build.complete"
RETRY_OF: Final = "trt.retry.of"
RETRY_POLICY: Final = "trt.retry.policy"
LINK_KIND: Final = "trt.link.kind"
PHASE_INSTANCE_ID: Final = "trt.phase.instance_id"
PHASE_PARENT_INSTANCE_ID: Final = "trt.phase.parent_instance_id"
PHASE_SPAN_ID: Final = "trt.phase.span_id"  # the id that the phase's own span will have
PHASE_STATUS: Final = "trt.phase.status"
PHASE_STEPS_TOTAL: Final = "trt.phase.steps.total"
PHASE_STEPS_COMPLETED: Final = "trt.phase.steps.completed"
PHASE_LONGEST_GAP: Final = "trt.phase.longest_gap_s"
LAST_CALLBACK_AGE: Final = "trt.last_callback.age_s"
RSS: Final = "trt.process.rss_bytes"
CANCEL_SOURCE: Final = "trt.cancel.source"
CANCEL_REASON: Final = "trt.cancel.reason"
CANCEL_MODE: Final = "trt.cancel.mode"
ENGINE_SHA256: Final = "trt.engine.sha256"
ENGINE_SIZE: Final = "trt.engine.size_bytes"
TIMING_CACHE_MODE: Final = "trt.timing_cache.mode"
TIMING_CACHE_REASON: Final = "trt.timing_cache.reason"

# Labels of metrics
CANCEL_LEG: Final = "trt.cancel.leg"
CALLBACK_STATISTIC: Final = "trt.callback.statistic"
CLEANUP_STATUS: Final = "trt.cleanup.status"
CLEANUP_BY: Final = "trt.cleanup.by"
DROPPED_KIND: Final = "enginetrail.dropped.kind"
VERDICT_KIND: Final = "enginetrail.verdict.kind"
VERDICT: Final = "enginetrail.verdict.value"

SpanKind = Literal["anchor", "marker", "slice", "final"]
Result = Literal["success", "failure", "error", "timeout", "cancellation"]  # cicd.pipeline.result; we skip nothing
RunStage = Literal["pending", "executing", "finalizing"]  # cicd.pipeline.run.state
