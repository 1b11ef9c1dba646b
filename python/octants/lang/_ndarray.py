"""Names of other modules, where programs for Quadrants import them from. Nothing is defined here."""

from .._arrays import MatrixNdarray, Ndarray, NdarrayTypeMetadata, ScalarNdarray, VectorNdarray

__all__ = ["NdarrayTypeMetadata", "MatrixNdarray", "Ndarray", "ScalarNdarray", "VectorNdarray"]
