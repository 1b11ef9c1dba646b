"""Names of other modules, where programs for Quadrants import them from. Nothing is defined here."""

from . import PrefixSumExecutor, parallel_sort

__all__ = ["PrefixSumExecutor", "parallel_sort"]
