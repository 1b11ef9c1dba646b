"""Constants and functions in the manner of GLSL."""

from __future__ import annotations

from ._language import (
    _marked,
    _numpy,
    acos,
    asin,
    atan2,
    ceil,
    cos,
    exp,
    floor,
    log,
    max,  # noqa: A004
    min,  # noqa: A004
    pow,  # noqa: A004
    round,  # noqa: A004
    sin,
    sqrt,
    tan,
    tanh,
)

pi = 3.141592653589793
e = 2.718281828459045
inf = float("inf")
nan = float("nan")


@_marked("log2")
def log2(x):
    """Logarithm to base 2."""
    return _numpy().log2(x)


@_marked("isnan")
def isnan(x):
    """Whether ``x`` is a NaN; by its bits, so it holds under ``fast_math`` too."""
    return _numpy().isnan(x)


@_marked("isinf")
def isinf(x):
    """Whether ``x`` is an infinity; by its bits, so it holds under ``fast_math`` too."""
    return _numpy().isinf(x)


@_marked("popcnt")
def popcnt(x):
    """How many bits of an integer are set."""
    raise NotImplementedError("oc.math.popcnt runs inside kernels only")


@_marked("clz")
def clz(x):
    """How many leading zero bits an integer has."""
    raise NotImplementedError("oc.math.clz runs inside kernels only")


@_marked("ffs")
def ffs(x):
    """One plus the position of the lowest set bit; 0 for 0."""
    raise NotImplementedError("oc.math.ffs runs inside kernels only")


__all__ = [
    "acos", "asin", "atan2", "ceil", "clz", "cos", "e", "exp", "ffs", "floor", "inf", "isinf", "isnan", "log", "log2", "max", "min",
    "nan", "pi", "popcnt", "pow", "round", "sin", "sqrt", "tan", "tanh",
]  # fmt: skip
