"""Fields of vectors and matrices."""

from __future__ import annotations

import weakref

from .._arrays.torch_tensors import torch_alias, torch_of
from .._matrix.promotion import numpy_type, promoted
from .._octants import DataType
from ..exceptions import OctantsRuntimeError
from . import numpy_arrays
from .elements import OfEntries, matrix_element
from .field import Field
from .node import SNode
from .scalar import ScalarField, companion_of, named

TYPE_CHECKING = False  # as `typing` says it, without its weight
if TYPE_CHECKING:
    from typing import Any

TYPE_CHECKING = False  # as `typing` says it, without its weight
if TYPE_CHECKING:
    from collections.abc import Iterator

    from .._octants import Tree


class MatrixField(OfEntries, Field):
    """A field of vectors or matrices: ``oc.Vector.field(3, oc.f32, shape=8)``.

    Entries of one data type that are placed together lie side by side in memory; otherwise each is a field of its own.
    """

    _is_companion = False

    def __init__(self, element_shape: tuple[int, ...], dtypes: list[DataType], name: str = ""):
        super().__init__(name)
        self._element_shape = element_shape
        self._dtypes = dtypes
        self._whole_snode: SNode | None = None
        self._entry_fields: list[ScalarField] | None = None

    # ---- what it is ----

    @property
    def dtype(self) -> DataType:
        """The type of the entries; of several, the first."""
        return self._dtypes[0]

    @property
    def _declared(self) -> DataType | None:
        """The one type of all entries."""
        return self.dtype if all(dtype is self.dtype for dtype in self._dtypes) else None

    def get_scalar_field(self, *indices: int) -> ScalarField:
        """The field of one entry: ``v.get_scalar_field(0)``, ``m.get_scalar_field(0, 1)``."""
        if len(indices) == 1 and self.ndim == 2:
            indices = (*indices, 0)
        if len(indices) == 2 and self.ndim == 1 and indices[1] == 0:
            indices = indices[:1]
        if len(indices) != self.ndim or any(
            not 0 <= i < extent for i, extent in zip(indices, self._element_shape, strict=True)
        ):
            raise IndexError(f"elements of shape {self._element_shape} have no entry {indices}")
        number = 0
        for i, extent in zip(indices, self._element_shape, strict=True):
            number = number * extent + i
        return self._each_entry()[number]

    def _each_entry(self) -> list[ScalarField]:
        """A field for each entry, by rows."""
        if self._entry_fields is None:
            self._entry_fields = []
            for number, dtype in enumerate(self._dtypes):
                index = "".join(f"[{i}]" for i in self._index_of(number))
                entry = ScalarField(dtype, f"{self.name}{index}" if self.name else "")
                entry._belongs = (weakref.ref(self), number)
                entry._needs, entry._is_companion = self._needs, self._is_companion
                entry._companion_kind = self._companion_kind
                entry._origin_text = self._origin_text
                self._follow(entry, number)
                self._entry_fields.append(entry)
        return self._entry_fields

    def _index_of(self, number: int) -> tuple[int, ...]:
        return (number,) if self.ndim == 1 else divmod(number, self.m)

    def _follow(self, entry: ScalarField, number: int) -> None:
        """Puts the field of an entry where the whole is."""
        snode = self._whole_snode
        if snode is not None and snode._leaf is not None:
            entry._snode, entry._offset = SNode(snode._builder, snode._node, (snode._leaf[0], number)), self._offset
            if self._is_bound:
                entry._bind_entry(self, number, entry.name)

    # ---- placing ----

    @property
    def _snode(self) -> SNode | None:  # type: ignore[override]
        if self._whole_snode is not None or self._entry_fields is None:
            return self._whole_snode
        snodes = [entry._snode for entry in self._entry_fields]
        return snodes[0] if all(snodes) else None

    def _place(self, node: SNode, offset: list[int]) -> None:
        for field in (self, *(self._entry_fields or ())):
            field._require_no_place()
        builder, self._offset = node._builder, offset
        if self._declared is None:
            for entry in self._each_entry():
                entry._place(node, offset)
            return
        leaf = builder._tree.add_leaf(node._node, self.dtype, list(self._element_shape), offset)
        self._whole_snode = SNode(builder, node._node, (leaf, 0))
        builder._waiting.append((self, leaf))
        for number, entry in enumerate(self._entry_fields or ()):
            self._follow(entry, number)

    def _bind(self, tree: Tree, leaf: int) -> None:
        super()._bind(tree, leaf)
        for number, entry in enumerate(self._entry_fields or ()):
            entry._bind_entry(self, number, entry.name)

    def _materialise(self) -> None:
        if self._whole_snode is not None or self._entry_fields is None:
            super()._materialise()
            return
        entries = self._entry_fields
        for entry in entries:
            entry._require_place()
        for what in ("shape", "_offset"):
            found = {tuple(getattr(entry, what)) for entry in entries}
            if len(found) > 1:
                raise OctantsRuntimeError(
                    f"the entries of {self._description()} are placed with different {what.strip('_')}s: "
                    f"{', '.join(map(str, sorted(found)))}; all must have the same"
                )
        self._bind_entries(list(self._element_shape), entries)

    def _leaf_fields(self) -> Iterator[Field]:
        yield from (self,) if self._in_one_leaf else self._each_entry()

    @property
    def _in_one_leaf(self) -> bool:
        return self._whole_snode is not None

    def _new_companion(self, kind: str) -> MatrixField | None:
        if self._is_companion or any(dtype.is_integral for dtype in self._dtypes):
            return None
        return companion_of(MatrixField(self._element_shape, self._dtypes, named(self, kind)))

    # ---- elements ----

    def __getitem__(self, index) -> Any:
        return matrix_element(self, self._checked(index))

    def __setitem__(self, index, value):
        index = self._checked(index)
        if self._in_one_leaf:
            super().__setitem__(index, value)
            return
        for entry, part in zip(self._each_entry(), self._parts(value), strict=True):
            entry[index] = part

    def _parts(self, value) -> list:
        """The numbers that an element is set to, by rows; one number is for all entries."""
        from .._matrix import array_of

        if isinstance(value, (int, float)) or (hasattr(value, "item") and not getattr(value, "ndim", 0)):
            return [value] * len(self._dtypes)
        entries = array_of(value)
        if entries.shape != self._element_shape:
            raise TypeError(
                f"an element of shape {self._element_shape} cannot be set to values of shape {entries.shape}"
            )
        return entries.ravel().tolist()

    def _entries_at(self, index):
        """The entries of an element as a new array."""
        import numpy

        if self._in_one_leaf:
            numbers, dtype = self._get(index), numpy_type(self.dtype)
        else:
            numbers = [entry[index] for entry in self._each_entry()]
            dtype = self._numpy_type
        return numpy.array(numbers, dtype=dtype).reshape(self._element_shape)

    def _write_entries(self, index, entries, positions) -> None:
        """Writes some entries of an element, by their positions in row-major order."""
        import numpy

        flat = entries.ravel()
        for position in numpy.asarray(positions).ravel().tolist():
            if self._in_one_leaf:
                self._set_entry(index, position, flat[position])
            else:
                self._each_entry()[position][index] = flat[position]

    @property
    def _numpy_type(self):
        return promoted([(numpy_type(dtype), True) for dtype in self._dtypes])

    # ---- all elements ----

    def fill(self, val, *, qd_stream=None) -> None:
        """Sets every element: to one number in all entries, or to a vector, matrix or nested list."""
        if self._in_one_leaf:
            self._fill(val, qd_stream)
            return
        self._require_place()
        for entry, part in zip(self._each_entry(), self._parts(val), strict=True):
            entry.fill(part, qd_stream=qd_stream)

    def _copy_elements(self, other: Field, qd_stream) -> None:
        if not isinstance(other, MatrixField) or other._element_shape != self._element_shape:
            raise ValueError(f"a field with elements of shape {self._element_shape} cannot be copied from {other!r}")
        if self._copied_at_once(other, qd_stream):
            return
        if self._in_one_leaf and other._in_one_leaf:
            numpy_arrays.copy_leaf(self, other, qd_stream)
            return
        for entry, source in zip(self._each_entry(), other._each_entry(), strict=True):
            numpy_arrays.copy_leaf(entry, source, qd_stream)

    def to_numpy(self, keep_dims: bool = False, dtype=None, *, copy: bool | None = True, qd_stream=None):
        """A numpy array with all elements; the axes of the elements come last.

        Vectors have one such axis, or two with ``keep_dims=True``. ``copy=None`` shares the memory if it can; ``copy=False``
        refuses if it cannot.
        """
        self._require_place()
        ending = self._ending(keep_dims)
        if self._in_one_leaf:
            array = numpy_arrays.read(self, dtype, copy, qd_stream)
            return array if len(ending) == self.ndim else array.reshape(self.shape + ending)
        if copy is False:
            raise ValueError("Zero-copy not available: the entries lie apart in memory; use copy=True or copy=None")
        import numpy

        entries = list(self._each_entry())
        if self._declared is not None:
            array = self._copy_together(entries, None, qd_stream)
        else:
            array = numpy.empty((*self.shape, len(entries)), dtype=self._numpy_type)
            for number, entry in enumerate(entries):
                array[..., number] = entry._read(qd_stream)
        array = array.reshape(self.shape + ending)
        return array if dtype is None else numpy_arrays.converted(array, numpy_arrays.wanted_type(dtype))

    def _ending(self, keep_dims: bool) -> tuple[int, ...]:
        """The axes of the elements in an array of another library."""
        return (self.n, self.m) if keep_dims or self.m > 1 else (self.n,)

    def from_numpy(self, arr, *, qd_stream=None) -> None:
        """Sets all elements from a numpy array, the axes of the elements last; other types are converted."""
        self._require_place()
        shapes = [(*self.shape, self.n)] if self.m == 1 else []
        numpy_arrays.require_array(self, arr, (*shapes, (*self.shape, self.n, self.m)))
        if self._in_one_leaf:
            self._write(arr, qd_stream)
            return
        count = len(self._dtypes)
        parts = arr.reshape((*self.shape, count))
        entries = list(self._each_entry())
        if self._declared is not None:
            self._copy_together(entries, numpy_arrays.contiguous(parts, self.dtype), qd_stream)
            return
        for number, entry in enumerate(entries):
            entry._write(parts[..., number], qd_stream)

    def to_torch(self, device=None, keep_dims: bool = False, *, copy: bool | None = True, qd_stream=None):
        """A torch tensor with all elements; see ``to_numpy``."""
        ending = self._ending(keep_dims)
        if not copy and device is None and self._in_one_leaf and (shared := torch_alias(self)) is not None:
            return shared if len(ending) == self.ndim else shared.reshape(self.shape + ending)

        def array(copy):
            return self.to_numpy(keep_dims, copy=copy, qd_stream=qd_stream)

        return torch_of(self, array, device, copy, qd_stream).reshape(self.shape + ending)

    def __repr__(self):
        name = f" {self.name}" if self.name else ""
        kind = f"oc.Vector.field({self.n})" if self.ndim == 1 else f"oc.Matrix.field({self.n}, {self.m})"
        types = self.dtype if self._declared else f"[{', '.join(map(str, self._dtypes))}]"
        return f"<{kind}{name} {types} {self.shape if self._snode or self._is_bound else 'not placed'}>"
