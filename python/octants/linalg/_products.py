# type: ignore  (in the kernel language annotations are values)
"""Kernels over the vectors of linear systems: products with a matrix, and what conjugate gradients need, of arrays and fields of any rank."""

from __future__ import annotations

from .._language import cast, grouped, static
from .._session import kernel
from ..types import NDArray, Template, Tensor, f64


@kernel
def multiply(starts: NDArray, columns: NDArray, values: NDArray, x: NDArray, out: NDArray, dtype: Template):
    """``out = A x``, of a matrix by rows."""
    for row in range(out.shape[0]):
        total = cast(0, dtype)
        for entry in range(starts[row], starts[row + 1]):
            total += values[entry] * x[columns[entry]]
        out[row] = total


@kernel
def dot(x: Tensor, y: Tensor) -> f64:
    total = cast(0, f64)
    for at in grouped(x):
        total += cast(x[at], f64) * cast(y[at], f64)
    return total


@kernel
def add_scaled(x: Tensor, y: Tensor, factor: f64):
    """``x += factor y``."""
    for at in grouped(x):
        x[at] = x[at] + cast(factor, static(x.dtype)) * y[at]


@kernel
def set_to_sum(out: Tensor, x: Tensor, y: Tensor, factor: f64):
    """``out = x + factor y``."""
    for at in grouped(out):
        out[at] = x[at] + cast(factor, static(x.dtype)) * y[at]


@kernel
def multiply_entries(x: NDArray, y: NDArray, out: NDArray):
    for i in range(x.shape[0]):
        out[i] = x[i] * y[i]
