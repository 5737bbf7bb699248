"""Errors of the contract: each says what is wrong, where, and what to do next."""


class EngineTrailError(Exception):
    """Base of every error that EngineTrail raises on purpose."""


class MalformedEventError(EngineTrailError):
    """A record is not an event of this contract: bad JSON, a missing attribute or a wrong type."""


class LogUnavailableError(EngineTrailError):
    """The event log did not store what was appended; nothing may be assumed acknowledged."""


class EventTooLargeError(EngineTrailError):
    """An event does not fit into one record of every log."""


class LogCorruptError(EngineTrailError):
    """The log folder itself cannot be used: no identity, or one that does not match."""
