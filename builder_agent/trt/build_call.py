"""The call into the builder: our monitor and recorder on the caller's objects, and off again."""

import logging
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import ModuleType
from typing import Any, Final

from build_events.events import ErrorRecorded
from builder_agent.recording.monitor import Callbacks
from builder_agent.trt.errors_recorder import ErrorRecorder, recorder_class

# A network that nobody named is called after a counter of the process, and the name stands in the
# engine: eight builds in one process gave eight digests (measured). With one fixed name they are equal.
NETWORK_NAME: Final = "network"
_UNNAMED: Final = re.compile(r"Unnamed Network \d+")

_log = logging.getLogger(__name__)


@contextmanager
def watched(
    trt: ModuleType,
    builder: Any,
    network: Any,
    config: Any,
    *,
    monitor: Callbacks,
    post: Callable[[ErrorRecorded], None],
) -> Iterator[ErrorRecorder]:
    """Set monitor and error recorder while the body builds; the caller's own are put back after it.

    Errors go on to the caller's recorder if one was set, else to the builder's logger, as they would
    have without us. A network without a name of its own gets a fixed one.
    """
    monitor_before, recorder_before = config.progress_monitor, builder.error_recorder
    if monitor_before is not None and monitor_before is not monitor:
        _log.warning("config.progress_monitor is replaced during run.build; it is put back afterwards")

    def pass_on(code: Any, text: str) -> None:
        if recorder_before is not None:
            recorder_before.report_error(code, text)
        else:
            builder.logger.log(trt.ILogger.Severity.ERROR, text)

    recorder = recorder_class(trt)(post, pass_on)
    if _UNNAMED.fullmatch(network.name):
        network.name = NETWORK_NAME
    builder.error_recorder = recorder
    config.progress_monitor = monitor
    try:
        yield recorder
    finally:
        config.progress_monitor = monitor_before
        builder.error_recorder = recorder_before
