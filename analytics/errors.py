"""Errors of judging: each says what is wrong, where, and what to do next."""

from build_events.errors import EngineTrailError


class PolicyError(EngineTrailError):
    """A policy file cannot be used: unreadable, no TOML, an unknown or a missing key, a wrong value."""


class UnknownRunError(EngineTrailError):
    """A run that was asked about is not in the store."""


class EvidenceError(EngineTrailError):
    """The store answered with something that this release cannot read as evidence."""
