"""The annotation of arrays, under the name that programs for Quadrants import it by."""

from .._ndarrays import NdarrayTypeMetadata
from . import NDArray, NdarrayType

__all__ = ["NDArray", "NdarrayType", "NdarrayTypeMetadata"]
