"""Names of other modules, where programs for Quadrants import them from. Nothing is defined here."""

from . import BufferViewType

__all__ = ["BufferViewType"]
