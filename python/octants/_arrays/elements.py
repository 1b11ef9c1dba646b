"""Elements of arrays of vectors and matrices, in the hands of host code: what is written to one goes on to the array."""

from __future__ import annotations

from .._matrix import Matrix, Vector


def _written_through(kind):
    """Gives a class of elements the methods that write to the array what is written to the element."""
    plain = kind.__base__

    def __setitem__(self, index, value):
        plain.__setitem__(self, index, value)
        self._array[self._index] = self

    def __setattr__(self, name, value):
        plain.__setattr__(self, name, value)
        self._array[self._index] = self

    def __reduce__(self):
        return self.__copy__().__reduce__()

    for method in (__setitem__, __setattr__, __reduce__):
        setattr(kind, method.__name__, method)
    return kind


@_written_through
class VectorElement(Vector):
    """A vector that is an element of an array."""

    __slots__ = ("_array", "_index")


@_written_through
class MatrixElement(Matrix):
    """A matrix that is an element of an array."""

    __slots__ = ("_array", "_index")


def element(array, index, dtype, numbers):
    """The element of an array at an index, with its entries by rows."""
    entries = dtype.from_numbers(numbers).entries
    slots = {"entries": entries, "dt": dtype.dtype, "n": len(entries), "_array": array, "_index": index}
    if entries.ndim == 1:
        result = object.__new__(VectorElement)
    else:
        result = object.__new__(MatrixElement)
        slots["m"] = entries.shape[1]
    for name, value in slots.items():
        object.__setattr__(result, name, value)
    return result
