"""Sparse matrices, and the lists of triplets that kernels make them of."""

from __future__ import annotations

import numbers
from typing import Any

import numpy

from .._arrays import Ndarray, ndarray
from .._language.data_oriented import data_oriented
from .._matrix.promotion import numpy_type
from .._octants import host_only
from .._tensor import Tensor
from ..exceptions import OctantsAssertionError, OctantsRuntimeError
from ..types import f32, i32, i64
from ._compressed import Compressed, empty, of_triplets
from ._products import multiply
from ._vectors import array_of, on_host, real_type

#: The names of the orders that entries may have in memory: whether they go by rows.
_FORMATS = {"col_major": False, "row_major": True}

#: Numbers of a matrix whose rows are written out, as numpy has it, and entries of a larger one.
_MOST_SHOWN, _ENTRIES_SHOWN = 1000, 8


def _by_rows(storage_format: str) -> bool:
    if storage_format not in _FORMATS:
        raise OctantsRuntimeError(f'storage_format is "col_major" or "row_major", not {storage_format!r}')
    return _FORMATS[storage_format]


def _extent(number, name: str) -> int:
    """How many rows or columns there are."""
    if isinstance(number, bool) or not hasattr(number, "__index__"):
        raise TypeError(f"{name} is an integer, not {number!r}")
    extent = number.__index__()
    # Indices have 32 bits.
    if not 0 <= extent < 1 << 31:
        raise ValueError(f"{name} is an integer from 0 to 2147483647, not {extent}")
    return extent


class SparseMatrix:
    """A sparse matrix of f32 or f64. A ``SparseMatrixBuilder`` makes one of what kernels add to it.

    ``A + B``, ``A - B``, ``2 * A``, ``A * B`` (entry by entry), ``A @ B``, ``A @ x``; ``A[i, j]`` reads and sets entries.
    """

    #: Operators with arrays of numpy are this class's to give: else numpy would take a matrix for a number.
    __array_ufunc__ = None

    def __init__(
        self,
        n: int | None = None,
        m: int | None = None,
        sm: Compressed | None = None,
        dtype=f32,
        storage_format: str = "col_major",
    ):
        self.dtype = real_type(dtype, "a sparse matrix")
        if sm is None:
            if n is None:
                raise TypeError("SparseMatrix takes the number of rows, n, and of columns, m")
            n = _extent(n, "n")
            sm = empty((n, n if m is None else _extent(m, "m")), _by_rows(storage_format), numpy_type(self.dtype))
        self.n, self.m = sm.shape
        #: The entries, as numpy arrays.
        self.matrix = sm
        #: The entries by rows as a product takes them, on the host and on the device, once they were asked for.
        self._host_rows: tuple[Any, Any, Any] | None = None
        self._device_rows: tuple[Any, Any, Any] | None = None

    @property
    def shape(self) -> tuple[int, int]:
        """How many rows and columns there are."""
        return (self.n, self.m)

    def _replace(self, matrix: Compressed) -> None:
        self.matrix = matrix
        self._host_rows = self._device_rows = None

    def _made(self, matrix: Compressed) -> SparseMatrix:
        return SparseMatrix(sm=matrix, dtype=self.dtype)

    def _require_shape(self, other: SparseMatrix) -> None:
        if self.shape != other.shape:
            raise OctantsAssertionError(f"matrices of shapes {self.shape} and {other.shape} do not fit")

    # ---- operators ----

    def __add__(self, other):
        if not isinstance(other, SparseMatrix):
            return NotImplemented
        self._require_shape(other)
        return self._made(self.matrix.plus(other.matrix, 1))

    def __iadd__(self, other):
        if not isinstance(other, SparseMatrix):
            return NotImplemented
        self._require_shape(other)
        self._replace(self.matrix.plus(other.matrix, 1))
        return self

    def __sub__(self, other):
        if not isinstance(other, SparseMatrix):
            return NotImplemented
        self._require_shape(other)
        return self._made(self.matrix.plus(other.matrix, -1))

    def __isub__(self, other):
        if not isinstance(other, SparseMatrix):
            return NotImplemented
        self._require_shape(other)
        self._replace(self.matrix.plus(other.matrix, -1))
        return self

    def __mul__(self, other):
        if isinstance(other, numbers.Real):
            values = self.matrix.values
            return self._made(self.matrix.with_values(values * values.dtype.type(other)))
        if not isinstance(other, SparseMatrix):
            raise TypeError(
                f"a sparse matrix is multiplied by a number or, entry by entry, by a sparse matrix, not by {type(other).__name__}; "
                "the product with a vector is `A @ x`"
            )
        self._require_shape(other)
        return self._made(self.matrix.times_entries(other.matrix))

    def __rmul__(self, other):
        return self * other

    def __matmul__(self, other):
        if isinstance(other, SparseMatrix):
            if self.m != other.n:
                raise OctantsAssertionError(f"matrices of shapes {self.shape} and {other.shape} do not fit")
            return self._made(self.matrix.times(other.matrix))
        host_only("a product of a matrix")
        array = other._impl if isinstance(other, Tensor) else other
        if isinstance(array, Ndarray) and array.dtype == self.dtype:
            if array.shape != (self.m,):
                raise OctantsAssertionError(f"the vector has shape {array.shape}, and needs {(self.m,)}")
            out = ndarray(self.dtype, self.n)
            multiply(*self._rows_on_device(), array, out, self.dtype)
            return out
        vector = on_host(other, self.m, self.dtype, "the vector of a product")
        product = numpy.zeros(self.n, vector.dtype)
        multiply(*self._rows_on_host(), vector, product, self.dtype)
        return product

    def _rows_on_host(self) -> tuple[Any, Any, Any]:
        if self._host_rows is None:
            rows = self.matrix.ordered(True)
            self._host_rows = (rows.starts.astype(numpy.int32), rows.places, rows.values)
        return self._host_rows

    def _rows_on_device(self) -> tuple[Any, Any, Any]:
        if self._device_rows is None:
            starts, places, values = self._rows_on_host()
            self._device_rows = (array_of(starts, i32), array_of(places, i32), array_of(values, self.dtype))
        return self._device_rows

    def transpose(self) -> SparseMatrix:
        """The transposed matrix, a copy."""
        return self._made(self.matrix.transposed())

    # ---- entries ----

    def _checked(self, indices) -> tuple[int, int]:
        if not isinstance(indices, tuple) or len(indices) != 2:
            raise TypeError(f"an entry of a sparse matrix has two indices, not {indices!r}")
        for index in indices:
            if not hasattr(index, "__index__"):
                raise TypeError(f"an index of a sparse matrix is an integer, not {index!r}")
        row, column = (index.__index__() for index in indices)
        if not (0 <= row < self.n and 0 <= column < self.m):
            raise OctantsAssertionError(f"index {(row, column)} is outside of a matrix of shape {self.shape}")
        return row, column

    def __getitem__(self, indices) -> float:
        at, is_there = self.matrix.find(*self._checked(indices))
        return float(self.matrix.values[at]) if is_there else 0.0

    def __setitem__(self, indices, value) -> None:
        matrix = self.matrix
        # Matrices may share their arrays.
        changed = matrix.with_values(matrix.values.copy())
        changed.set(*self._checked(indices), value)
        self._replace(changed)

    def build_from_ndarray(self, ndarray) -> None:
        """Sets all entries, of triplets: row, column and value, one after the other in an array of numbers, vectors or matrices."""
        array = ndarray._impl if isinstance(ndarray, Tensor) else ndarray
        if not isinstance(array, Ndarray):
            raise OctantsRuntimeError(
                f"build_from_ndarray takes an oc.ndarray, oc.Vector.ndarray or oc.Matrix.ndarray, not {type(array).__name__}"
            )
        data = array.to_numpy().reshape(-1)
        if len(data) % 3:
            raise OctantsRuntimeError(f"triplets are numbers by threes; the array has {len(data)}")
        rows, columns, values = data.reshape(-1, 3).T
        for name, given in (("row", rows), ("column", columns)):
            broken = numpy.flatnonzero((given != numpy.trunc(given)) | ~numpy.isfinite(given))
            if len(broken):
                raise OctantsRuntimeError(f"triplet {broken[0]} has the {name} {given[broken[0]]}, which is no integer")
            # What is outside of 64 bits is not converted.
            outside = numpy.flatnonzero((given < 0) | (given >= self.shape[name == "column"]))
            if len(outside):
                raise OctantsRuntimeError(
                    f"triplet {outside[0]}: {name} {given[outside[0]]:.0f} is outside of a matrix of shape {self.shape}"
                )
        places = (rows.astype(numpy.int64), columns.astype(numpy.int64))
        values = numpy.ascontiguousarray(values, numpy_type(self.dtype))
        self._replace(of_triplets(self.shape, self.matrix.by_rows, *places, values))

    def mmwrite(self, filename: str) -> None:
        """Writes the matrix as a file of the Matrix Market, which scipy and others read."""
        rows, columns, values = self.matrix.triplets()
        with open(filename, "w", encoding="ascii") as file:
            file.write("%%MatrixMarket matrix coordinate real general\n%\n")
            file.write(f"{self.n} {self.m} {len(values)}\n")
            # The shortest texts that are these numbers.
            for row, column, value in zip(rows.tolist(), columns.tolist(), values, strict=True):
                file.write(f"{row + 1} {column + 1} {value!s}\n")

    def __str__(self) -> str:
        """The rows; of a large matrix, its first entries."""
        if self.n * self.m > _MOST_SHOWN:
            return self._first_entries()
        dense = numpy.zeros(self.shape, self.matrix.values.dtype)
        rows, columns, values = self.matrix.triplets()
        dense[rows, columns] = values
        texts = [[f"{value:.4g}" for value in row] for row in dense.tolist()]
        width = max((len(text) for row in texts for text in row), default=0)
        return "\n".join(f"[{', '.join(text.rjust(width) for text in row)}]" for row in texts)

    __repr__ = __str__

    def _first_entries(self) -> str:
        matrix = self.matrix
        lines = [f"{self.n} x {self.m} matrix of {self.dtype} with {len(matrix.values)} entries"]
        shown = min(len(matrix.values), _ENTRIES_SHOWN)
        owners = numpy.searchsorted(matrix.starts, numpy.arange(shown), side="right") - 1
        for line, place, value in zip(owners.tolist(), matrix.places[:shown].tolist(), matrix.values, strict=False):
            row, column = (line, place) if matrix.by_rows else (place, line)
            lines.append(f"[{row}, {column}] = {value:.4g}")
        return "\n".join(lines if shown == len(matrix.values) else [*lines, "..."])


@data_oriented
class SparseMatrixBuilder:
    """A list of triplets that kernels append to, of which ``build`` makes a matrix.

    A kernel has it as a parameter ``A: oc.types.sparse_matrix_builder()``, and appends with ``A[i, j] += v`` or ``A[i, j] -= v``, from as many
    threads as it likes: values of the same place are added up, and the matrix is the same in whatever order they came.
    """

    #: The module that has what adding means in kernels.
    __octants_encoded__ = "octants.linalg._triplets"
    # Elements are numbers: neither vectors nor structs.
    _entry_fields = _member_fields = None

    def __init__(
        self,
        num_rows: int | None = None,
        num_cols: int | None = None,
        max_num_triplets: int = 0,
        dtype=f32,
        storage_format: str = "col_major",
    ):
        if num_rows is None:
            raise TypeError("SparseMatrixBuilder takes the number of rows, num_rows, and of columns, num_cols")
        _by_rows(storage_format)
        self.num_rows = _extent(num_rows, "num_rows")
        self.num_cols = self.num_rows if num_cols is None else _extent(num_cols, "num_cols")
        self.max_num_triplets = _extent(max_num_triplets, "max_num_triplets")
        self.dtype = real_type(dtype, "a sparse matrix builder")
        self.storage_format = storage_format
        # An array has an element at least.
        capacity = max(1, max_num_triplets)
        self._count = ndarray(i64, 1)
        self._rows, self._columns = ndarray(i32, capacity), ndarray(i32, capacity)
        self._values = ndarray(self.dtype, capacity)

    @property
    def _bounds(self) -> tuple:
        """The first index along each axis, and the one after the last."""
        return ((0, self.num_rows), (0, self.num_cols))

    def _triplets(self) -> tuple:
        """Rows, columns and values of what was appended. The list is empty then if there was more than fits."""
        count = int(self._count[0])
        if count > self.max_num_triplets:
            self._count.fill(0)
            raise OctantsRuntimeError(
                f"kernels appended {count} triplets to a SparseMatrixBuilder of max_num_triplets={self.max_num_triplets}"
            )
        return tuple(array.to_numpy()[:count] for array in (self._rows, self._columns, self._values))

    def build(self, dtype=None, _format: str = "CSR") -> SparseMatrix:
        """The matrix of what was appended, of the builder's type unless ``dtype`` says another. The list is empty then."""
        rows, columns, values = self._triplets()
        self._count.fill(0)
        dtype = self.dtype if dtype is None else real_type(dtype, "a sparse matrix")
        shape = (self.num_rows, self.num_cols)
        made = of_triplets(shape, _by_rows(self.storage_format), rows, columns, values.astype(numpy_type(dtype)))
        return SparseMatrix(sm=made, dtype=dtype)

    def print_triplets(self) -> None:
        """Prints what was appended, in the order in which it came."""
        rows, columns, values = self._triplets()
        print(f"n={self.num_rows}, m={self.num_cols}, num_triplets={len(values)} (max={self.max_num_triplets})")
        for row, column, value in zip(rows.tolist(), columns.tolist(), values.tolist(), strict=True):
            print(f"[{row}, {column}] = {value:g}")
