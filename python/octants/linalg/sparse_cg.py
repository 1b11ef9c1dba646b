"""Conjugate gradients for sparse matrices."""

from __future__ import annotations

import math
from typing import Any

import numpy

from .._arrays import ndarray
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
        """The solution, and whether it is one.

        What is solved is the system divided by powers of two, ``(A / a) y = b / s`` with ``x = y s / a``, so that no square of a number overflows or vanishes.
        """
        matrix = self.A.matrix.values
        a = _power_of_two(matrix)
        s = _power_of_two(self._right)
        if s == 0:
            s = a * _power_of_two(self._start)
        if s == 0:
            return self._right.copy(), True
        # No entries: only zeros could be solved for.
        is_finite = numpy.isfinite(s) and numpy.isfinite(a) and numpy.isfinite(self._start).all()
        if a == 0 or not is_finite:
            return self._start.copy(), False
        with numpy.errstate(over="ignore", under="ignore", invalid="ignore"):
            scaled = self.A if a == 1 else self.A._made(self.A.matrix.with_values(_scaled(matrix, 1, a)))
            start = _scaled(self._start, a, s)
            found, done = _iterate(scaled, _scaled(self._right, 1, s), start, self.max_iter, self.atol)
            solution = _scaled(found, s, a)
            # Of numbers that are too small for the type little or nothing is left.
            lost = numpy.linalg.norm(_scaled(solution, a, s) - found)
            is_kept = numpy.isfinite(solution).all() and lost <= self.atol * numpy.linalg.norm(found)
        return solution, done and bool(is_kept)


def _power_of_two(numbers: numpy.ndarray) -> float:
    """A power of two near the largest of the numbers, for dividing by; 0 if all are 0, and no number if one is none."""
    largest = float(numpy.abs(numbers).max(initial=0))
    if largest == 0 or not math.isfinite(largest):
        return largest
    exponent = math.frexp(largest)[1]
    # Exact, and its reciprocal as well.
    return math.ldexp(1.0, max(-1022, min(1022, exponent)))


def _scaled(numbers: numpy.ndarray, up: float, down: float) -> numpy.ndarray:
    """Numbers times ``up / down``, in double precision: powers of two may be too large for single precision."""
    return (numbers.astype(numpy.float64) / down * up).astype(numbers.dtype)


def _iterate(A: SparseMatrix, right: numpy.ndarray, start: numpy.ndarray, max_iter: int, atol: float):
    """Conjugate gradients, of numbers near 1. Says whether the residual of what they found is as small as it has to be, or as rounding lets it be."""
    matrix, dtype = A._rows_on_device(), A.dtype
    x, b, residual = (array_of(data, dtype) for data in (start, right, right))
    zeros: list[Any] = [ndarray(dtype, A.n) for _ in range(3)]
    product, scaled, direction = zeros
    multiply(*matrix, x, product, dtype)
    add_scaled(residual, product, -1.0)
    limit = atol * atol * dot(b, b)
    inverse = array_of(_inverse_diagonal(A), dtype)
    multiply_entries(inverse, residual, scaled)
    add_scaled(direction, scaled, 1.0)
    slope = dot(residual, scaled)
    done = dot(residual, residual) <= limit
    for _ in range(0 if done else max_iter):
        multiply(*matrix, direction, product, dtype)
        curvature = dot(direction, product)
        # Of a definite matrix neither is zero before the end.
        if curvature == 0 or slope == 0:
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
    # The residual that was carried along is not that of x where steps were long, as they are if the matrix is not definite.
    multiply(*matrix, x, product, dtype)
    set_to_sum(residual, b, product, -1.0)
    found = x.to_numpy()
    return found, bool(done and math.sqrt(dot(residual, residual)) <= math.sqrt(limit) + _rounding(A, found))


def _rounding(A: SparseMatrix, x: numpy.ndarray) -> float:
    """A bound of what rounding leaves of a residual, in the euclidean norm."""
    rows, _, values = A.matrix.triplets()
    sums = numpy.bincount(rows, weights=numpy.abs(values, dtype=numpy.float64), minlength=A.n)
    length = float(numpy.linalg.norm(x.astype(numpy.float64)))
    # Ten roundings in each row: chosen, not measured.
    return 10 * float(numpy.finfo(x.dtype).eps) * float(sums.max(initial=0)) * length


def _inverse_diagonal(A: SparseMatrix) -> numpy.ndarray:
    rows, columns, values = A.matrix.triplets()
    diagonal = numpy.zeros(A.n, values.dtype)
    on_it = rows == columns
    diagonal[rows[on_it]] = values[on_it]
    # Where there is nothing to divide by, nothing is preconditioned.
    return numpy.divide(1, diagonal, out=numpy.ones_like(diagonal), where=diagonal != 0)
