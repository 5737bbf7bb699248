"""Our IErrorRecorder: the builder's errors as events, and still in the caller's log.

Setting a recorder diverts the errors from the logger (measured), so each is passed on to it, and to
the recorder that the caller had set, if any.
"""

import functools
from collections.abc import Callable
from types import ModuleType
from typing import Any, Final

from build_events.events import ErrorRecorded
from builder_agent.texts import cut

RECORDED: Final = 256  # errors of one build; more are counted and told at the end


class ErrorRecorder:
    """The recorder, without the base class that a TensorRT module gives.

    ``post`` takes the events, ``pass_on`` gets every error as (code, text) for the caller's log.
    """

    def __init__(self, post: Callable[[ErrorRecorded], None], pass_on: Callable[[Any, str], None]) -> None:
        self._post = post
        self._pass_on = pass_on
        self._errors: list[tuple[Any, str]] = []
        self.unlisted = 0

    @property
    def messages(self) -> list[str]:
        """The texts so far, in order, cut to size."""
        return [cut(text) for _, text in self._errors]

    def report_error(self, code: Any, description: str) -> bool:
        """Record an error. ``True`` lets the builder go on to report."""
        try:
            if len(self._errors) < RECORDED:
                self._errors.append((code, description))
                name = getattr(code, "name", str(code))
                self._post(ErrorRecorded(component="builder", code=name, message=cut(description)))
            else:
                self.unlisted += 1
            self._pass_on(code, description)
        except BaseException:  # noqa: BLE001 # the caller's logger failed; nothing may leave a callback
            self.unlisted += 1
        return True

    def num_errors(self) -> int:
        """Return how many errors are held."""
        return len(self._errors)

    def get_error_code(self, index: int) -> Any:
        """Return the code of an error."""
        return self._errors[index][0]

    def get_error_desc(self, index: int) -> str:
        """Return the text of an error."""
        return self._errors[index][1]

    def has_overflowed(self) -> bool:
        """Say whether errors were not held."""
        return self.unlisted > 0

    def clear(self) -> None:
        """Keep what was reported: the builder clears at its start, and the run's record must not shrink."""


@functools.cache
def recorder_class(trt_module: ModuleType) -> type[ErrorRecorder]:
    """Return the recorder as a subclass of this module's ``IErrorRecorder``."""
    base: Any = trt_module.IErrorRecorder

    class BuildErrorRecorder(ErrorRecorder, base):  # type: ignore[misc] # the base is known only at run time
        """Records one run's errors."""

        def __init__(self, *args: Any, **kwargs: Any) -> None:
            base.__init__(self)
            ErrorRecorder.__init__(self, *args, **kwargs)

    return BuildErrorRecorder
