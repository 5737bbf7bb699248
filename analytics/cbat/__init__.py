"""CBAT, the checkpoint-to-bundle acceptance test: five gates over one digest of a route."""

from analytics.cbat.evaluate import evaluate
from analytics.cbat.report import CbatReport

__all__ = ["CbatReport", "evaluate"]
