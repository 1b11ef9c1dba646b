"""The rules of scalar types, written down a second time: which type an operator gives, and what value, in numpy and Python integers."""

import numpy as np

import octants as oc

NUMPY = {
    oc.u1: np.bool_,
    oc.i8: np.int8,
    oc.i16: np.int16,
    oc.i32: np.int32,
    oc.i64: np.int64,
    oc.u8: np.uint8,
    oc.u16: np.uint16,
    oc.u32: np.uint32,
    oc.u64: np.uint64,
    oc.f16: np.float16,
    oc.f32: np.float32,
    oc.f64: np.float64,
}
SCALARS = list(NUMPY)
REALS = [oc.f16, oc.f32, oc.f64]
INTEGERS = [t for t in SCALARS if t not in REALS]
SIGNED = [oc.i8, oc.i16, oc.i32, oc.i64]


def width(dtype):
    return 1 if dtype == oc.u1 else 8 * np.dtype(NUMPY[dtype]).itemsize


def limits(dtype):
    if dtype in SIGNED:
        return -(2 ** (width(dtype) - 1)), 2 ** (width(dtype) - 1) - 1
    return 0, 2 ** width(dtype) - 1


def promote(a, b):
    """Real beats integral, then the wider, then the unsigned."""
    if (a in REALS) != (b in REALS):
        return a if a in REALS else b
    if width(a) != width(b):
        return a if width(a) > width(b) else b
    return b if a in SIGNED else a


def divided(a, b, default_fp=oc.f32):
    """The type of ``a / b``: integers become reals of the default type first."""
    return promote(a if a in REALS else default_fp, b if b in REALS else default_fp)


def convert(value, dtype):
    """A Python number as `dtype` holds it: integers wrap, reals round, reals lose their fraction on the way to integers."""
    if dtype in REALS:
        with np.errstate(over="ignore"):
            return NUMPY[dtype](value)
    if dtype == oc.u1:
        return int(value != 0)
    return wrap(int(value), dtype)


def wrap(value, dtype):
    low, _ = limits(dtype)
    return (value - low) % 2 ** width(dtype) + low


def truncating(a, b):
    quotient = abs(a) // abs(b)
    return quotient if (a < 0) == (b < 0) else -quotient


def values(dtype):
    """Small numbers, and those at the edges of the type."""
    if dtype in REALS:
        return [-7.5, -3.0, -1.0, 0.5, 1.0, 2.0, 3.25, 100.5]
    low, high = limits(dtype)
    return sorted({v for v in (low, low + 1, -7, -1, 0, 1, 2, 3, 5, 100, high - 1, high) if low <= v <= high})
