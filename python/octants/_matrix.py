"""Vectors and matrices on the host: values that hold a numpy array, with the operators that they have in kernels.

Inside a kernel the compiler recognises the constructors by their mark ``__octants__`` and never runs them. Methods are in
``_matrix_methods``, typed constructors in ``_matrix_types``. This module knows nothing of devices.
"""

from __future__ import annotations

from ._matrix_operators import Operators, by_ufunc, declared_type
from ._octants import DataType, Expr, trace_call
from ._promotion import data_type, is_weak, numpy_type, promoted
from .exceptions import OctantsIndexError, OctantsSyntaxError, OctantsTypeError

#: Names of components, by the letters of which a swizzle is made.
SWIZZLES = ("xyzw", "rgba", "stpq")


class Matrix(Operators):
    """A small matrix: ``oc.Matrix([[1, 2], [3, 4]], dt=oc.f32)``. A flat list gives a vector.

    ``entries`` is the numpy array that holds it; ``dt`` is the data type that was declared, or ``None`` for plain numbers, which
    have the default types when a kernel uses them. ``comparison`` is the sign of the comparison that gave it, if one did.
    """

    __slots__ = ("__weakref__", "comparison", "dt", "entries")
    __octants__ = "Matrix"

    _ranks = (1, 2)
    _wanted = "oc.Matrix takes a list of rows of equal length, or a flat list of numbers"

    def __new__(cls, arr, dt=None):
        if type(arr) in _SEQUENCES:
            entries = plain_numbers(arr, dt)
            if entries is None and 2 in cls._ranks:
                entries = _plain_rows(arr, dt)
            if entries is not None:
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

    def __class_getitem__(cls, parameters):
        """``oc.Matrix[n, m, dtype]`` and ``oc.Vector[n, dtype]``: the types ``oc.types.matrix(...)`` and ``oc.types.vector(...)``."""
        from ._matrix_types import matrix, vector

        make = vector if issubclass(cls, Vector) else matrix
        return make(*parameters) if isinstance(parameters, tuple) else make(parameters)

    # ---- shape and entries ----

    @property
    def n(self) -> int:
        """Number of rows."""
        return self.entries.shape[0]

    @property
    def m(self) -> int:
        """Number of columns; 1 for a vector."""
        return self.entries.shape[1] if self.entries.ndim == 2 else 1

    @property
    def ndim(self) -> int:
        """1 for a vector, 2 for a matrix."""
        return self.entries.ndim

    def get_shape(self) -> tuple[int, ...]:
        """``(n,)`` for a vector, ``(n, m)`` for a matrix."""
        return self.entries.shape

    def to_numpy(self):
        """A copy as a numpy array."""
        return self.entries.copy()

    def to_list(self) -> list:
        """The entries as Python numbers in a list, of lists if it is a matrix."""
        return self.entries.tolist()

    def constant(self) -> tuple[tuple[int, ...], DataType | None, list]:
        """Shape, declared type and entries in row-major order as Python numbers: all that a kernel needs."""
        return self.entries.shape, self.dt, self.entries.ravel().tolist()

    def __len__(self):
        return len(self.entries)

    def __iter__(self):
        return (matrix_over(entry.copy(), self.dt) if entry.ndim else entry for entry in self.entries)

    def __getitem__(self, index):
        # The usual index first: everything else is looked at more closely.
        entries = self.entries
        if (type(index) is int and entries.ndim == 1) or (
            type(index) is tuple and entries.ndim == 2 and [*map(type, index)] == _TWO_INTEGERS
        ):
            return entries[index]
        if _is_expression_index(index):
            return _traced_item(self, index)
        return matrix_over(self.entries[checked_index(self, index)], self.dt, copy=True)

    def __setitem__(self, index, value):
        entries = self.entries
        if type(index) is int and entries.ndim == 1 and type(value) is float and entries.dtype.char == "d":
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

    def __getattr__(self, name):
        position = _COMPONENTS.get(name)
        if position is not None and self.entries.ndim == 1 and position < len(self.entries):
            return self.entries[position]
        if name == "comparison":
            # The slot is filled for what a comparison gave.
            return None
        letters = _swizzle(name)
        if letters is None:
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}", name=name, obj=self)
        positions = _positions(self, name, letters)
        return self.entries[positions[0]] if len(name) == 1 else matrix_over(self.entries[positions], self.dt)

    def __setattr__(self, name, value):
        letters = _swizzle(name)
        if letters is None:
            raise AttributeError(
                f"{type(self).__name__!r} object has no attribute {name!r} to set", name=name, obj=self
            )
        positions = _positions(self, name, letters)
        if len(set(name)) < len(name):
            raise OctantsSyntaxError(f"the swizzle {name!r} names a component twice, so it cannot be written")
        if len(name) == 1:
            self[positions[0]] = value
            return
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
        if dtype is not None and dtype != self.entries.dtype:
            return self.entries.astype(dtype)
        return self.entries.copy() if copy is not False else self.entries

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

    _ranks = (1,)
    _wanted = "oc.Vector takes a flat list of numbers"


#: What is a matrix and no subclass that a program made.
TYPES = (Matrix, Vector)


# ---- making ---------------------------------------------------------------------------------------------------------------


def matrix_over(entries, dt: DataType | None = None, copy: bool = False):
    """A matrix over an array, or the number that an array without axes is."""
    rank = entries.ndim
    if not rank:
        return entries[()]
    result = _new(Vector if rank == 1 else Matrix)
    _set_entries(result, entries.copy() if copy else entries)
    _set_type(result, dt)
    return result


_new = object.__new__
# A matrix lets nobody set attributes but swizzles; these are the slots themselves.
_set_entries, _set_type = (vars(Matrix)[slot].__set__ for slot in ("entries", "dt"))

_SEQUENCES = (list, tuple)
_TWO_INTEGERS = [int, int]
_REALS, _INTEGERS = {float}, {int}
#: Where single components lie.
_COMPONENTS = {letter: position for letters in SWIZZLES for position, letter in enumerate(letters)}
#: Types whose entries are converted as they are read, with the values below which that loses nothing but digits.
_READ_AS = {"f32": 1e38, "f64": 1e300, "i32": 2**31, "i64": 2**63}


def plain_numbers(values, dt):
    """A vector of Python's own integers or reals, which needs no look at each; ``None`` if it is something else."""
    return _plain_entries(values, set(map(type, values)), dt)


def _plain_rows(rows, dt):
    """Likewise a matrix, from rows of one length."""
    kinds, lengths = set(), set()
    for row in rows:
        if type(row) not in _SEQUENCES:
            return None
        lengths.add(len(row))
        kinds.update(map(type, row))
    return _plain_entries(rows, kinds, dt) if len(lengths) == 1 else None


def _plain_entries(values, kinds, dt):
    """The array of nested lists whose numbers are of these types."""
    if kinds != _REALS and kinds != _INTEGERS:
        return None
    import numpy

    if dt is None:
        entries = numpy.array(values)
        # Integers that need all of 64 bits are another matter.
        return entries if entries.dtype.char == ("d" if kinds == _REALS else "l") else None
    if type(dt) is not DataType:
        return None
    limit = _READ_AS.get(dt.to_string())
    if limit is None or (kinds == _REALS and type(limit) is int):
        return None
    numbers = values if type(values[0]) in kinds else [number for row in values for number in row]
    return numpy.array(values, dt.numpy_name) if -limit < min(numbers) <= max(numbers) < limit else None


def compared(entries, sign: str):
    """What a comparison of matrices gives: a truth for each entry. The sign says what the whole is worth as one truth."""
    result = matrix_over(entries)
    if isinstance(result, Matrix):
        object.__setattr__(result, "comparison", sign)
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
        array = plain_numbers(values, None) if type(values) in _SEQUENCES else None
        array = _array_of_list(values, numpy) if array is None else array
    return array if dt is None else cast_array(array, numpy_type(dt))


def _array_of_list(values, numpy):
    # A set has no order.
    if isinstance(values, (str, bytes, dict, set, frozenset)) or not hasattr(values, "__iter__"):
        raise OctantsTypeError(f"a matrix or vector is made from a list of numbers, not from {type(values).__name__}")
    rows = list(values)
    if any(isinstance(row, Matrix) for row in rows):
        raise OctantsTypeError("a list of vectors does not say what it makes: use oc.Matrix.rows or oc.Matrix.cols")
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
    """By value: reals truncate toward zero, integers wrap, ``u1`` is whether not zero."""
    import numpy

    array = numpy.asarray(value)
    if array.dtype is numpy_dtype:
        return array.copy()
    with numpy.errstate(all="ignore"):
        return array.astype(numpy_dtype)


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
