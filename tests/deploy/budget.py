"""How long a build takes to end once it was told to, from the settings that it really has."""

from collections.abc import Sequence

from build_events.clock import NS_PER_S
from builder_agent.settings import DeliverySettings
from builder_agent.supervised.supervise import SupervisorSettings
from builder_agent.telemetry.settings import EXIT_S
from enginetrail.log_choice import SHORT_DRAIN_S

# Sweep, recording and exit on a busy machine: 250 ms on a quiet one.
_ROOM_S = 5.0


def cancel_budget_s(arguments: Sequence[str]) -> float:
    """Return seconds from SIGTERM to the exit of ``enginetrail build`` with these arguments, at the worst.

    Ladder, then the end of the streams, what exporters and the terminal may take, and the drain.
    """
    supervisor = SupervisorSettings()
    graces = supervisor.graces
    ns = (
        graces.service_terminate_ns
        + graces.kill_ns
        + DeliverySettings().close_timeout_ns
        + 2 * supervisor.feed_close_ns  # the child's output, then the events
    )
    return ns / NS_PER_S + EXIT_S + drain_s(arguments) + _ROOM_S


def drain_s(arguments: Sequence[str]) -> float:
    """Return what ``--drain`` says, or its default."""
    return float(option(arguments, "--drain") or SHORT_DRAIN_S)


def option(arguments: Sequence[str], name: str) -> str | None:
    """Return the value of an option, written with a space or with ``=``; ``None`` where it is not given."""
    for index, argument in enumerate(arguments):
        if argument == name:
            return arguments[index + 1]
        if argument.startswith(f"{name}="):
            return argument.partition("=")[2]
    return None


def seconds(text: str | int) -> float:
    """Return a duration as Compose and systemd write it (``45s``, ``2m``, ``120``)."""
    number = str(text)
    units = {"s": 1, "m": 60}
    return float(number[:-1]) * units[number[-1]] if number[-1] in units else float(number)
