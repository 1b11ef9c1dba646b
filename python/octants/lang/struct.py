"""Names of other modules, where programs for Quadrants import them from. Nothing is defined here."""

from .._fields.struct import StructField
from .._matrix.struct import Struct, StructType, dataclass

__all__ = ["dataclass", "Struct", "StructField", "StructType"]
