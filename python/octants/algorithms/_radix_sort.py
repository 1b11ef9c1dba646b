"""Names of other modules, where programs for Quadrants import them from. Nothing is defined here."""

from . import sort, sort_scratch_slots

__all__ = ["sort", "sort_scratch_slots"]
