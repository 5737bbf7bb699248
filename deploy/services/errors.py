"""What can go wrong with a service: each error says what, where, and what to do next."""

from build_events.errors import EngineTrailError


class ServiceError(EngineTrailError):
    """A service could not be started, stopped or reached."""


class UnknownServiceError(ServiceError):
    """No service of this name is known here."""


class MissingToolError(ServiceError):
    """A program that a service needs is not on this machine, or too old."""


class BuildFailedError(ServiceError):
    """A service could not be obtained from the package registries, or not be built."""


class PortTakenError(ServiceError):
    """Another program listens on a port that this folder keeps for a service."""
