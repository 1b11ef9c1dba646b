"""Fields of scalars."""

from __future__ import annotations

import weakref

from .._octants import DataType
from . import numpy_arrays
from .field import Field
from .node import SNode


class ScalarField(Field):
    """A field of scalars: ``oc.field(oc.f32, shape=(4, 8))``."""

    def __init__(self, dtype: DataType, name: str = ""):
        super().__init__(name)
        #: The type of the elements.
        self.dtype = dtype

    def _place(self, node: SNode, offset: list[int]) -> None:
        self._require_no_place()
        builder = node._builder
        leaf = builder._tree.add_leaf(node._node, self.dtype, [], offset)
        self._snode, self._offset = SNode(builder, node._node, (leaf, 0)), offset
        builder._waiting.append((self, leaf))

    def _new_companion(self, kind: str) -> ScalarField | None:
        if self.dtype.is_integral or self._is_companion:
            return None
        matrix = None if self._belongs is None else self._belongs[0]()
        if self._belongs is not None and matrix is not None:
            companion = matrix._companion(kind)
            return None if companion is None else companion._each_entry()[self._belongs[1]]  # type: ignore[attr-defined]
        return companion_of(ScalarField(self.dtype, named(self, kind)))

    _is_companion = False
    #: The field of vectors or matrices that this is an entry of, and which.
    _belongs: tuple[weakref.ref[Field], int] | None = None

    def fill(self, val, *, qd_stream=None) -> None:
        """Sets every element to a number."""
        self._fill(val, qd_stream)

    def _copy_elements(self, other: Field, qd_stream) -> None:
        if not isinstance(other, ScalarField):
            raise ValueError(f"a field of scalars cannot be copied from {other!r}")
        numpy_arrays.copy_leaf(self, other, qd_stream)

    def to_numpy(self, dtype=None, *, copy: bool | None = True, qd_stream=None):
        """A numpy array with all elements. ``copy=None`` shares the memory if it can; ``copy=False`` refuses if it cannot."""
        return numpy_arrays.read(self, dtype, copy, qd_stream)

    def from_numpy(self, arr, *, qd_stream=None) -> None:
        """Sets all elements from a numpy array of the same shape; other types are converted."""
        numpy_arrays.require_array(self, arr, (self.shape,))
        self._write(arr, qd_stream)

    def __repr__(self):
        name = f" {self.name}" if self.name else ""
        return f"<oc.field{name} {self.dtype} {self.shape if self._snode or self._is_bound else 'not placed'}>"


def companion_of(field):
    """Marks a field that holds the gradients or duals of another: it has none itself."""
    field._is_companion = True
    return field


def named(field: Field, part: str) -> str:
    """The name of a part of a field."""
    return f"{field.name}.{part}" if field.name else ""
