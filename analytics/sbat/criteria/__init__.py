"""The eight criteria, one file each: pure functions from a trial to a finding."""

from collections.abc import Callable

from analytics.sbat.criteria.cache_safe import cache_safe
from analytics.sbat.criteria.clean import clean
from analytics.sbat.criteria.explainable import explainable
from analytics.sbat.criteria.interruptible import interruptible
from analytics.sbat.criteria.measured import measured
from analytics.sbat.criteria.observable import observable
from analytics.sbat.criteria.released import released
from analytics.sbat.criteria.retried_validated import retried_validated
from analytics.sbat.trial import Trial
from analytics.verdict import Finding

CRITERIA: tuple[Callable[[Trial], Finding], ...] = (
    observable,
    explainable,
    interruptible,
    measured,
    clean,
    cache_safe,
    released,
    retried_validated,
)
