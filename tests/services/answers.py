"""What a service answers over HTTP, waited for."""

import json
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from typing import Any, TypeVar

Answer = TypeVar("Answer")

PATIENCE_S = 20.0  # on a busy machine; what is waited for here takes one or two seconds


def get(url: str) -> Any:
    """Return the JSON that a URL answers with; None while it answers with an error."""
    try:
        with urllib.request.urlopen(url, timeout=5) as answer:  # noqa: S310 # an address of our own
            return json.load(answer)
    except urllib.error.HTTPError as error:
        error.close()
        return None


def answer_from(url: str, key: str) -> list[dict[str, Any]]:
    """Return a list in the JSON of a URL as soon as it is not empty; empty when that takes too long."""

    def found() -> list[dict[str, Any]]:
        part: Any = get(url)
        for name in key.split("."):
            part = (part or {}).get(name)
        return list(part or ())

    return eventually(found, bool)


def eventually(ask: Callable[[], Answer], enough: Callable[[Answer], bool], patience_s: float = PATIENCE_S) -> Answer:
    """Return the first answer that is enough; the last one when that takes too long."""
    deadline = time.monotonic() + patience_s
    while not enough(answer := ask()) and time.monotonic() < deadline:
        time.sleep(0.05)
    return answer
