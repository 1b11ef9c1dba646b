"""Iterative solvers for operators that are kernels: no matrix is stored."""

from __future__ import annotations

from collections.abc import Iterable
from math import inf, isfinite, sqrt
from sys import float_info
from typing import Any

import numpy

from .._fields.axes import axes
from .._fields.builder import FieldsBuilder
from .._fields.making import field
from ..exceptions import OctantsRuntimeError, OctantsTypeError
from ..types import f32, f64
from ._products import add_scaled, dot, set_to_sum


class LinearOperator:
    """An operator that a kernel applies: ``matvec_kernel(x, Ax)`` sets the field ``Ax`` to the operator's value for the field ``x``."""

    def __init__(self, matvec_kernel):
        self._matvec = matvec_kernel

    def matvec(self, x, Ax) -> None:
        """Sets ``Ax``."""
        if x.shape != Ax.shape:
            raise OctantsRuntimeError(f"x has shape {x.shape}, and Ax {Ax.shape}")
        self._matvec(x, Ax)


class _Vectors:
    """Fields with the indices of ``b`` that last while a solver runs."""

    def __init__(self, what: str, b, x, names: str):
        if b.dtype != x.dtype:
            raise OctantsTypeError(f"{what} needs b and x of one dtype, not {b.dtype} and {x.dtype}")
        if b.dtype not in (f32, f64):
            raise OctantsTypeError(f"{what} takes fields of f32 and f64, not {b.dtype}")
        if b.shape != x.shape:
            raise OctantsRuntimeError(f"{what} needs b and x of one shape, not {b.shape} and {x.shape}")
        if not 1 <= len(b.shape) <= 3:
            raise OctantsRuntimeError(f"{what} takes fields of one to three axes, not {len(b.shape)}")
        begins = {tuple(part._origin()) if hasattr(part, "_origin") else (0,) * len(b.shape) for part in (b, x)}
        if len(begins) > 1:
            raise OctantsRuntimeError(
                f"{what} needs b and x whose indices begin alike, not at {' and '.join(map(str, sorted(begins)))}"
            )
        builder = FieldsBuilder()
        node = builder.dense(axes(*range(len(b.shape))), b.shape)
        self._fields = {name: field(b.dtype) for name in names.split()}
        node.place(*self._fields.values(), offset=begins.pop())
        self._tree = builder.finalize()

    def __enter__(self) -> Iterable[Any]:
        return self._fields.values()

    def __exit__(self, *_):
        self._tree.destroy()


def _tell(quiet: bool, text: str) -> None:
    if not quiet:
        print(f">>> {text}")


def _length(x, square: float) -> float:
    """The length of a vector, whose square says nothing if it overflows or vanishes."""
    if float_info.min / float_info.epsilon < square < inf:
        return sqrt(square)
    numbers = numpy.abs(x.to_numpy(), dtype=numpy.float64)
    largest = float(numbers.max(initial=0))
    if largest == 0 or not isfinite(largest):
        return largest
    return largest * float(numpy.linalg.norm((numbers / largest).ravel()))


def MatrixFreeCG(A, b, x, tol=1e-6, maxiter=5000, quiet=True) -> bool:
    """Solves ``A x = b`` by conjugate gradients, for an operator that is symmetric and positive definite; ``x`` is where it begins.

    Ends when the residual is shorter than ``tol``. Says whether that was within ``maxiter`` iterations.
    """
    with _Vectors("MatrixFreeCG", b, x, "r p Ap") as (r, p, product):
        A.matvec(x, product)
        set_to_sum(r, b, product, -1.0)
        p.copy_from(r)
        square = dot(r, r)
        residual = _length(r, square)
        _tell(quiet, f"Initial residual = {residual:e}")
        if residual < tol or residual == 0:
            return True
        for iteration in range(1, maxiter + 1):
            A.matvec(p, product)
            curvature = dot(p, product)
            # Also if the squares of such numbers are none.
            if curvature == 0 or square == 0 or not isfinite(square) or not isfinite(curvature):
                break
            step = square / curvature
            add_scaled(x, p, step)
            add_scaled(r, product, -step)
            before, square = square, dot(r, r)
            residual = _length(r, square)
            _tell(quiet, f"Iter = {iteration:4}, Residual = {residual:e}")
            if residual < tol or residual == 0:
                _tell(quiet, f"Conjugate gradients converged after {iteration} iterations")
                return True
            set_to_sum(p, r, p, square / before)
        _tell(quiet, f"Conjugate gradients did not converge: Residual = {residual:e}")
        return False


def MatrixFreeBICGSTAB(A, b, x, tol=1e-6, maxiter=5000, quiet=True) -> bool:
    """Solves ``A x = b`` by stabilised biconjugate gradients, for any operator that has an inverse; ``x`` is where it begins.

    Ends when the residual is shorter than ``tol``. Says whether that was within ``maxiter`` iterations.
    """
    with _Vectors("MatrixFreeBICGSTAB", b, x, "r shadow p Ap s As") as (r, shadow, p, product, s, stabiliser):
        A.matvec(x, product)
        set_to_sum(r, b, product, -1.0)
        shadow.copy_from(r)
        p.copy_from(r)
        residual = _length(r, dot(r, r))
        _tell(quiet, f"Initial residual = {residual:e}")
        if residual < tol or residual == 0:
            return True
        slope = dot(shadow, r)
        for iteration in range(1, maxiter + 1):
            A.matvec(p, product)
            against = dot(shadow, product)
            if against == 0:
                break
            step = slope / against
            set_to_sum(s, r, product, -step)
            A.matvec(s, stabiliser)
            length = dot(stabiliser, stabiliser)
            weight = dot(stabiliser, s) / length if length != 0 else 0.0
            add_scaled(x, p, step)
            add_scaled(x, s, weight)
            set_to_sum(r, s, stabiliser, -weight)
            residual = _length(r, dot(r, r))
            _tell(quiet, f"Iter = {iteration:4}, Residual = {residual:e}")
            if residual < tol or residual == 0:
                _tell(quiet, f"BICGSTAB converged after {iteration} iterations")
                return True
            before, slope = slope, dot(shadow, r)
            if weight == 0 or before == 0:
                break
            add_scaled(p, product, -weight)
            set_to_sum(p, r, p, (slope / before) * (step / weight))
        _tell(quiet, f"BICGSTAB did not converge: Residual = {residual:e}")
        return False
