# type: ignore  (in the kernel language annotations are values)
"""Iterative solvers for operators that are kernels: no matrix is stored."""

from __future__ import annotations

from math import sqrt

from .._fields.axes import axes
from .._fields.builder import FieldsBuilder
from .._fields.making import field
from .._language import cast, grouped, static
from .._session import kernel
from ..exceptions import OctantsRuntimeError, OctantsTypeError
from ..types import Template, f32, f64


class LinearOperator:
    """An operator that a kernel applies: ``matvec_kernel(x, Ax)`` sets the field ``Ax`` to the operator's value for the field ``x``."""

    def __init__(self, matvec_kernel):
        self._matvec = matvec_kernel

    def matvec(self, x, Ax) -> None:
        """Sets ``Ax``."""
        if x.shape != Ax.shape:
            raise OctantsRuntimeError(f"x has shape {x.shape}, and Ax {Ax.shape}")
        self._matvec(x, Ax)


@kernel
def _copy(source: Template, target: Template):
    for at in grouped(source):
        target[at] = source[at]


@kernel
def _add_scaled(x: Template, y: Template, factor: f64):
    """``x += factor y``."""
    for at in grouped(x):
        x[at] = x[at] + cast(factor, static(x.dtype)) * y[at]


@kernel
def _set_to_sum(out: Template, x: Template, y: Template, factor: f64):
    """``out = x + factor y``."""
    for at in grouped(out):
        out[at] = x[at] + cast(factor, static(x.dtype)) * y[at]


@kernel
def _dot(x: Template, y: Template) -> f64:
    total = cast(0, f64)
    for at in grouped(x):
        total += cast(x[at], f64) * cast(y[at], f64)
    return total


class _Vectors:
    """Fields like ``b`` that last while a solver runs."""

    def __init__(self, what: str, b, x, names: str):
        if b.dtype != x.dtype:
            raise OctantsTypeError(f"{what} needs b and x of one dtype, not {b.dtype} and {x.dtype}")
        if b.dtype not in (f32, f64):
            raise OctantsTypeError(f"{what} takes fields of f32 and f64, not {b.dtype}")
        if b.shape != x.shape:
            raise OctantsRuntimeError(f"{what} needs b and x of one shape, not {b.shape} and {x.shape}")
        if not 1 <= len(b.shape) <= 3:
            raise OctantsRuntimeError(f"{what} takes fields of one to three axes, not {len(b.shape)}")
        builder = FieldsBuilder()
        node = builder.dense(axes(*range(len(b.shape))), b.shape)
        self._fields = {name: field(b.dtype) for name in names.split()}
        node.place(*self._fields.values())
        self._tree = builder.finalize()

    def __enter__(self):
        return self._fields.values()

    def __exit__(self, *_):
        self._tree.destroy()


def _tell(quiet: bool, text: str) -> None:
    if not quiet:
        print(f">>> {text}")


def MatrixFreeCG(A, b, x, tol=1e-6, maxiter=5000, quiet=True) -> bool:
    """Solves ``A x = b`` by conjugate gradients, for an operator that is symmetric and positive definite; ``x`` is where it begins.

    Ends when the residual is shorter than ``tol``. Says whether that was within ``maxiter`` iterations.
    """
    with _Vectors("MatrixFreeCG", b, x, "r p Ap") as (r, p, product):
        A.matvec(x, product)
        _set_to_sum(r, b, product, -1.0)
        _copy(r, p)
        square = _dot(r, r)
        _tell(quiet, f"Initial residual = {sqrt(square):e}")
        if sqrt(square) < tol:
            return True
        for iteration in range(1, maxiter + 1):
            A.matvec(p, product)
            curvature = _dot(p, product)
            if curvature == 0:
                break
            step = square / curvature
            _add_scaled(x, p, step)
            _add_scaled(r, product, -step)
            before, square = square, _dot(r, r)
            _tell(quiet, f"Iter = {iteration:4}, Residual = {sqrt(square):e}")
            if sqrt(square) < tol:
                _tell(quiet, f"Conjugate gradients converged after {iteration} iterations")
                return True
            _set_to_sum(p, r, p, square / before)
        _tell(quiet, f"Conjugate gradients did not converge: Residual = {sqrt(square):e}")
        return False


def MatrixFreeBICGSTAB(A, b, x, tol=1e-6, maxiter=5000, quiet=True) -> bool:
    """Solves ``A x = b`` by stabilised biconjugate gradients, for any operator that has an inverse; ``x`` is where it begins.

    Ends when the residual is shorter than ``tol``. Says whether that was within ``maxiter`` iterations.
    """
    with _Vectors("MatrixFreeBICGSTAB", b, x, "r shadow p Ap s As") as (r, shadow, p, product, s, stabiliser):
        A.matvec(x, product)
        _set_to_sum(r, b, product, -1.0)
        _copy(r, shadow)
        _copy(r, p)
        residual = sqrt(_dot(r, r))
        _tell(quiet, f"Initial residual = {residual:e}")
        if residual < tol:
            return True
        slope = _dot(shadow, r)
        for iteration in range(1, maxiter + 1):
            A.matvec(p, product)
            against = _dot(shadow, product)
            if against == 0:
                break
            step = slope / against
            _set_to_sum(s, r, product, -step)
            A.matvec(s, stabiliser)
            length = _dot(stabiliser, stabiliser)
            weight = _dot(stabiliser, s) / length if length != 0 else 0.0
            _add_scaled(x, p, step)
            _add_scaled(x, s, weight)
            _set_to_sum(r, s, stabiliser, -weight)
            residual = sqrt(_dot(r, r))
            _tell(quiet, f"Iter = {iteration:4}, Residual = {residual:e}")
            if residual < tol:
                _tell(quiet, f"BICGSTAB converged after {iteration} iterations")
                return True
            before, slope = slope, _dot(shadow, r)
            if weight == 0 or before == 0:
                break
            _add_scaled(p, product, -weight)
            _set_to_sum(p, r, p, (slope / before) * (step / weight))
        _tell(quiet, f"BICGSTAB did not converge: Residual = {residual:e}")
        return False
