"""What numpy asks of objects that are no arrays of its own: ``__array__(dtype, copy)``.

``copy=False`` shares the memory or raises ``ValueError``; ``copy=True`` gives memory that nobody else sees; ``copy=None`` copies where it must.
"""

from __future__ import annotations


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
