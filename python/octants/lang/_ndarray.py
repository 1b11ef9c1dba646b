"""Names of other modules, where programs for Quadrants import them from. Nothing is defined here."""

from .._ndarrays import MatrixNdarray, ScalarNdarray, VectorNdarray
from .._octants import Ndarray

__all__ = ["MatrixNdarray", "Ndarray", "ScalarNdarray", "VectorNdarray"]
