"""The five gates, one file each: pure functions from a candidate to a finding."""

from collections.abc import Callable

from analytics.cbat.candidate import Candidate
from analytics.cbat.gates.bundle import bundle
from analytics.cbat.gates.environment import environment
from analytics.cbat.gates.parity import parity
from analytics.cbat.gates.release import release
from analytics.cbat.gates.source import source
from analytics.verdict import Finding

GATES: tuple[Callable[[Candidate], Finding], ...] = (source, environment, bundle, parity, release)
