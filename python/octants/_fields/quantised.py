"""Quantised fields on the host: numbers of a few bits each, which share words, the elements of an ordinary field.

``BitpackedFields`` puts elements of several fields into one word, ``quant_array`` several elements of one field. What kernels do with
them is in ``_quantised``.
"""

from __future__ import annotations

from .._octants import DataType, dtypes, host_only
from .._promotion import data_type, numpy_type
from ..exceptions import OctantsRuntimeError

TYPE_CHECKING = False  # as `typing` says it, without its weight
if TYPE_CHECKING:
    from typing import Any

WORD_BITS = (32, 64)


class QuantisedType:
    """The type of a number of a few bits: ``oc.types.quant.int(5)``, ``oc.types.quant.fixed(10, max_value=2.0)``."""

    __slots__ = ("bits", "compute", "scale", "signed")

    def __init__(self, bits: int, signed: bool, compute: DataType, scale: float | None):
        if not isinstance(bits, int) or isinstance(bits, bool) or not 1 <= bits <= 64:
            raise ValueError(f"bits is an integer from 1 to 64, not {bits!r}")
        self.bits, self.signed, self.compute, self.scale = bits, bool(signed), compute, scale

    def __repr__(self):
        kind = "int" if self.scale is None else "fixed"
        scale = "" if self.scale is None else f", scale={self.scale!r}"
        return f"oc.types.quant.{kind}({self.bits}, signed={self.signed}, compute={self.compute}{scale})"

    def __eq__(self, other):
        return isinstance(other, QuantisedType) and self._key() == other._key()

    def __hash__(self):
        return hash(self._key())

    def _key(self):
        return (self.bits, self.signed, self.compute.name, self.scale)

    @property
    def bounds(self) -> tuple[int, int]:
        """The least and the greatest number of steps."""
        return (-(1 << (self.bits - 1)), (1 << (self.bits - 1)) - 1) if self.signed else (0, (1 << self.bits) - 1)


class QuantisedField:
    """A field of quantised numbers, made by ``oc.field(oc.types.quant.int(5))`` and placed by ``oc.BitpackedFields`` or ``quant_array``."""

    __octants_encoded__ = True

    def __init__(self, dtype: QuantisedType, name: str):
        self.dtype = dtype
        self.name = name
        self._words: Any = None

    # ---- placing ----

    def _bind(self, words, bits_above: int, extents: tuple[int, ...] | None, offset: list[int]) -> None:
        if self._words is not None:
            raise OctantsRuntimeError(f"the field {self.name or self.dtype!r} is placed already")
        from .._matrix import Vector

        kind = self.dtype
        self._words, self._bits_above = words, bits_above
        self._extents: Any = None if extents is None else Vector(list(extents), dt=dtypes["i32"])
        self._offset = offset
        self._word: DataType = words.dtype
        self._word_bits = int(self._word.name[1:])
        self._signed_word = dtypes[f"i{self._word_bits}"]
        self._bits, self._signed = kind.bits, kind.signed
        self._compute = kind.compute
        self._scale: Any = kind.scale
        self._mask = (1 << kind.bits) - 1
        self._least, self._greatest = kind.bounds

    def _placed(self) -> Any:
        if self._words is None:
            raise OctantsRuntimeError(
                f"the field {self.name or self.dtype!r} is not placed: put it into oc.BitpackedFields or into a quant_array"
            )
        return self._words

    @property
    def shape(self) -> tuple[int, ...]:
        """How many elements each axis has."""
        shape = self._placed().shape
        return shape if self._extents is None else tuple(n * int(m) for n, m in zip(shape, self._extents, strict=True))

    @property
    def _rank(self) -> int:
        return len(self.shape)

    @property
    def _bounds(self) -> tuple:
        origin = self._offset or [0] * self._rank
        return tuple((first, first + n) for first, n in zip(origin, self.shape, strict=True))

    @property
    def snode(self):
        """The node of its words."""
        return self._placed().snode

    def parent(self, n: int = 1):
        """A node above it."""
        return self._placed().parent(n)

    # ---- elements, on the host ----

    def __getitem__(self, index):
        cell, above = self._where(index)
        return self._decode(_unsigned(self._word_bits, self._placed()[cell]) << above & self._all).item()

    def __setitem__(self, index, value):
        import numpy

        cell, above = self._where(index)
        shift = self._word_bits - self._bits - above
        words = self._placed()
        bits = int(self._encode(numpy.asarray(value))) << shift
        words[cell] = (_unsigned(self._word_bits, words[cell]) & ~(self._mask << shift)) | bits

    def _where(self, index):
        """The index of an element's word, and how many bits are above the element's."""
        at = index if isinstance(index, tuple) else () if index is None else (index,)
        if len(at) != self._rank:
            raise AssertionError(
                f"a field of {self._rank} axes is indexed by {self._rank} numbers; slices are not supported"
            )
        if self._extents is None:
            return at, self._bits_above
        number = 0
        for one, extent in zip(at, self._extents, strict=True):
            number = number * int(extent) + one % int(extent)
        cell = tuple(one // int(extent) for one, extent in zip(at, self._extents, strict=True))
        return cell, self._word_bits - self._bits * (number + 1)

    @property
    def _all(self) -> int:
        return (1 << self._word_bits) - 1

    def _decode(self, aligned):
        """Numbers, of the topmost bits of words."""
        import numpy

        word = numpy.dtype(f"u{self._word_bits // 8}")
        kind = word.str.replace("u", "i") if self._signed else word
        steps = numpy.asarray(aligned, word).view(kind) >> numpy.array(self._word_bits - self._bits, kind)
        compute = numpy_type(self._compute)
        numbers = steps.astype(compute)
        return numbers if self._scale is None else numbers * compute.type(self._scale)

    def _encode(self, numbers):
        """The lowest bits of words, of numbers."""
        import numpy

        if self._scale is None:
            steps = numbers.astype(numpy_type(self._compute)).astype(numpy.int64)
        else:
            compute = numpy_type(self._compute).type
            scaled = numbers.astype(compute) / compute(self._scale)
            scaled = numpy.copysign(numpy.floor(numpy.abs(scaled) + compute(0.5)), scaled)
            steps = numpy.clip(scaled.astype(numpy.float64), self._least, self._greatest).astype(numpy.int64)
        return steps.astype(numpy.uint64) & numpy.uint64(self._mask)

    def _spread(self, words):
        """The words of all elements, and how many bits are above each element's."""
        import numpy

        if self._extents is None:
            return words, numpy.full(words.shape, self._bits_above)
        number = numpy.zeros((1,) * words.ndim, int)
        for axis, extent in enumerate(self._extents):
            words = words.repeat(int(extent), axis)
            shape = [-1 if other == axis else 1 for other in range(words.ndim)]
            number = number * int(extent) + (numpy.arange(words.shape[axis]) % int(extent)).reshape(shape)
        return words, self._word_bits - self._bits * (number + 1)

    def to_numpy(self, dtype=None):
        """A copy of the numbers as a numpy array."""
        host_only("to_numpy")
        words, above = self._spread(self._placed().to_numpy())
        numbers = self._decode(words << above.astype(words.dtype))
        return numbers if dtype is None else numbers.astype(dtype)

    def from_numpy(self, arr) -> None:
        """Sets all elements."""
        host_only("from_numpy")
        import numpy

        arr = numpy.asarray(arr)
        if arr.shape != self.shape:
            raise ValueError(f"the field has shape {self.shape}, and the array {arr.shape}")
        words = self._placed().to_numpy()
        encoded = self._encode(arr)
        if self._extents is None:
            shift = words.dtype.type(self._word_bits - self._bits - self._bits_above)
            mask = words.dtype.type(self._mask << int(shift))
            words = (words & ~mask) | (encoded.astype(words.dtype) << shift)
        else:
            _, above = self._spread(words)
            words = numpy.zeros_like(words)
            shifted = encoded << (self._word_bits - self._bits - above).astype(numpy.uint64)
            for axis, extent in enumerate(self._extents):
                split = (*shifted.shape[:axis], -1, int(extent), *shifted.shape[axis + 1 :])
                shifted = numpy.bitwise_or.reduce(shifted.reshape(split), axis + 1)
            words |= shifted.astype(words.dtype)
        self._placed().from_numpy(words)

    def fill(self, val) -> None:
        """Sets every element."""
        host_only("fill")
        import numpy

        self.from_numpy(numpy.full(self.shape, val))

    def __iter__(self):
        raise NotImplementedError(
            "a field is looped over in kernels; on the host, loop over to_numpy() or over indices"
        )

    def __repr__(self):
        return (
            f"<{len(self.shape)}-D quantised field of {self.dtype!r}>"
            if self._words is not None
            else "<unplaced quantised field>"
        )


def _unsigned(bits: int, number) -> int:
    return int(number) & ((1 << bits) - 1)


def _word_type(max_num_bits) -> DataType:
    if max_num_bits not in WORD_BITS:
        raise OctantsRuntimeError(
            f"max_num_bits is {' or '.join(map(str, WORD_BITS))} in Octants, not {max_num_bits!r}"
        )
    return dtypes[f"u{max_num_bits}"]


class BitpackedFields:
    """Fields of quantised numbers whose elements at an index share one word of ``max_num_bits`` bits.

    ``word = oc.BitpackedFields(32); word.place(x, y); oc.root.dense(oc.i, 8).place(word)``
    """

    def __init__(self, max_num_bits: int):
        self._word = _word_type(max_num_bits)
        self._max_num_bits = max_num_bits
        self._members: list[tuple[QuantisedField, int]] = []
        self._used = 0
        self._is_placed = False

    def place(self, *fields, shared_exponent: bool = False) -> None:
        """Adds fields, in this order from the lowest bit."""
        if shared_exponent:
            raise OctantsRuntimeError("shared exponents are not in Octants yet; use oc.types.quant.fixed")
        if self._is_placed:
            raise OctantsRuntimeError("these bit-packed fields are placed already")
        for field in fields:
            if not isinstance(field, QuantisedField):
                raise ValueError(f"{field!r} cannot be bit-packed: place takes fields of quantised numbers")
            if any(field is member for member, _ in self._members):
                raise OctantsRuntimeError(f"{field!r} is in these bit-packed fields already")
            if self._used + field.dtype.bits > self._max_num_bits:
                raise OctantsRuntimeError(
                    f"bit-packed fields overflow: {self._used + field.dtype.bits} bits used out of {self._max_num_bits}"
                )
            self._members.append((field, self._max_num_bits - self._used - field.dtype.bits))
            self._used += field.dtype.bits

    def _place(self, node, offset: list[int]) -> None:
        from .scalar import ScalarField

        if not self._members:
            raise OctantsRuntimeError("bit-packed fields without fields cannot be placed")
        if self._is_placed:
            raise OctantsRuntimeError("these bit-packed fields are placed already")
        self._is_placed = True
        words = ScalarField(self._word, "words of bit-packed fields")
        words._place(node, offset)
        for field, above in self._members:
            field._bind(words, above, None, offset)


class QuantArray:
    """What ``quant_array`` gives: cells that share a word, for the elements of one field."""

    def __init__(self, node, extents: list[int], max_num_bits):
        self._word = _word_type(max_num_bits)
        self._node, self._extents, self._max_num_bits = node, extents, max_num_bits
        self._is_taken = False

    def place(self, *fields, offset=None):
        """Puts a field of quantised numbers there, one alone."""
        from .scalar import ScalarField

        if len(fields) != 1 or not isinstance(fields[0], QuantisedField) or self._is_taken:
            raise OctantsRuntimeError("a quant_array holds one field of quantised numbers")
        if offset is not None:
            raise OctantsRuntimeError("fields in a quant_array begin at index 0")
        count = 1
        for extent in self._extents:
            count *= extent
        field = fields[0]
        if count * field.dtype.bits > self._max_num_bits:
            raise OctantsRuntimeError(
                f"a quant_array overflows: {count} elements of {field.dtype.bits} bits do not fit {self._max_num_bits} bits"
            )
        self._is_taken = True
        words = ScalarField(self._word, "words of a quant_array")
        words._place(self._node, [])
        field._bind(words, 0, tuple(self._extents), [])
        return self


def quantised_type(bits: int, signed: bool, compute, default: str, scale: float | None) -> QuantisedType:
    """A type of quantised numbers, which are calculated with as ``compute``."""
    chosen = dtypes[default] if compute is None else data_type(compute)
    if chosen.is_integral != (scale is None):
        raise ValueError(f"compute is {'an integer' if scale is None else 'a real'} type, not {chosen}")
    return QuantisedType(bits, signed, chosen, scale)
