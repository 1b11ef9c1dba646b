"""Names of other modules, where programs for Quadrants import them from. Nothing is defined here."""

from ._tensor import MatrixTensor, Tensor, VectorTensor, wrap

__all__ = ["MatrixTensor", "Tensor", "VectorTensor", "wrap"]
