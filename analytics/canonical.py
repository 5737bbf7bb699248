"""Canonical bytes (RFC 8785) and their digest, for values that JSON numbers cannot hold too. Pure."""

import hashlib
import math
from collections.abc import Mapping
from typing import Any

import rfc8785

_EXACT = 2**53 - 1  # the largest integer that a JSON number carries everywhere (RFC 8785, section 3.2.2.3)


def canonical_bytes(value: Any) -> bytes:
    """Return the canonical JSON of a value of dicts, lists, text, numbers, booleans and null.

    Integers beyond ±(2**53 - 1) and non-finite numbers are written as text, as events write them.
    """
    return rfc8785.dumps(_exact(value))


def sha256_of(value: Any) -> str:
    """Return the SHA-256 of a value's canonical bytes, as 64 lower-case hexadecimal digits."""
    return hashlib.sha256(canonical_bytes(value)).hexdigest()


def _exact(value: Any) -> Any:
    match value:
        case Mapping():
            return {str(key): _exact(item) for key, item in value.items()}
        case list() | tuple():
            return [_exact(item) for item in value]
        case bool():
            return value
        case int() if abs(value) > _EXACT:
            return str(value)
        case float() if not math.isfinite(value):
            return str(value)
        case _:
            return value
