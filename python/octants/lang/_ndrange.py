"""Names of other modules, where programs for Quadrants import them from. Nothing is defined here."""

from .._language import ndrange

__all__ = ["ndrange"]
