"""Names of other modules, where programs for Quadrants import them from. Nothing is defined here."""

from . import print_memory_profiler_info

__all__ = ["print_memory_profiler_info"]
