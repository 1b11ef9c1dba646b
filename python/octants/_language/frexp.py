# type: ignore  (in the kernel language annotations are values)
"""The mantissa and the exponent of a real number, in the kernel language."""

from __future__ import annotations

from .. import _language as lang
from .._octants import dtypes
from .pyfunc import pyfunc

f64, i64, i32 = dtypes["f64"], dtypes["i64"], dtypes["i32"]


@pyfunc
def frexp(x):
    """``(m, e)`` with ``x == m * 2**e`` and ``0.5 <= abs(m) < 1``; zeros, infinities and NaN are their own mantissa, with exponent 0.

    f16 and f32 go through f64, which holds all their numbers as normal ones.
    """
    wide = lang.cast(x, f64)
    bits = lang.bit_cast(wide, i64)
    field = lang.cast((bits >> 52) & 2047, i32)
    exponent = field - 1022
    if field == 0:
        # Zero, or too small for a leading bit: it has one after scaling by 2**54.
        bits = lang.bit_cast(wide * f64(18014398509481984.0), i64)
        field = lang.cast((bits >> 52) & 2047, i32)
        exponent = field - 1076
    if field == 0 or field == 2047:
        exponent = 0
    # In two steps, as the whole power may be beyond the type; powers of two are exact.
    two = lang.one(x) + lang.one(x)
    half = exponent // 2
    return x * two ** (-half) * two ** (half - exponent), exponent
