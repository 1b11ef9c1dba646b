"""Names of other modules, where programs for Quadrants import them from. Nothing is defined here."""

from .._arrays.torch_tensors import has_pytorch
from .._arrays.torch_tensors import torch_type as to_pytorch_type
from .._matrix.promotion import data_type as cook_dtype
from .._matrix.promotion import data_type as to_quadrants_type
from .._matrix.promotion import data_type as to_taichi_type
from ..types import is_integral, is_real, is_signed, to_numpy_type

__all__ = [
    "cook_dtype", "has_pytorch", "is_integral", "is_real", "is_signed", "to_numpy_type", "to_pytorch_type", "to_quadrants_type", "to_taichi_type",
]  # fmt: skip
