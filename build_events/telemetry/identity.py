"""What says which run, and which process, a span is about. Pure."""

from build_events.envelope import StreamHeader
from build_events.events import RunStarted
from build_events.telemetry import names
from build_events.telemetry.span import Attribute, Attributes

SERVICE = "enginetrail-build"


def identity(header: StreamHeader, event: RunStarted) -> Attributes:
    """Return the attributes that name a run, for its root span and its anchor."""
    attributes: dict[str, Attribute] = {
        names.PIPELINE_NAME: event.route,
        names.PIPELINE_ACTION: "BUILD",
        names.PIPELINE_RUN_ID: header.subject,
        names.WORKER_NAME: event.host,
        names.BUILD_MODE: event.mode,
    }
    if event.retry_of is not None:
        attributes[names.RETRY_OF] = event.retry_of
    if event.retry_policy is not None:
        attributes[names.RETRY_POLICY] = event.retry_policy
    return attributes


def resource(header: StreamHeader, event: RunStarted) -> Attributes:
    """Return the building process as a resource: the same whoever exports a span of its run."""
    return {
        names.SERVICE_NAME: SERVICE,
        names.SERVICE_VERSION: event.agent_version,
        names.SERVICE_INSTANCE_ID: header.stream_id,
        names.HOST_ID: header.boot_id,
        names.HOST_NAME: event.host,
        names.PROCESS_PID: event.pid,
    }
