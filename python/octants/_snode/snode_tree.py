"""Names of other modules, where programs for Quadrants import them from. Nothing is defined here."""

from .._fields.builder import SNodeTree

__all__ = ["SNodeTree"]
