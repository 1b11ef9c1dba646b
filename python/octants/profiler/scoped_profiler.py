"""Names of other modules, where programs for Quadrants import them from. Nothing is defined here."""

from . import clear_scoped_profiler_info, print_scoped_profiler_info

__all__ = ["clear_scoped_profiler_info", "print_scoped_profiler_info"]
