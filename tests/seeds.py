"""The seeds of the repeated fault tests: one base for the whole session, which the header names.

``ENGINETRAIL_SEED=BASE`` repeats a session's draws; with ``ENGINETRAIL_REPEAT=1`` and the seed that
stands in a test's id, it repeats that one case alone.
"""

import os
import random

REPEAT = int(os.environ.get("ENGINETRAIL_REPEAT", "3"))
BASE = int(os.environ.get("ENGINETRAIL_SEED") or random.SystemRandom().randrange(10**6))
os.environ["ENGINETRAIL_SEED"] = str(BASE)  # the workers of pytest-xdist must find the tests by the same ids


def moments(whole_s: float) -> list[tuple[int, float]]:
    """Return for each seed a moment of something that takes ``whole_s`` seconds when nobody disturbs it.

    Each lies in its own part of the duration, so that the early, the middle and the late are all met.
    """
    return [(seed, whole_s * (number + random.Random(seed).random()) / REPEAT) for number, seed in enumerate(seeds())]


def seeds() -> list[int]:
    """Return one seed for each repetition: the base and those after it, the same for every test."""
    return [BASE + number for number in range(REPEAT)]
