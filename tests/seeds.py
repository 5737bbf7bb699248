"""The seeds of the repeated fault tests: one base for the whole session, which the header names.

``ENGINETRAIL_SEED=BASE`` repeats a session's draws; with ``ENGINETRAIL_REPEAT=1`` and the seed that
stands in a test's id, it repeats that one case alone.
"""

import os
import random

REPEAT = int(os.environ.get("ENGINETRAIL_REPEAT", "3"))
BASE = int(os.environ.get("ENGINETRAIL_SEED") or random.SystemRandom().randrange(10**6))


def seeds() -> list[int]:
    """Return one seed for each repetition: the base and those after it, the same for every test."""
    return [BASE + number for number in range(REPEAT)]
