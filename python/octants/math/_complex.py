# type: ignore  (in the kernel language annotations are values, and what is static decides the types)
"""Complex numbers as vectors of two entries, real and imaginary part. Written in the kernel language."""

from __future__ import annotations

from .._language import abs, atan2, cos, exp, log, one, select, sin, sqrt  # noqa: A004
from .._language.pyfunc import pyfunc
from .._matrix import Vector
from .._matrix.host_forms import of_common_type, on_host
from .._matrix.methods import norm, norm_sqr

__all__ = ["cconj", "cdiv", "cexp", "cinv", "clog", "cmul", "cpow", "csqrt"]


@on_host(of_common_type)
@pyfunc
def cmul(z1, z2):
    """The product of two complex numbers."""
    return Vector([z1[0] * z2[0] - z1[1] * z2[1], z1[0] * z2[1] + z1[1] * z2[0]])


@on_host(of_common_type)
@pyfunc
def cconj(z):
    """The complex conjugate."""
    return Vector([z[0], -z[1]])


@pyfunc
def cdiv(z1, z2):
    """The quotient of two complex numbers."""
    return cmul(z1, cconj(z2)) / norm_sqr(z2)


@pyfunc
def cinv(z):
    """One over a complex number."""
    return cconj(z) / norm_sqr(z)


@on_host(of_common_type)
@pyfunc
def csqrt(z):
    """The root with a real part that is not negative."""
    # Twice the greater part of the root is a root of a sum without cancellation; the product of both parts is half of z's imaginary part.
    total = norm(z) + abs(z[0])
    twice = sqrt(2 * total)
    twice = select(twice > 0, twice, one(twice))
    greater = total / twice
    lesser = abs(z[1]) / twice
    real = select(z[0] < 0, lesser, greater)
    imaginary = select(z[0] < 0, greater, lesser)
    return Vector([real, select(z[1] < 0, -imaginary, imaginary)])


@on_host(of_common_type)
@pyfunc
def cexp(z):
    """e to a complex power."""
    return exp(z[0]) * Vector([cos(z[1]), sin(z[1])])


@on_host(of_common_type)
@pyfunc
def clog(z):
    """The logarithm whose imaginary part is the angle from -π to π."""
    return Vector([log(norm(z)), atan2(z[1], z[0])])


@on_host(of_common_type)
@pyfunc
def cpow(z, n):
    """A complex number to a real power."""
    angle = n * atan2(z[1], z[0])
    return norm(z) ** n * Vector([cos(angle), sin(angle)])
