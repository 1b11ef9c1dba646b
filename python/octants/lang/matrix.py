"""Names of other modules, where programs for Quadrants import them from. Nothing is defined here."""

from .._fields.matrix import MatrixField
from .._matrix import Matrix, Vector
from .._matrix.types import MatrixType, VectorType
from .._ndarrays import MatrixNdarray, VectorNdarray

__all__ = ["Matrix", "MatrixField", "MatrixNdarray", "MatrixType", "Vector", "VectorNdarray", "VectorType"]
