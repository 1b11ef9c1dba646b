"""What numpy asks of objects that are no arrays of its own, ``__array__(dtype, copy)``, and numbers of its arrays as numbers of another type.

``copy=False`` shares the memory or raises ``ValueError``; ``copy=True`` gives memory that nobody else sees; ``copy=None`` copies where it must.

**What ``converted`` gives is what a kernel's cast makes of the numbers**: reals are cut off toward zero, what is too large becomes the nearest number that the integer
type has, and what is no number becomes 0; integers wrap around. numpy leaves what becomes of such reals to the processor.
"""

from __future__ import annotations


def converted(array, dtype):
    """An array with numbers of a numpy type, itself if it has these."""
    import numpy

    dtype = numpy.dtype(dtype)
    if array.dtype == dtype:
        return array
    with numpy.errstate(all="ignore"):
        if array.dtype.kind == "f" and dtype.kind in "iu":
            return _truncated(numpy, array, dtype)
        return array.astype(dtype)


def _truncated(numpy, array, dtype):
    """Integers of reals."""
    limits = numpy.iinfo(dtype)
    # Powers of two, which all of these types have exactly; a half would be too short for them.
    wide = array if array.dtype.itemsize > 2 else array.astype(numpy.float32)
    least, beyond = float(limits.min), float(limits.max + 1)
    whole = numpy.trunc(wide)
    if array.size == 0 or (whole.min() >= least and whole.max() < beyond):
        return whole.astype(dtype)
    is_inside = (whole >= least) & (whole < beyond)
    found = numpy.where(is_inside, whole, 0).astype(dtype)
    # What is no number is neither.
    found = numpy.where(whole < least, dtype.type(limits.min), found)
    return numpy.where(whole >= beyond, dtype.type(limits.max), found)


def array_of(source, dtype, copy: bool | None):
    """The elements of what has a ``to_numpy(copy=...)``."""
    return as_type(source.to_numpy(copy=copy), dtype, copy)


def as_type(array, dtype, copy: bool | None):
    """An array of numpy's, converted if that is needed and allowed."""
    import numpy

    if dtype is None or array.dtype == dtype:
        return array
    if copy is False:
        raise ValueError(
            f"Zero-copy not available: copy=False is incompatible with a conversion from {array.dtype} to {numpy.dtype(dtype)}"
        )
    with numpy.errstate(all="ignore"):
        return array.astype(dtype)
