"""Names of other modules, where programs for Quadrants import them from. Nothing is defined here."""

from . import CuptiMetric, get_predefined_cupti_metrics

__all__ = ["CuptiMetric", "get_predefined_cupti_metrics"]
