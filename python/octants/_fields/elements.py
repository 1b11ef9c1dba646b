"""Elements of fields in the hands of host code: what is read is what lies in the field, what is written goes there."""

from __future__ import annotations

from .._matrix import Matrix, Vector, checked_index, matrix_over, swizzle_positions
from .._matrix.struct import Struct
from .._matrix.swizzles import SWIZZLES

TYPE_CHECKING = False  # as `typing` says it, without its weight
if TYPE_CHECKING:
    from .matrix import MatrixField
    from .struct import StructField


class OfEntries:
    """What fields of vectors and matrices have in common, quantised or not."""

    _element_shape: tuple[int, ...]

    @property
    def n(self) -> int:
        """How many rows an element has."""
        return self._element_shape[0]

    @property
    def m(self) -> int:
        """How many columns an element has; 1 for vectors."""
        return self._element_shape[1] if self.ndim == 2 else 1

    @property
    def ndim(self) -> int:
        """1 for vectors, 2 for matrices."""
        return len(self._element_shape)


def _number(entry):
    """A Python number for one of numpy's, as a field of scalars gives it."""
    return entry.item() if hasattr(entry, "item") else entry


def _component(get):
    return property(lambda self: _number(get(self)))


def _in_a_field(kind):
    """Gives a class of elements its entries, read from the field, and the methods that write there."""
    plain = kind.__base__

    @property
    def entries(self):
        return self._field._entries_at(self._index)

    @property
    def dt(self):
        return self._field._declared

    def __getitem__(self, index):
        return _number(plain.__getitem__(self, index))

    @property
    def n(self):
        return self._field.n

    @property
    def m(self):
        return self._field.m

    def __iter__(self):
        return (_number(part) for part in plain.__iter__(self))

    def __setitem__(self, index, value):
        import numpy

        index = checked_index(self, index)
        changed = matrix_over(self.entries, self.dt)
        changed[index] = value
        self._field._write_entries(
            self._index, changed.entries, numpy.arange(changed.entries.size).reshape(changed.entries.shape)[index]
        )

    def __setattr__(self, name, value):
        changed = matrix_over(self.entries, self.dt)
        setattr(changed, name, value)
        self._field._write_entries(self._index, changed.entries, swizzle_positions(self, name))

    def __reduce__(self):
        return self.__copy__().__reduce__()

    kind.entries, kind.dt, kind.n, kind.m = entries, dt, n, m
    for letter in "".join(SWIZZLES):
        setattr(kind, letter, _component(getattr(plain, letter).fget))
    for method in (__getitem__, __iter__, __setitem__, __setattr__, __reduce__):
        setattr(kind, method.__name__, method)
    return kind


@_in_a_field
class VectorElement(Vector):
    """A vector that lies in a field."""

    __slots__ = ("_field", "_index")


@_in_a_field
class MatrixElement(Matrix):
    """A matrix that lies in a field."""

    __slots__ = ("_field", "_index")


def matrix_element(field: MatrixField, index: tuple[int, ...]):
    """The element at an index that was checked."""
    element = object.__new__(VectorElement if field.ndim == 1 else MatrixElement)
    for name, value in (("_field", field), ("_index", index)):
        object.__setattr__(element, name, value)
    return element


class StructElement(Struct):
    """A struct that lies in a field."""

    __slots__ = ("_field", "_index")

    @property
    def _entries(self):  # type: ignore[override]
        return {name: self._field.get_member_field(name)[self._index] for name in self._field.keys}

    def __setattr__(self, name, value):
        if name not in self._field.keys:
            raise AttributeError(
                f"the struct has no member {name!r} to set; it has {', '.join(self._field.keys)}", name=name, obj=self
            )
        self._field.get_member_field(name)[self._index] = value

    def __reduce__(self):
        return self.__copy__().__reduce__()


def struct_element(field: StructField, index: tuple[int, ...]) -> StructElement:
    """The element at an index that was checked."""
    element = object.__new__(StructElement)
    for name, value in (
        ("_field", field),
        ("_index", index),
        ("_methods", field.methods),
        ("_type", field.struct_type),
    ):
        object.__setattr__(element, name, value)
    return element
