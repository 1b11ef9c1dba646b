"""Names of other modules, where programs for Quadrants import them from. Nothing is defined here."""

from .._ndarrays import MatrixNdarray, NdarrayTypeMetadata, ScalarNdarray, VectorNdarray
from .._octants import Ndarray

__all__ = ["NdarrayTypeMetadata", "MatrixNdarray", "Ndarray", "ScalarNdarray", "VectorNdarray"]
