"""Names of other modules, where programs for Quadrants import them from. Nothing is defined here."""

from .._promotion import data_type as cook_dtype
from ..types import is_integral, is_real, is_signed, to_numpy_type

__all__ = ["cook_dtype", "is_integral", "is_real", "is_signed", "to_numpy_type"]
