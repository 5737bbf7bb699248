"""SBAT, the stuck-build acceptance test: eight criteria over runs and their retry chains."""

from analytics.sbat.judge import judge
from analytics.sbat.report import SbatReport

__all__ = ["SbatReport", "judge"]
