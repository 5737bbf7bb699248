"""What kafka-python says only in its log: why it could not connect. Knows the client by its loggers' names alone.

Its errors say "unable to bootstrap" whatever the reason: a wrong password, an untrusted certificate, nobody there.
"""

import logging
import time

from typing_extensions import override

_CONNECTING = logging.getLogger("kafka.net.manager")
# Message -> which of its arguments is the reason (kafka-python 3.0.12).
_REASONS = {
    "Connection failed: %s": 0,
    "Bootstrap connection to %s failed: %s (backoff %.2f secs)": 1,
}
_HUNG_UP = "socket disconnected"
_HANGS_UP_ON = "a broker hangs up on a user, password, mechanism or protocol that it does not take"
_TELLING_S = 30.0


class _Failures(logging.Handler):
    """Keeps the newest reason and its time."""

    text = ""
    at = float("-inf")  # CLOCK_MONOTONIC seconds

    @override
    def emit(self, record: logging.LogRecord) -> None:
        """Keep it, if it is one."""
        place = _REASONS.get(str(record.msg))
        if place is None or not isinstance(record.args, tuple):
            return
        now, text = time.monotonic(), str(record.args[place])
        # The client mostly loses a refusal that arrives with the end of the connection: the one it read is the reason.
        if _HUNG_UP not in text or now - self.at > _TELLING_S:
            self.text, self.at = text, now


_failures = _Failures()


def listen() -> None:
    """Hear why connections fail, and leave only fatal messages of the client in everybody's log.

    One outage made 333 warnings and errors (measured); what matters of them is in our own errors. Where
    somebody has set the level of the logger ``kafka``, all stays as they set it.
    """
    client = logging.getLogger("kafka")
    if client.level == logging.NOTSET:
        client.setLevel(logging.CRITICAL)
        # The reasons come to us and go no further.
        _CONNECTING.setLevel(logging.WARNING)
        _CONNECTING.propagate = False
    if _failures not in _CONNECTING.handlers:
        _CONNECTING.addHandler(_failures)


def failure_since(moment_s: float) -> str:
    """Return why the newest connection failed after ``moment_s`` of CLOCK_MONOTONIC; empty if none did."""
    if _failures.at < moment_s:
        return ""
    return f"{_failures.text}: {_HANGS_UP_ON}" if _HUNG_UP in _failures.text else _failures.text
