"""One run, from run.started to stream.closed: the core of both modes."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from build_events.clock import Clock
from build_events.events import CancelSource
from build_events.log import EventWriter
from builder_agent.cancellation import CancelRequest, CancelState
from builder_agent.delivery import Delivery
from builder_agent.settings import RunSettings


@dataclass(frozen=True, slots=True, kw_only=True)
class BuildResult:
    """How a build ended, as run.finished will say it."""

    run_id: str
    outcome: Literal["completed", "completed_despite_cancel", "cancelled", "failed"]
    artifact: Path | None  # the published engine
    sha256: str | None
    error_type: str | None
    error_message: str | None


class RunSession:
    """The run that ``observe`` and the supervised child share.

    Embedded: ``with session: ...``. The supervised child does the same with ``mode="supervised"``
    and requests cancellation through ``session.cancel_state``.
    """

    cancel_state: CancelState
    delivery: Delivery
    result: BuildResult | None

    def __init__(
        self,
        settings: RunSettings,
        *,
        writer: EventWriter,
        clock: Clock,
        boot_id: str,
        on_closed: Callable[[], None] = lambda: None,
    ) -> None:
        """``on_closed`` releases the log's stream (its lock) once stream.closed is durable."""

    def __enter__(self) -> "RunSession":
        """Take the output lock (raises OutputBusyError, OutputFolderError), then write run.started."""
        raise NotImplementedError

    def __exit__(self, *exc: object) -> None:
        """Record how the body ended, publish nothing more, close the stream; the body's exception propagates."""

    @property
    def monitor(self) -> Any:
        """The progress monitor for ``config.progress_monitor``."""
        raise NotImplementedError

    def build(
        self, builder: Any, network: Any, config: Any, *, inputs: Sequence[Path | str] = (), profiles: Sequence[Any] = ()
    ) -> BuildResult:
        """Build in a worker thread, record everything, publish the engine."""
        raise NotImplementedError

    def save(self, engine: Any) -> BuildResult:
        """Record the builder's return and publish ``engine``; ``None`` is a cancelled or failed build."""
        raise NotImplementedError

    def cancel(self, source: CancelSource = "api", *, reason: str | None = None) -> CancelRequest:
        """Request cancellation; callable from anywhere, signal handlers included."""
        raise NotImplementedError
