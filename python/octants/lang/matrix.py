"""Names of other modules, where programs for Quadrants import them from. Nothing is defined here."""

from .._arrays import MatrixNdarray, VectorNdarray
from .._fields.matrix import MatrixField
from .._matrix import Matrix, Vector
from .._matrix.types import MatrixType, VectorType

__all__ = ["Matrix", "MatrixField", "MatrixNdarray", "MatrixType", "Vector", "VectorNdarray", "VectorType"]
