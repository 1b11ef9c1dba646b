"""The elements of one leaf as numpy arrays, copied or in place."""

from __future__ import annotations

from .._matrix.conversion import converted
from .._matrix.promotion import numpy_type

TYPE_CHECKING = False  # as `typing` says it, without its weight
if TYPE_CHECKING:
    from .field import Field


def wanted_type(dtype):
    """The numpy type that a ``dtype=`` means."""
    import numpy

    # Python's own types mean numpy's here, not the session's.
    if dtype in (bool, int, float):
        return numpy.dtype(dtype)
    try:
        return numpy_type(dtype)
    except TypeError:
        return numpy.dtype(dtype)


def alias(field: Field):
    """The elements in place, if they can be looked at; of a field without axes numpy would give a number."""
    found = field._alias()
    return found if found is not None and found.ndim else None


def read(field: Field, dtype, copy: bool | None, qd_stream=None):
    """All elements: a copy of their own (``copy=True``), in place if that can be (``None``), in place or refused (``False``)."""
    # A look takes no longer than it must.
    if dtype is None and (copy is None or copy is False) and (found := alias(field)) is not None:
        return found
    require_copy(copy)
    own = numpy_type(field.dtype)  # type: ignore[attr-defined]
    wanted = None if dtype is None or wanted_type(dtype) == own else wanted_type(dtype)
    if copy is False and wanted is not None:
        raise ValueError(
            f"Zero-copy not available: copy=False is incompatible with a conversion from {own} to {wanted}"
        )
    if copy is not True and wanted is None:
        if dtype is not None and (found := alias(field)) is not None:
            return found
        if copy is False:
            raise ValueError(
                "Zero-copy not available: the elements do not lie side by side in the host's memory, or there is but one; use copy=True or copy=None"
            )
    array = field._read(qd_stream)
    return array if wanted is None else converted(array, wanted)


def require_copy(copy: bool | None) -> None:
    """Refuses what is no ``copy=``."""
    if copy is not None and not isinstance(copy, bool):
        raise TypeError(f"copy= takes True, False or None, not {copy!r}")


def contiguous(array, dtype):
    """The array of a data type and in C order, itself if it is that."""
    import numpy

    return numpy.ascontiguousarray(converted(array, numpy_type(dtype)))


def require_array(field: Field, array, shapes: tuple[tuple[int, ...], ...]) -> None:
    """Refuses what is no numpy array of one of the shapes."""
    import numpy

    if not isinstance(array, numpy.ndarray):
        raise TypeError(f"from_numpy takes a numpy array, not {type(array).__name__}")
    if array.shape not in shapes:
        raise ValueError(f"the field takes arrays of shape {shapes[0]}, not {array.shape}")
    if array.dtype.kind not in "biuf":
        raise TypeError(f"from_numpy takes an array of numbers, not of {array.dtype}")


def copy_leaf(target: Field, source: Field, qd_stream=None) -> None:
    """Copies all elements between leaves of one shape."""
    import numpy

    if target._copy_leaves([target], [source], qd_stream):
        return
    in_place = qd_stream is None
    to, from_ = target._alias() if in_place else None, source._alias() if in_place else None
    if to is not None and from_ is not None:
        numpy.copyto(to, converted(from_, to.dtype))
    else:
        target._write(source._read(qd_stream), qd_stream)
