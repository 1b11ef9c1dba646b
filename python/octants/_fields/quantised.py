"""Quantised fields on the host: numbers of a few bits each, which share words, the elements of an ordinary field.

``BitpackedFields`` puts elements of several fields into one word, ``quant_array`` several elements of one field. What the bits mean, and what is
done with them, is in ``quantised_elements``: the host reads and writes elements by kernels, too.
"""

from __future__ import annotations

import weakref

from .._matrix.conversion import as_type
from .._matrix.promotion import data_type, numpy_type, of_numpy, promoted
from .._octants import DataType, dtypes, host_only, is_compiling
from ..exceptions import OctantsRuntimeError, OctantsSyntaxError
from . import numpy_arrays
from .elements import OfEntries, matrix_element, struct_element

TYPE_CHECKING = False  # as `typing` says it, without its weight
if TYPE_CHECKING:
    from typing import Any

    from .._matrix.struct import StructType

WORD_BITS = (8, 16, 32, 64)

#: What the reals that numbers are taken apart as have: bits, bits of the mantissa, bits of the exponent.
_REALS = {"f32": (32, 23, 8), "f64": (64, 52, 11)}


class QuantisedType:
    """The type of a number of a few bits: ``oc.types.quant.int(5)``, ``oc.types.quant.fixed(10, max_value=2.0)``, ``oc.types.quant.float(5, 11)``."""

    __slots__ = ("bits", "compute", "exponent", "kind", "scale", "signed")

    def __init__(self, kind: str, bits: int, signed: bool, compute: DataType, scale: float | None, exponent: int):
        for what, number in (("bits", bits), ("exp", exponent)):
            if not isinstance(number, int) or isinstance(number, bool) or not 0 <= number <= 64:
                raise ValueError(f"{what} is an integer from 1 to 64, not {number!r}")
        if bits < 1:
            raise ValueError(f"bits is an integer from 1 to 64, not {bits!r}")
        #: ``int``, ``fixed`` or ``float``.
        self.kind = kind
        #: Of a float: those of the fraction, with the sign.
        self.bits = bits
        self.signed, self.compute, self.scale, self.exponent = bool(signed), compute, scale, exponent

    def __repr__(self):
        first = f"{self.exponent}, {self.bits}" if self.kind == "float" else f"{self.bits}"
        scale = "" if self.scale is None else f", scale={self.scale!r}"
        return f"oc.types.quant.{self.kind}({first}, signed={self.signed}, compute={self.compute}{scale})"

    def __eq__(self, other):
        return isinstance(other, QuantisedType) and self._key() == other._key()

    def __hash__(self):
        return hash(self._key())

    def _key(self):
        return (self.kind, self.bits, self.signed, self.compute.name, self.scale, self.exponent)

    @property
    def all_bits(self) -> int:
        """How many bits a number takes, with an exponent of its own."""
        return self.bits + self.exponent

    @property
    def bounds(self) -> tuple[int, int]:
        """The least and the greatest number of steps."""
        return (-(1 << (self.bits - 1)), (1 << (self.bits - 1)) - 1) if self.signed else (0, (1 << self.bits) - 1)


class _PackedField:
    """What fields of quantised numbers have in common, be their elements scalars, vectors or structs."""

    #: The module whose functions in the kernel language read, write and add to elements.
    __octants_encoded__ = "octants._fields.quantised_elements"
    #: Of vectors and matrices: a field for each entry, by rows. Of structs: the members by name.
    _entry_fields: Any = None
    _member_fields: Any = None
    #: Names that the fields with memory of their own have.
    grad = dual = None
    _is_bound = False
    _snode: Any = None
    #: Of a ``quant_array``: where it begins, if not at 0.
    _first_index: Any = None
    _origin_text = ""

    def __init__(self, name: str):
        self.name = name

    @property
    def _name(self) -> str:
        return self.name

    def _scalars(self) -> list[QuantisedField]:
        """The fields of scalars that it is made of."""
        raise NotImplementedError

    def _first(self) -> Any:
        return self._scalars()[0]

    def _description(self) -> str:
        text = f"`{self.name}`" if self.name else "a field of quantised numbers"
        return f"{text} made at {self._origin_text}" if self._origin_text else text

    @property
    def shape(self) -> tuple[int, ...]:
        """How many elements each axis has."""
        return self._first().shape

    @property
    def _bounds(self) -> tuple:
        """The first index along each axis, and the one after the last."""
        shapes = {field.shape for field in self._scalars()}
        if len(shapes) > 1:
            raise OctantsRuntimeError(
                f"the parts of {self._description()} are placed with different shapes: {', '.join(map(str, sorted(shapes)))}"
            )
        return self._first()._bounds

    @property
    def _rank(self) -> int:
        return len(self.shape)

    @property
    def _words(self) -> Any:
        return self._first()._words

    @property
    def _extents(self) -> Any:
        return self._first()._extents

    @property
    def _word_shape(self) -> tuple[int, ...] | None:
        """How many elements of a ``quant_array`` share a word, along each axis."""
        return None if self._extents is None else tuple(int(extent) for extent in self._extents)

    @property
    def _is_sparse(self) -> bool:
        """Whether cells above its words come and go."""
        return self._words._is_sparse

    def _origin(self) -> list[int]:
        return [first for first, _ in self._bounds]

    @property
    def snode(self):
        """The node of its words."""
        return self._first().snode

    def parent(self, n: int = 1):
        """A node above it."""
        return self._first().parent(n)

    def has_grad(self) -> bool:
        """False: elements are rounded, so that they have no derivatives."""
        return False

    has_dual = has_grad

    # ---- elements, on the host ----

    def _checked(self, index) -> tuple[int, ...]:
        host_only("an element of a field")
        at = tuple(index) if isinstance(index, (tuple, list)) else () if index is None else (index,)
        bounds = self._bounds
        if len(at) != len(bounds):
            raise AssertionError(
                f"a field of {len(bounds)} axes is indexed by {len(bounds)} numbers; slices are not supported"
            )
        for one, (first, end) in zip(at, bounds, strict=True):
            if not hasattr(one, "__index__"):
                raise TypeError(f"an index is an integer, not {one!r}")
            if not first <= one < end:
                raise AssertionError(f"index {at} is out of bounds of {self._description()} with shape {self.shape}")
        return tuple(one.__index__() for one in at)

    def fill(self, val, *, qd_stream=None) -> None:
        """Sets every element."""
        raise NotImplementedError

    def copy_from(self, other, *, qd_stream=None) -> None:
        """Sets all elements to those of another field of the same shape."""
        from .field import Field
        from .sparse_access import copy_field

        host_only("copy_from")
        if not isinstance(other, (Field, _PackedField)):
            raise TypeError(f"Cannot copy from a non-field object: {type(other).__name__}")
        if self.shape != other.shape:
            raise ValueError(f"the field has shape {self.shape}, which is not that of the source, {other.shape}")
        copy_field(self, other, qd_stream)

    def to_numpy(self, *args, **kwargs) -> Any:
        """A copy of the numbers."""
        raise NotImplementedError

    def from_numpy(self, arr, *, qd_stream=None) -> None:
        """Sets all elements."""
        raise NotImplementedError

    def to_torch(self, device=None, *, copy: bool | None = True, qd_stream=None):
        """A torch tensor with all elements."""
        from .._arrays.torch_tensors import torch_of

        return torch_of(self, lambda copy: self.to_numpy(qd_stream=qd_stream), device, copy, qd_stream)

    def from_torch(self, arr, *, qd_stream=None) -> None:
        """Sets all elements from a torch tensor, from whichever device."""
        from .._arrays.torch_tensors import set_from_torch

        set_from_torch(self, arr, lambda array: self.from_numpy(array, qd_stream=qd_stream), qd_stream)

    def __reduce__(self):
        """Refuses, as does a copy: the words belong to a node."""
        from .._pickling import not_copied

        raise not_copied(self)

    def __array__(self, dtype=None, copy: bool | None = None):
        if copy is False:
            raise ValueError("Zero-copy not available: the elements are bits of words")
        return as_type(self.to_numpy(), dtype, copy)

    def __float__(self):
        from .field import only_number

        return only_number(self, float)

    def __int__(self):
        from .field import only_number

        return only_number(self, int)

    def __iter__(self):
        raise NotImplementedError(
            "a field is looped over in kernels; on the host, loop over to_numpy() or over indices"
        )

    def to_dlpack(self, versioned: bool = False):
        """Refuses: no other library sees bits of words."""
        raise ValueError("Zero-copy not available: the elements are bits of words; to_numpy() copies them")

    @property
    def layout(self) -> None:
        """``None``: words lie in the order of the axes."""
        return None

    def _is_placed(self) -> bool:
        return all(field._words is not None for field in self._scalars())

    def __str__(self):
        """The elements, as numpy writes them; while a kernel is being compiled, what the field is."""
        return repr(self) if is_compiling() or not self._is_placed() else str(self.to_numpy())

    def __repr__(self):
        shape = self.shape if self._is_placed() else "not placed"
        return f"<oc.field{f' {self.name}' if self.name else ''} {self.dtype!r} {shape}>"  # type: ignore[attr-defined]


class _NumberField(_PackedField):
    """A field of quantised scalars, vectors or matrices: its elements are arrays of numbers."""

    _element_shape: tuple[int, ...] = ()
    _compute: DataType

    def _array_shapes(self) -> list[tuple[int, ...]]:
        """The shapes that arrays of its elements may have, the one it gives first."""
        return [self.shape + self._element_shape]

    def to_numpy(self, dtype=None, *, copy: bool | None = True, qd_stream=None):
        """A copy of the numbers as a numpy array."""
        from .sparse_access import read

        host_only("to_numpy")
        if copy is False:
            raise ValueError("Zero-copy not available: the elements are bits of words")
        numbers = read(self, self._array_shapes()[0], qd_stream)
        return numbers if dtype is None else numpy_arrays.converted(numbers, numpy_arrays.wanted_type(dtype))

    def from_numpy(self, arr, *, qd_stream=None) -> None:
        """Sets all elements from a numpy array of the same shape; other types are converted."""
        from .sparse_access import write

        host_only("from_numpy")
        numpy_arrays.require_array(self, arr, tuple(self._array_shapes()))  # type: ignore[arg-type]
        write(self, numpy_arrays.contiguous(arr, self._compute), qd_stream)


class QuantisedField(_NumberField):
    """A field of quantised numbers, made by ``oc.field(oc.types.quant.int(5))`` and placed by ``oc.BitpackedFields`` or ``quant_array``."""

    #: The words that its elements are bits of.
    __words: Any = None

    def __init__(self, dtype: QuantisedType, name: str = ""):
        super().__init__(name)
        self.dtype = dtype
        self._compute = dtype.compute

    def _scalars(self) -> list[QuantisedField]:
        return [self]

    # ---- placing ----

    def _bind(
        self, words, lowest: int, extents: tuple[int, ...] | None, offset: list[int], shared: SharedExponent | None, neighbours: int
    ) -> None:  # fmt: skip
        self._require_no_place()
        from .._matrix import Vector

        kind = self.dtype
        self.__words, self._offset, self._snode = words, offset, words._snode
        self.__extents: Any = None if extents is None else Vector(list(extents), dt=dtypes["i32"])
        self._first_index = Vector(offset, dt=dtypes["i32"]) if extents is not None and any(offset) else None
        # What `quantised_elements` knows of a field: its word, its bits in there, and what they mean.
        self._word: DataType = words.dtype
        self._register_bits = max(32, int(self._word.name[1:]))
        self._register = dtypes[f"u{self._register_bits}"]
        self._signed_register = dtypes[f"i{self._register_bits}"]
        self._lowest, self._neighbours, self._shared = lowest, neighbours, shared
        self._kind, self._signed, self._scale = kind.kind, kind.signed, kind.scale
        self._bits = kind.bits if shared is not None else kind.all_bits
        self._least, self._greatest = kind.bounds
        if kind.kind != "int":
            words._holds_rounded_reals = True
        if kind.kind == "float":
            self._take_apart(kind)

    def _take_apart(self, kind: QuantisedType) -> None:
        name = "f64" if kind.compute.name == "f64" else "f32"
        bits, self._mantissa, self._exponent_of_real = _REALS[name]
        self._real, self._real_bits = dtypes[name], dtypes[f"u{bits}"]
        self._bias_of_real = (1 << (self._exponent_of_real - 1)) - 1
        self._mantissa_mask = (1 << self._mantissa) - 1
        self._greatest_magnitude = (1 << (bits - 1)) - 1
        self._infinity = self._greatest_magnitude - self._mantissa_mask
        self._not_a_number = self._infinity | (1 << (self._mantissa - 1))
        self._exponent, self._fraction, self._digits = kind.exponent, kind.bits, kind.bits - kind.signed
        self._greatest_exponent = (1 << kind.exponent) - 1
        self._offset_of_exponent = self._bias_of_real - ((1 << (kind.exponent - 1)) - 1)

    def _require_no_place(self) -> None:
        if self.__words is not None:
            raise OctantsRuntimeError(
                f"This variable has been placed: {self._description()} is placed already; a field is placed once"
            )

    def _require_place(self) -> Any:
        if self.__words is None:
            raise OctantsRuntimeError(
                f"These field(s) are not placed: {self._description()}. Put it into oc.BitpackedFields or into a quant_array"
            )
        return self.__words

    @property
    def _words(self) -> Any:
        return self.__words

    @property
    def _extents(self) -> Any:
        return self.__extents

    @property
    def shape(self) -> tuple[int, ...]:
        """How many elements each axis has."""
        shape = self._require_place().shape
        return shape if self._extents is None else tuple(n * int(m) for n, m in zip(shape, self._extents, strict=True))

    @property
    def _bounds(self) -> tuple:
        shape = self.shape
        origin = self._offset or [0] * len(shape)
        return tuple((first, first + n) for first, n in zip(origin, shape, strict=True))

    @property
    def snode(self):
        """The node of its words."""
        return self._require_place().snode

    def parent(self, n: int = 1):
        """A node above it."""
        return self._require_place().parent(n)

    # ---- elements, on the host ----

    def __getitem__(self, index) -> Any:
        from .sparse_access import element

        return element(self, self._checked(index))[0]

    def __setitem__(self, index, value):
        from .sparse_access import set_element

        set_element(self, self._checked(index), [value])

    def fill(self, val, *, qd_stream=None) -> None:
        """Sets every element."""
        from .sparse_access import fill

        host_only("fill")
        self._require_place()
        fill(self, [val], qd_stream)


class QuantisedMatrixField(OfEntries, _NumberField):
    """A field of vectors or matrices of quantised numbers: ``oc.Vector.field(3, oc.types.quant.fixed(10))``. A field for each entry."""

    def __init__(self, element_shape: tuple[int, ...], entries: list[QuantisedType], name: str = ""):
        super().__init__(name)
        self._element_shape = element_shape
        self._entry_fields = []
        for number, dtype in enumerate(entries):
            at = (number,) if len(element_shape) == 1 else divmod(number, element_shape[1])
            index = "".join(f"[{i}]" for i in at)
            self._entry_fields.append(QuantisedField(dtype, f"{name}{index}" if name else ""))
        self._compute = of_numpy(promoted([(numpy_type(dtype.compute), True) for dtype in entries]))

    def _scalars(self) -> list[QuantisedField]:
        return self._entry_fields

    @property
    def dtype(self) -> QuantisedType:
        """The type of the entries; of several, the first."""
        return self._entry_fields[0].dtype

    @property
    def _declared(self) -> DataType:
        return self._compute

    def get_scalar_field(self, *indices: int) -> QuantisedField:
        """The field of one entry: ``v.get_scalar_field(0)``, ``m.get_scalar_field(0, 1)``."""
        if len(indices) != self.ndim or any(
            not 0 <= i < extent for i, extent in zip(indices, self._element_shape, strict=True)
        ):
            raise IndexError(f"elements of shape {self._element_shape} have no entry {indices}")
        return self._entry_fields[indices[0] if self.ndim == 1 else indices[0] * self.m + indices[1]]

    def __getitem__(self, index) -> Any:
        return matrix_element(self, self._checked(index))  # type: ignore[arg-type]

    def __setitem__(self, index, value):
        from .sparse_access import set_element

        set_element(self, self._checked(index), self._parts(value))

    def _parts(self, value) -> list:
        """The numbers that an element is set to, by rows; one number is for all entries."""
        import numpy

        from .._matrix import array_of

        if isinstance(value, (int, float)) or (hasattr(value, "item") and not getattr(value, "ndim", 0)):
            return [value] * len(self._entry_fields)
        entries = numpy.asarray(array_of(value))
        if entries.shape != self._element_shape:
            raise TypeError(
                f"an element of shape {self._element_shape} cannot be set to values of shape {entries.shape}"
            )
        return entries.ravel().tolist()

    def _entries_at(self, index):
        """The entries of an element as a new array."""
        import numpy

        from .sparse_access import element

        return numpy.array(element(self, index), dtype=numpy_type(self._compute)).reshape(self._element_shape)

    def _write_entries(self, index, entries, positions) -> None:
        """Writes some entries of an element, by their positions in row-major order."""
        import numpy

        flat = entries.ravel()
        for position in numpy.asarray(positions).ravel().tolist():
            self._entry_fields[position][index] = flat[position]

    def fill(self, val, *, qd_stream=None) -> None:
        """Sets every element: to one number in all entries, or to a vector, matrix or nested list."""
        from .sparse_access import fill

        host_only("fill")
        self._first()._require_place()
        fill(self, self._parts(val), qd_stream)


class PackedStructField(_PackedField):
    """A field of structs some of whose members are quantised. Its members are fields, and attributes."""

    def __init__(self, struct_type: StructType, members: dict, name: str = ""):
        super().__init__(name)
        #: The type of the elements as kernels calculate with them.
        self.struct_type = struct_type
        self._member_fields = members
        self.__dict__.update((key, member) for key, member in members.items() if key not in self.__dict__)

    def _scalars(self) -> list[QuantisedField]:
        packed = [member for member in self._member_fields.values() if isinstance(member, _PackedField)]
        return [field for member in packed for field in member._scalars()]

    @property
    def dtype(self) -> StructType:
        """The type of the elements as kernels calculate with them."""
        return self.struct_type

    @property
    def keys(self) -> list[str]:
        """The names of the members."""
        return list(self._member_fields)

    @property
    def methods(self) -> dict:
        """The functions that elements have as methods, by name."""
        return self.struct_type.methods

    def get_member_field(self, key: str):
        """The field of a member."""
        if key not in self._member_fields:
            raise KeyError(f"the field has no member {key!r}; it has {', '.join(self._member_fields)}")
        return self._member_fields[key]

    def __getitem__(self, index) -> Any:
        return struct_element(self, self._checked(index))  # type: ignore[arg-type]

    def __setitem__(self, index, value):
        index = self._checked(index)
        for name, part in self._member_values(value).items():
            self._member_fields[name][index] = part

    def _member_values(self, value) -> dict:
        from .._matrix.struct import Struct

        given = dict(value.items) if isinstance(value, Struct) else value
        if not isinstance(given, dict):
            raise TypeError(f"a struct is set to a struct or a dict, not to {type(value).__name__}")
        if set(given) != set(self._member_fields):
            raise KeyError(f"the field has the members {', '.join(self._member_fields)}; got {', '.join(given)}")
        return given

    def fill(self, val, *, qd_stream=None) -> None:
        """Sets every element: to one number in all places, or to a dict."""
        given = self._member_values(val) if isinstance(val, dict) else dict.fromkeys(self._member_fields, val)
        for name, part in given.items():
            self._member_fields[name].fill(part, qd_stream=qd_stream)

    def to_numpy(self, *, copy: bool | None = True, qd_stream=None) -> dict:
        """The members as numpy arrays, by name."""
        return {name: member.to_numpy(qd_stream=qd_stream) for name, member in self._member_fields.items()}

    def from_numpy(self, array_dict, *, qd_stream=None) -> None:  # pyright: ignore[reportIncompatibleMethodOverride]
        """Sets all elements from numpy arrays by the names of the members."""
        for name, part in self._member_values(array_dict).items():
            self._member_fields[name].from_numpy(part, qd_stream=qd_stream)


class SharedExponent:
    """An exponent that several fields of a word have together: where it is, and whose it is."""

    def __init__(self, lowest: int, fields: tuple[QuantisedField, ...]):
        self.lowest, self.fields = lowest, fields


def _word_type(max_num_bits) -> DataType:
    if max_num_bits not in WORD_BITS:
        raise OctantsRuntimeError(
            f"max_num_bits is one of {', '.join(map(str, WORD_BITS))}, not {max_num_bits!r}: No primitive int type has so many bits"
        )
    return dtypes[f"u{max_num_bits}"]


class BitpackedFields:
    """Fields of quantised numbers whose elements at an index share one word of ``max_num_bits`` bits.

    ``word = oc.BitpackedFields(32); word.place(x, y); oc.root.dense(oc.i, 8).place(word)``
    """

    def __init__(self, max_num_bits: int):
        self._word = _word_type(max_num_bits)
        self._max_num_bits = max_num_bits
        #: Fields with their lowest bit and the exponent that they share.
        self._members: list[tuple[QuantisedField, int, SharedExponent | None]] = []
        self._used = 0
        self._is_placed = False

    def place(self, *fields, shared_exponent: bool = False) -> None:
        """Adds fields, in this order from the lowest bit. With ``shared_exponent`` these, all of them ``quant.float``, have one exponent."""
        if self._is_placed:
            raise OctantsRuntimeError("these bit-packed fields are placed already")
        scalars: list[QuantisedField] = []
        for field in fields:
            if not isinstance(field, _PackedField):
                raise ValueError(
                    f"{field!r} cannot be bit-packed: Only a QuantType can be a member of a word, fields of oc.types.quant"
                )
            scalars += field._scalars()
        for at, field in enumerate(scalars):
            field._require_no_place()
            if any(field is member for member, _, _ in self._members) or field in scalars[:at]:
                raise OctantsRuntimeError(f"{field._description()} is in these bit-packed fields already")
        shared = self._share(scalars) if shared_exponent else None
        for field in scalars:
            lowest = self._take(field.dtype.bits if shared else field.dtype.all_bits)
            self._members.append((field, lowest, shared))

    def _share(self, fields: list[QuantisedField]) -> SharedExponent:
        if len(fields) < 2:
            raise OctantsSyntaxError("At least 2 fields need to be placed when shared_exponent=True")
        for field in fields:
            if field.dtype.kind != "float":
                raise OctantsRuntimeError(f"only oc.types.quant.float has an exponent to share, not {field.dtype!r}")
            if field.dtype.exponent != fields[0].dtype.exponent:
                raise OctantsRuntimeError(
                    f"fields that share an exponent must have exactly the same exponent type: {field.dtype!r} and {fields[0].dtype!r}"
                )
            if (field.dtype.compute.name == "f64") != (fields[0].dtype.compute.name == "f64"):
                raise OctantsRuntimeError("fields that share an exponent are calculated with alike: as f64, or not")
            if field.dtype.bits == field.dtype.signed:
                raise OctantsRuntimeError(
                    f"{field.dtype!r} has no digits: with a shared exponent the first one is stored, too"
                )
        return SharedExponent(self._take(fields[0].dtype.exponent), tuple(fields))

    def _take(self, bits: int) -> int:
        lowest = self._used
        if lowest + bits > self._max_num_bits:
            raise OctantsRuntimeError(
                f"bit-packed fields overflow: {lowest + bits} bits used out of {self._max_num_bits}"
            )
        self._used += bits
        return lowest

    def _place(self, node, offset: list[int]) -> None:
        from .scalar import ScalarField

        if not self._members:
            raise OctantsRuntimeError("bit-packed fields without fields cannot be placed")
        if self._is_placed:
            raise OctantsRuntimeError("This variable has been placed: these bit-packed fields are placed already")
        for field, _, _ in self._members:
            field._require_no_place()
        self._is_placed = True
        words = ScalarField(self._word, "words of bit-packed fields")
        words._place(node, offset)
        for field, lowest, shared in self._members:
            field._bind(words, lowest, None, offset, shared, len(self._members))


class QuantArray:
    """What ``quant_array`` gives: cells that share a word, for the elements of one field."""

    def __init__(self, node, extents: list[int], max_num_bits):
        self._word = _word_type(max_num_bits)
        self._node, self._extents, self._max_num_bits = node, extents, max_num_bits
        self._is_taken = False

    def place(self, *fields, offset=None):
        """Puts a field of quantised numbers there, one alone."""
        from .node import origin
        from .scalar import ScalarField

        if len(fields) != 1 or not isinstance(fields[0], QuantisedField) or self._is_taken:
            raise OctantsRuntimeError("a quant_array holds one field of quantised numbers")
        count = 1
        for extent in self._extents:
            count *= extent
        field = fields[0]
        bits = field.dtype.all_bits
        if count * bits > self._max_num_bits:
            raise OctantsRuntimeError(
                f"a quant_array overflows: {count} elements of {bits} bits do not fit {self._max_num_bits} bits"
            )
        field._require_no_place()
        first = origin(offset)
        if first and len(first) != len(self._extents):
            raise OctantsRuntimeError(
                f"an offset has a number for each axis: there are {len(self._extents)}, not {len(first)}"
            )
        if any(first) and self._node._tree.is_sparse:
            raise OctantsRuntimeError("fields in a quant_array of a tree with sparse nodes begin at index 0")
        self._is_taken = True
        words = ScalarField(self._word, "words of a quant_array")
        words._place(self._node, [])
        field._bind(words, 0, tuple(self._extents), first, None, count)
        return self


# ---- making -----------------------------------------------------------------------------------------------------------------


def require_bare(shape, order, offset, needs_grad, needs_dual) -> None:
    """Refuses what a field of quantised numbers cannot be made with."""
    if needs_grad or needs_dual:
        raise OctantsRuntimeError(
            "a quantised type is not supported for field with `needs_grad=True` or `needs_dual=True`. Its elements are rounded, which has no "
            "derivative: keep what is differentiated in an ordinary field, and quantise copies of it"
        )
    if shape is not None or order is not None or offset is not None:
        raise OctantsRuntimeError(
            "a field of quantised numbers has no shape, order or offset of its own; oc.BitpackedFields or quant_array places it"
        )


def declared(field: Any) -> Any:
    """A new field, which must be placed before anything runs."""
    from .builder import current_root
    from .field import user_line

    line = user_line()
    for part in (field, *field._scalars()):
        part._origin_text = line
    current_root()._declared.extend(weakref.ref(part) for part in field._scalars())
    return field


def quantised_type(kind: str, bits: int, signed: bool, compute, default: str, scale=None, exponent: int = 0) -> QuantisedType:  # fmt: skip
    """A type of quantised numbers, which are calculated with as ``compute``."""
    chosen = dtypes[default] if compute is None else data_type(compute)
    if chosen.is_integral != (kind == "int"):
        raise ValueError(f"compute is {'an integer' if kind == 'int' else 'a real'} type, not {chosen}")
    return QuantisedType(kind, bits, signed, chosen, scale, exponent)
