"""Conjugate gradients for sparse matrices."""

from __future__ import annotations

from typing import Any

import numpy

from .._ndarrays import ndarray
from ..exceptions import OctantsAssertionError, OctantsRuntimeError
from ._products import add_scaled, dot, multiply, multiply_entries, set_to_sum
from ._vectors import array_of, on_host
from .sparse_matrix import SparseMatrix


class SparseCG:
    """Solves ``A x = b`` for a symmetric, positive definite matrix by conjugate gradients, preconditioned by its diagonal.

    It ends when the residual is at most ``atol`` times as long as ``b``, or after ``max_iter`` iterations.
    """

    def __init__(self, A, b, x0=None, max_iter: int = 50, atol: float = 1e-6):
        if not isinstance(A, SparseMatrix):
            raise OctantsRuntimeError(f"SparseCG takes a SparseMatrix, not {type(A).__name__}")
        if A.n != A.m:
            raise OctantsAssertionError(f"a system has a square matrix, not one of shape {A.shape}")
        self.A = A
        self.max_iter = max_iter
        self.atol = atol
        self._right = on_host(b, A.n, A.dtype, "b")
        self._start = numpy.zeros_like(self._right) if x0 is None else on_host(x0, A.n, A.dtype, "x0")

    def solve(self) -> tuple[numpy.ndarray, bool]:
        """The solution, and whether it is one."""
        if self.A.n == 0:
            return self._right.copy(), True
        matrix = self.A._rows_on_device()
        dtype = self.A.dtype
        x, right, residual = (array_of(data, dtype) for data in (self._start, self._right, self._right))
        zeros: list[Any] = [ndarray(dtype, self.A.n) for _ in range(3)]
        product, scaled, direction = zeros
        multiply(*matrix, x, product, dtype)
        add_scaled(residual, product, -1.0)
        limit = self.atol * self.atol * dot(right, right)
        inverse = array_of(self._inverse_diagonal(), dtype)
        multiply_entries(inverse, residual, scaled)
        add_scaled(direction, scaled, 1.0)
        slope = dot(residual, scaled)
        done = dot(residual, residual) <= limit
        for _ in range(0 if done else self.max_iter):
            multiply(*matrix, direction, product, dtype)
            curvature = dot(direction, product)
            if curvature == 0:
                break
            step = slope / curvature
            add_scaled(x, direction, step)
            add_scaled(residual, product, -step)
            done = dot(residual, residual) <= limit
            if done:
                break
            multiply_entries(inverse, residual, scaled)
            before, slope = slope, dot(residual, scaled)
            set_to_sum(direction, scaled, direction, slope / before)
        return x.to_numpy(), done

    def _inverse_diagonal(self) -> numpy.ndarray:
        rows, columns, values = self.A.matrix.triplets()
        diagonal = numpy.zeros_like(self._right)
        on_it = rows == columns
        diagonal[rows[on_it]] = values[on_it]
        # Where there is nothing to divide by, nothing is preconditioned.
        return numpy.divide(1, diagonal, out=numpy.ones_like(diagonal), where=diagonal != 0)
