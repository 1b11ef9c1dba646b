"""Elements of arrays of vectors and matrices, in the hands of host code: what is written to one goes on to the array."""

from __future__ import annotations

from ._matrix import Matrix, Vector


class _Element:
    __slots__ = ()

    def __setitem__(self, index, value):
        super().__setitem__(index, value)
        self._array[self._index] = self

    def __setattr__(self, name, value):
        super().__setattr__(name, value)
        self._array[self._index] = self

    def __reduce__(self):
        return self.__copy__().__reduce__()


class VectorElement(_Element, Vector):
    """A vector that is an element of an array."""

    __slots__ = ("_array", "_index")


class MatrixElement(_Element, Matrix):
    """A matrix that is an element of an array."""

    __slots__ = ("_array", "_index")


def element(array, index, dtype, numbers):
    """The element of an array at an index, with its entries by rows."""
    entries = dtype.from_numbers(numbers).entries
    result = object.__new__(VectorElement if entries.ndim == 1 else MatrixElement)
    for name, value in (("entries", entries), ("dt", dtype.dtype), ("_array", array), ("_index", index)):
        object.__setattr__(result, name, value)
    return result
