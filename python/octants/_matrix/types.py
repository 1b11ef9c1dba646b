"""Types of vectors and matrices: annotations of kernel parameters, element types of arrays, and constructors.

Inside a kernel the compiler recognises a type by its mark ``__octants__`` and compiles the call; on the host the call gives a
``Vector`` or ``Matrix``.
"""

from __future__ import annotations

from .._octants import DataType, plain_array, trace_call
from ..exceptions import OctantsSyntaxError, OctantsTypeError
from . import Matrix, array_of, cast_array, holds_expression, matrix_over
from .promotion import data_type, default_integer, default_real, default_unsigned, numpy_type

#: A type with more entries is allowed, with a warning: every operation on it is compiled entry by entry.
MANY_ENTRIES = 144


class MatrixType:
    """Matrices of ``n`` rows and ``m`` columns: make one with ``oc.types.matrix(n, m, dtype)``, then call it to make values.

    One number fills the matrix; otherwise numbers, vectors and lists are put one after the other, by rows, and must give
    ``n * m`` numbers. A matrix of the same shape is cast. Without ``dtype`` it is the annotation of a func's parameter or result that
    has this shape and entries of any type.
    """

    __slots__ = ("__weakref__", "dtype", "m", "n", "ndim")
    __octants__ = "matrix_type"

    unpacked = False

    def __init__(self, n: int, m: int, dtype, ndim: int = 2):
        self.n = _extent("n", n)
        self.m = _extent("m", m)
        self.ndim = ndim
        self._set_dtype(dtype)
        if n * m > MANY_ENTRIES:
            import warnings

            warnings.warn(
                f"{self!r} has {n * m} entries; more than {MANY_ENTRIES} take long to compile: consider an ndarray",
                UserWarning,
                stacklevel=3,
            )

    def _set_dtype(self, dtype) -> None:
        self.dtype: DataType | None = None if dtype is None else data_type(dtype)

    def get_shape(self) -> tuple[int, ...]:
        """``(n,)`` for vectors, ``(n, m)`` for matrices."""
        return (self.n,) if self.ndim == 1 else (self.n, self.m)

    def __call__(self, *args):
        if self.dtype is not None and not self.unpacked:
            entries = plain_array(args[0] if len(args) == 1 else args, self.dtype)
            if entries is not None and entries.size == self.n * self.m:
                return matrix_over(self._shaped(entries), self.dtype)
        if holds_expression(args):
            return trace_call(self, args, {})
        if self.unpacked:
            raise OctantsSyntaxError(f"{self!r} has no values of its own; it is for members of an @oc.dataclass")
        self.require_dtype("a type that makes values")
        if len(args) == 1 and isinstance(args[0], Matrix):
            return self._cast(args[0])
        numbers: list = []
        for argument in args:
            _gather(argument, numbers)
        count = self.n * self.m
        if len(numbers) == 1:
            numbers *= count
        if len(numbers) != count:
            every = f" or {count} numbers" if count > 1 else ""
            raise OctantsTypeError(f"{self!r} takes one number{every}, got {len(numbers)}")
        return self.from_numbers(numbers)

    def from_numbers(self, numbers):
        """The matrix with the given entries, by rows."""
        entries = plain_array(numbers, self.dtype)
        return matrix_over(self._shaped(array_of(numbers, self.dtype) if entries is None else entries), self.dtype)

    def _shaped(self, entries):
        shape = self.get_shape()
        return entries if entries.shape == shape else entries.reshape(shape)

    def _cast(self, matrix: Matrix):
        if matrix.get_shape() != self.get_shape():
            raise OctantsTypeError(f"{self!r} cannot be made from a matrix of shape {matrix.get_shape()}")
        return matrix_over(cast_array(matrix.entries, numpy_type(self.dtype)), self.dtype)

    def require_dtype(self, what: str) -> None:
        """Refuses a type without data type, which says too little for anything but an annotation of a func."""
        if self.dtype is None:
            text = f"{what}: {self!r} has no data type; write for example {repr(self)[:-1]}, oc.f32)"
            raise OctantsTypeError(text)

    def ndarray(self, shape, needs_grad=False, *, needs_dual=False):
        """A zeroed array of such matrices."""
        from .._arrays import ndarray

        return ndarray(self, shape, needs_grad=needs_grad, needs_dual=needs_dual)

    def field(self, shape=None, **options):
        """A field of such vectors or matrices; the options are those of ``oc.field``."""
        from .._fields.making import field

        return field(self, shape, **options)

    def __instancecheck__(self, instance) -> bool:
        return (
            isinstance(instance, Matrix)
            and instance.get_shape() == self.get_shape()
            and (self.dtype is None or instance.dt in (None, self.dtype))
        )

    def __eq__(self, other):
        if not isinstance(other, MatrixType):
            return NotImplemented
        return self._key() == other._key()

    def __hash__(self):
        return hash(self._key())

    def _key(self):
        return self.get_shape(), self.dtype and self.dtype.name, self.unpacked

    def __repr__(self):
        return f"oc.types.matrix({self.n}, {self.m}{'' if self.dtype is None else f', {self.dtype}'})"

    def __reduce__(self) -> tuple:
        return matrix, (self.n, self.m, self.dtype)


class VectorType(MatrixType):
    """Vectors of ``n`` entries: make one with ``oc.types.vector(n, dtype)``, then call it to make values."""

    __slots__ = ("unpacked",)

    def __init__(self, n: int, dtype, unpacked: bool = False):
        self.unpacked = bool(unpacked)
        super().__init__(n, 1, dtype, 1)

    def __repr__(self):
        dtype = "" if self.dtype is None else f", {self.dtype}"
        return f"oc.types.vector({self.n}{dtype}{', unpacked=True' if self.unpacked else ''})"

    def __reduce__(self) -> tuple:
        return vector, (self.n, self.dtype, self.unpacked)


_DEFAULTS = {"real": default_real, "integer": default_integer, "unsigned": default_unsigned}


def _of_session(base: type) -> type:
    """Types whose entries have a default type of the session that is current whenever somebody asks."""

    class OfSession(base):
        __slots__ = ("_name", "default_kind")

        def __init__(self, name: str, default_kind: str, *shape: int):
            self._name, self.default_kind = name, default_kind
            super().__init__(*shape, None)

        def _set_dtype(self, dtype) -> None:
            pass

        @property
        def dtype(self) -> DataType:
            return _DEFAULTS[self.default_kind]()

        def __reduce__(self) -> tuple:
            return _of_math, (self._name,)

    OfSession.__name__ = OfSession.__qualname__ = base.__name__
    return OfSession


#: Such types of matrices and vectors: ``SessionVectorType("vec2", "real", 2)``, by the name that ``oc.math`` has for it.
SessionMatrixType = _of_session(MatrixType)
SessionVectorType = _of_session(VectorType)


def _of_math(name: str):
    from .. import math

    return getattr(math, name)


def matrix(n=None, m=None, dtype=None) -> MatrixType:
    """The type of matrices with ``n`` rows and ``m`` columns of ``dtype``; without ``dtype``, an annotation for funcs."""
    if n is None or m is None:
        raise OctantsTypeError(
            "oc.types.matrix(n, m, dtype) takes the number of rows, the number of columns and a data type"
        )
    return MatrixType(n, m, dtype)


def vector(n=None, dtype=None, unpacked=False) -> VectorType:
    """The type of vectors with ``n`` entries of ``dtype``; without ``dtype``, an annotation for funcs.

    ``unpacked=True`` makes a member of an ``@oc.dataclass`` that is kept as ``n`` scalar members.
    """
    if n is None:
        raise OctantsTypeError("oc.types.vector(n, dtype) takes the number of entries and a data type")
    return VectorType(n, dtype, unpacked)


def _extent(name: str, value) -> int:
    if isinstance(value, bool) or not hasattr(value, "__index__") or value.__index__() < 1:
        raise OctantsTypeError(f"{name} is a positive integer, not {value!r}")
    return value.__index__()


def _gather(value, numbers: list) -> None:
    """Appends the numbers of a number, matrix, array or nested list, by rows."""
    if isinstance(value, Matrix):
        numbers.extend(value.entries.ravel().tolist())
    elif isinstance(value, (int, float)):
        numbers.append(value)
    elif isinstance(value, (str, bytes, dict, set, frozenset)):
        raise OctantsTypeError(f"a matrix is made from numbers, not from {type(value).__name__}")
    elif hasattr(value, "item") and not getattr(value, "ndim", 0):
        numbers.append(value.item())
    elif hasattr(value, "__iter__"):
        for part in value:
            _gather(part, numbers)
    else:
        raise OctantsTypeError(f"a matrix is made from numbers, not from {type(value).__name__}")
