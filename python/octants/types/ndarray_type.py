"""The annotation of arrays, under the name that programs for Quadrants import it by."""

from .._arrays import NdarrayTypeMetadata
from .._fields.making import Layout
from . import NDArray, NdarrayType, matrix, ndarray, vector

__all__ = ["Layout", "ndarray", "matrix", "vector", "NDArray", "NdarrayType", "NdarrayTypeMetadata"]
