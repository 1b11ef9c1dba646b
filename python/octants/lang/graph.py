"""Names of other modules, where programs for Quadrants import them from. Nothing is defined here."""

from ..graph import do_while, parallel, parallel_context

__all__ = ["do_while", "parallel", "parallel_context"]
