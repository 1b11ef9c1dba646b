"""Vectors and matrices on the host: values that hold a numpy array, with the operators that they have in kernels.

Inside a kernel the compiler recognises the constructors by their mark ``__octants__`` and never runs them. Methods are in
``methods``, typed constructors in ``types``. This module knows nothing of devices.
"""

from __future__ import annotations

import sys
from collections import defaultdict

from .._octants import DataType, Expr, plain_array, trace_call
from ..exceptions import OctantsIndexError, OctantsSyntaxError, OctantsTypeError
from .conversion import as_type, converted
from .operators import Operators, by_ufunc, declared_type
from .promotion import data_type, is_weak, numpy_type, promoted
from .swizzles import SWIZZLES, swizzle_properties


class Matrix(Operators):
    """A small matrix: ``oc.Matrix([[1, 2], [3, 4]], dt=oc.f32)``. A flat list gives a vector.

    ``n`` and ``m`` are the numbers of rows and columns, ``ndim`` is 1 for a vector and 2 for a matrix. ``entries`` is the numpy array that
    holds it; ``dt`` is the data type that was declared, or ``None`` for plain numbers, which
    have the default types when a kernel uses them.
    """

    __slots__ = ("__weakref__", "_comparison", "dt", "entries", "m", "n")
    __octants__ = "Matrix"

    ndim = 2
    vars().update(swizzle_properties())

    _ranks = (1, 2)
    _wanted = "oc.Matrix takes a list of rows of equal length, or a flat list of numbers"

    def __new__(cls, arr, *args, dt=None, **old):
        if args or old or type(arr) is int:
            if (field := cls._old_field((arr, *args), dt, old)) is not None:
                return field
            if old or len(args) + (dt is not None) > 1:
                raise OctantsTypeError(f"oc.{cls.__name__} takes a list of numbers and a type `dt`")
            dt = args[0] if args else dt
        if dt is None or type(dt) is DataType:
            entries = plain_array(arr, dt)
            if entries is not None and entries.ndim in cls._ranks:
                return matrix_over(entries, dt)
        if isinstance(arr, Expr) or (isinstance(arr, (list, tuple)) and holds_expression(arr)):
            return trace_call(cls, (arr,), {} if dt is None else {"dt": dt})
        declared = None if dt is None else data_type(dt)
        if declared is None and isinstance(arr, Matrix):
            declared = arr.dt
        entries = array_of(arr, declared)
        if entries.ndim not in cls._ranks or entries.size == 0:
            raise OctantsTypeError(f"{cls._wanted}, not values of shape {entries.shape}")
        return matrix_over(entries, declared)

    @classmethod
    def _old_field(cls, args: tuple, dt, options: dict):
        """The field that this form of Taichi's means to a program that runs as such a one; else ``None``."""
        if "taichi" not in sys.modules:
            return None
        from .._peer import taichi

        if not taichi.is_installed():
            return None
        return taichi.old_field(issubclass(cls, Vector), args, options if dt is None else {**options, "dt": dt})

    def __class_getitem__(cls, parameters):
        """``oc.Matrix[n, m, dtype]`` and ``oc.Vector[n, dtype]``: the types ``oc.types.matrix(...)`` and ``oc.types.vector(...)``."""
        from .types import matrix, vector

        make = vector if issubclass(cls, Vector) else matrix
        return make(*parameters) if isinstance(parameters, tuple) else make(parameters)

    # ---- shape and entries ----

    @property
    def comparison(self) -> str | None:
        """The sign of the comparison that gave it, if one did."""
        return getattr(self, "_comparison", None)

    def get_shape(self) -> tuple[int, ...]:
        """``(n,)`` for a vector, ``(n, m)`` for a matrix."""
        return self.n, self.m

    def to_numpy(self):
        """The entries as a numpy array, which shares them: what is written to it changes the matrix."""
        return self.entries

    def to_list(self) -> list:
        """The entries as Python numbers in a list, of lists if it is a matrix."""
        return self.entries.tolist()

    def constant(self) -> tuple[tuple[int, ...], DataType | None, list]:
        """Shape, declared type and entries in row-major order as Python numbers: all that a kernel needs."""
        return self.entries.shape, self.dt, self.entries.ravel().tolist()

    def __len__(self):
        return self.n

    def __iter__(self):
        entries = self.entries
        return iter(entries) if entries.ndim == 1 else (matrix_over(row.copy(), self.dt) for row in entries)

    def __getitem__(self, index):
        # The usual index first: everything else is looked at more closely.
        entries, kind = self.entries, type(index)
        if kind is int and entries.ndim == 1:
            return entries[index]
        if kind is tuple and len(index) == 2 and entries.ndim == 2:
            first, second = index
            if type(first) is int and type(second) is int:
                return entries[index]
            is_quick = type(first) in _INDICES and type(second) in _INDICES
        else:
            is_quick = kind is slice and entries.ndim == 1
        if is_quick:
            part = entries[index]
            if part.size:
                return matrix_over(part.copy(), self.dt)
        if _is_expression_index(index):
            return _traced_item(self, index)
        return matrix_over(self.entries[checked_index(self, index)], self.dt, copy=True)

    def __setitem__(self, index, value):
        # The usual index, and a number that the type has.
        entries = self.entries
        limit = _LIMITS[entries.dtype.char].get(type(value))
        if limit is not None and -limit < value < limit:
            if entries.ndim == 1:
                is_entry = type(index) is int
            else:
                is_entry = type(index) is tuple and [*map(type, index)] == _TWO_INTEGERS
            if is_entry:
                entries[index] = value
                return
        index = checked_index(self, index)
        target = self.entries[index]
        if isinstance(value, Expr):
            raise OctantsTypeError("a matrix of the host cannot hold a value that is known only when the kernel runs")
        if isinstance(value, (Matrix, list, tuple)) or getattr(value, "ndim", 0):
            value = array_of(value)
            if value.shape != target.shape:
                raise OctantsTypeError(
                    f"cannot assign values of shape {value.shape} to entries of shape {target.shape}"
                )
        self.entries[index] = cast_array(value, self.entries.dtype)

    def _swizzled(self, swizzle):
        """The entries that a name of several letters stands for."""
        entries, positions = self.entries, swizzle.positions
        if entries.ndim != 1 or max(positions) >= len(entries):
            self._refuse(swizzle.name, swizzle.letters)
        return matrix_over(entries.take(positions), self.dt)

    def _refuse(self, name, letters):
        """Says why there are no such components."""
        _positions(self, name, letters)

    def __dir__(self):
        return [name for name in object.__dir__(self) if _swizzle(name) is None]

    def __setattr__(self, name, value):
        position = _COMPONENTS.get(name)
        if position is not None and self.ndim == 1 and position < self.n:
            self[position] = value
            return
        letters = _swizzle(name)
        if letters is None:
            raise AttributeError(
                f"{type(self).__name__!r} object has no attribute {name!r} to set", name=name, obj=self
            )
        positions = _positions(self, name, letters)
        if len(set(name)) < len(name):
            raise OctantsSyntaxError(f"the swizzle {name!r} names a component twice, so it cannot be written")
        if not isinstance(value, (Matrix, list, tuple)) and not getattr(value, "ndim", 0):
            raise OctantsTypeError(f"writing {name!r} takes a vector of {len(name)} numbers, not {value!r}")
        value = array_of(value)
        if value.shape != (len(name),):
            raise OctantsTypeError(f"writing {name!r} takes a vector of {len(name)} numbers, not shape {value.shape}")
        self.entries[positions] = cast_array(value, self.entries.dtype)

    # ---- text, truth, copies ----

    def __repr__(self):
        return str(self.entries)

    def __format__(self, spec):
        return str(self.entries) if not spec else _formatted(self.entries.tolist(), spec)

    def __bool__(self):
        if self.entries.dtype.kind != "b":
            return True
        if self.entries.size == 1 or self.comparison == "==":
            return bool(self.entries.all())
        if self.comparison == "!=":
            return bool(self.entries.any())
        raise OctantsTypeError(
            "a comparison of matrices gives one truth for each entry; say which with .all() or .any()"
        )

    __hash__ = object.__hash__

    def __reduce__(self):
        return matrix_over, (self.entries, self.dt)

    def __copy__(self):
        return matrix_over(self.entries.copy(), self.dt)

    def __deepcopy__(self, memo):
        return self.__copy__()

    def __array__(self, dtype=None, copy=None):
        # A matrix is a value: who did not ask for its own memory gets a copy.
        return as_type(self.entries if copy is False else self.entries.copy(), dtype, copy)

    def __array_ufunc__(self, ufunc, method, *inputs, **kwargs):
        if method == "__call__" and not kwargs and ufunc.nin == ufunc.nout == 1:
            result = ufunc(self.entries)
            return matrix_over(result, declared_type(result.dtype, self.dt) if result.dtype.kind != "b" else None)
        if any(isinstance(x, Expr) for x in inputs):
            return NotImplemented
        operator = by_ufunc(ufunc.__name__) if method == "__call__" and not kwargs else None
        if operator is not None:
            return operator(*inputs)
        arrays = [x.entries if isinstance(x, Matrix) else x for x in inputs]
        result = getattr(ufunc, method)(*arrays, **kwargs)
        if method != "__call__" or type(result) is tuple:
            return result
        # Truths are of no declared type, as those of a comparison; keywords may ask for a type that is none of ours.
        keeps = not kwargs and result.dtype.kind != "b"
        declared = (x.dt for x in inputs if keeps and isinstance(x, Matrix))
        return matrix_over(result, declared_type(result.dtype, *declared))


class Vector(Matrix):
    """A small vector: ``oc.Vector([1, 2, 3], dt=oc.f32)``."""

    __slots__ = ()
    __octants__ = "Vector"

    ndim = 1
    m = 1
    _ranks = (1,)
    _wanted = "oc.Vector takes a flat list of numbers"

    def get_shape(self) -> tuple[int, ...]:
        """``(n,)``."""
        return (self.n,)


#: What is a matrix and no subclass that a program made.
TYPES = (Matrix, Vector)


# ---- making ---------------------------------------------------------------------------------------------------------------


def matrix_over(entries, dt: DataType | None = None, copy: bool = False):
    """A matrix over an array, or the number that an array without axes is."""
    rank = entries.ndim
    if rank == 1:
        result = _new(Vector)
    elif rank == 2:
        result = _new(Matrix)
        _set_columns(result, entries.shape[1])
    else:
        return entries[()]
    _set_rows(result, len(entries))
    _set_entries(result, entries.copy() if copy else entries)
    _set_type(result, dt)
    return result


_new = object.__new__
# A matrix lets nobody set attributes but swizzles; these are the slots themselves.
_set_entries, _set_type, _set_rows, _set_columns, _set_comparison = (
    vars(Matrix)[slot].__set__ for slot in ("entries", "dt", "n", "m", "_comparison")
)

_INDICES = (int, slice)
_TWO_INTEGERS = [int, int]
#: Where single components lie.
_COMPONENTS = {letter: position for letters in SWIZZLES for position, letter in enumerate(letters)}
#: By the types of a number and of entries: below which values setting an entry loses nothing but digits. Integers that would be rounded are left to numpy.
_LIMITS = defaultdict(dict, d={float: 1e300, int: 2**53}, f={float: 1e38, int: 2**24}, l={int: 2**63}, i={int: 2**31})


def compared(entries, sign: str):
    """What a comparison of matrices gives: a truth for each entry. The sign says what the whole is worth as one truth."""
    result = matrix_over(entries)
    if isinstance(result, Matrix):
        _set_comparison(result, sign)
    return result


def array_of(values, dt: DataType | None = None):
    """A new array with the numbers of a nested list, an array or a matrix, cast to ``dt`` if one is given."""
    import numpy

    if isinstance(values, Matrix):
        array = values.entries.copy()
    elif isinstance(values, numpy.ndarray):
        if values.dtype.kind not in "biuf":
            raise OctantsTypeError(f"a matrix cannot hold entries of numpy type {values.dtype}")
        array = values.copy()
    else:
        array = plain_array(values)
        array = _array_of_list(values, numpy) if array is None else array
    return array if dt is None else cast_array(array, numpy_type(dt))


def _array_of_list(values, numpy):
    # A set has no order.
    if isinstance(values, (str, bytes, dict, set, frozenset)) or not hasattr(values, "__iter__"):
        raise OctantsTypeError(f"a matrix or vector is made from a list of numbers, not from {type(values).__name__}")
    rows = list(values)
    # A vector is a row.
    rows = [row.entries.tolist() if isinstance(row, Matrix) and row.entries.ndim == 1 else row for row in rows]
    if any(isinstance(row, Matrix) for row in rows):
        raise OctantsTypeError("the rows of a matrix are lists of numbers or vectors, not matrices")
    if any(hasattr(row, "__len__") and not isinstance(row, str) for row in rows):
        rows = [list(row) if hasattr(row, "__len__") and not isinstance(row, (set, frozenset)) else row for row in rows]
        if any(not isinstance(row, list) or len(row) != len(rows[0]) for row in rows):
            raise OctantsTypeError("the rows of a matrix must be lists of equal length")
        flat, shape = [entry for row in rows for entry in row], (len(rows), len(rows[0]))
    else:
        flat, shape = rows, (len(rows),)
    for entry in flat:
        if not isinstance(entry, (int, float, numpy.number, numpy.bool_)):
            entry_type = type(entry).__name__
            raise OctantsTypeError(f"an entry of a matrix must be a number, not {entry_type}")
    array = numpy.array(flat)
    if array.dtype.kind == "f" and not any(isinstance(entry, (float, numpy.floating)) for entry in flat):
        # Integers of which some need all 64 bits: numpy takes a list of them for reals, and loses digits.
        array = numpy.array([int(entry) & (2**64 - 1) for entry in flat], numpy.uint64)
    if array.dtype.kind not in "biuf":
        raise OctantsTypeError("an entry of a matrix must fit in 64 bits")
    typed = [e.dtype for e in flat if isinstance(e, numpy.generic) and not is_weak(e.dtype)]
    if typed:
        weak = {numpy.asarray(e).dtype for e in flat if not isinstance(e, numpy.generic) or is_weak(e.dtype)}
        array = array.astype(promoted([(dtype, False) for dtype in {*typed, *weak}]))
    return array.reshape(shape)


def cast_array(value, numpy_dtype):
    """By value, as ``converted``; ``u1`` is whether not zero."""
    import numpy

    array = numpy.asarray(value)
    return array.copy() if array.dtype == numpy_dtype else converted(array, numpy_dtype)


def holds_expression(values) -> bool:
    """Whether some value in a list, tuple or dict is known only when the kernel runs."""
    for value in values.values() if isinstance(values, dict) else values:
        if isinstance(value, Expr) or (isinstance(value, (list, tuple, dict)) and holds_expression(value)):
            return True
    return False


# ---- indices --------------------------------------------------------------------------------------------------------------


def checked_index(matrix: Matrix, index):
    """An index of a matrix as a tuple of integers and slices."""
    parts = index if isinstance(index, tuple) else (index,)
    if len(parts) != matrix.ndim:
        raise OctantsIndexError(f"Expected {matrix.ndim} indices, got {len(parts)}")
    checked = []
    for part, extent in zip(parts, matrix.entries.shape, strict=True):
        if isinstance(part, slice):
            if not len(range(*part.indices(extent))):
                raise OctantsIndexError(f"the slice {part} of an axis of {extent} entries is empty")
        elif isinstance(part, (bool, float)) or not hasattr(part, "__index__"):
            raise OctantsTypeError(f"indices of a matrix must be integers or slices, not {type(part).__name__}")
        checked.append(part)
    return tuple(checked)


def _is_expression_index(index) -> bool:
    return isinstance(index, Expr) or (isinstance(index, tuple) and any(isinstance(part, Expr) for part in index))


def _traced_item(matrix: Matrix, index):
    from operator import getitem

    return trace_call(getitem, (matrix, index), {})


def _swizzle(name: str) -> str | None:
    """The set of letters that a name is a swizzle of."""
    if 1 <= len(name) <= 4:
        for letters in SWIZZLES:
            if all(letter in letters for letter in name):
                return letters
    return None


def _positions(matrix: Matrix, name: str, letters: str) -> list[int]:
    if matrix.ndim != 1:
        raise OctantsSyntaxError(f"a matrix has no components such as {name!r}; swizzles are of vectors")
    positions = [letters.index(letter) for letter in name]
    if max(positions) >= matrix.n:
        has = ", ".join(letters[: matrix.n])
        raise OctantsSyntaxError(f"a vector of {matrix.n} entries has the components {has}; {name!r} asks for another")
    return positions


def swizzle_positions(matrix: Matrix, name: str) -> list[int]:
    """The positions of the components that a swizzle names."""
    letters = _swizzle(name)
    return [] if letters is None else _positions(matrix, name, letters)


def _formatted(values, spec: str) -> str:
    if isinstance(values, list):
        return "[" + ", ".join(_formatted(value, spec) for value in values) + "]"
    return format(values, spec)
