"""Enumerations, under the name that programs for Quadrants import them by."""

from .._fields.making import Layout

__all__ = ["Layout"]
