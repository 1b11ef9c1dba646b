# type: ignore  (in the kernel language annotations are values)
"""Kernels over the vectors of sparse systems: products with a matrix, and what conjugate gradients need."""

from __future__ import annotations

from .._language import cast, static
from .._session import kernel
from ..types import NDArray, Template, f64


@kernel
def multiply(starts: NDArray, columns: NDArray, values: NDArray, x: NDArray, out: NDArray, dtype: Template):
    """``out = A x``, of a matrix by rows."""
    for row in range(out.shape[0]):
        total = cast(0, dtype)
        for entry in range(starts[row], starts[row + 1]):
            total += values[entry] * x[columns[entry]]
        out[row] = total


@kernel
def dot(x: NDArray, y: NDArray) -> f64:
    total = cast(0, f64)
    for i in range(x.shape[0]):
        total += cast(x[i], f64) * cast(y[i], f64)
    return total


@kernel
def add_scaled(x: NDArray, y: NDArray, factor: f64):
    """``x += factor y``."""
    for i in range(x.shape[0]):
        x[i] = x[i] + cast(factor, static(x.dtype)) * y[i]


@kernel
def scale_and_add(x: NDArray, factor: f64, y: NDArray):
    """``x = factor x + y``."""
    for i in range(x.shape[0]):
        x[i] = cast(factor, static(x.dtype)) * x[i] + y[i]


@kernel
def multiply_entries(x: NDArray, y: NDArray, out: NDArray):
    for i in range(x.shape[0]):
        out[i] = x[i] * y[i]
