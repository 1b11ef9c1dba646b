"""Names of other modules, where programs for Quadrants import them from. Nothing is defined here."""

from . import is_integral, is_real, is_signed, is_tensor

__all__ = ["is_integral", "is_real", "is_signed", "is_tensor"]
