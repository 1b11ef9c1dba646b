# type: ignore  (in the kernel language annotations are values, and what is static decides the types)
# ruff: noqa: RET505  (a branch that is decided while compiling stands beside the other)
"""Methods of vectors and matrices, written in the kernel language: the same text runs on the host and is compiled into kernels.

``METHODS`` maps a name to a function whose first parameter is the vector or matrix. The compiler looks there for an attribute of
a tensor value that is not its shape (``n``, ``m``, ``ndim``) or a swizzle, and compiles the function into the caller. What depends on the shape
is decided while compiling; loops whose work grows with the third power of the size run as loops, so that a 12×12 matrix stays cheap to compile.

Integer literals stand where a real of any width is meant, because an integer does not widen a real.
"""

from __future__ import annotations

import operator

from .. import _language as lang
from .._language.pyfunc import pyfunc
from ..exceptions import OctantsTypeError
from ..types import Template
from . import Matrix, Vector, array_of, cast_array, matrix_over
from .host_forms import of_common_type, on_host, stacked
from .promotion import data_type, numpy_type

METHODS: dict = {}


def _method(name: str):
    def register(function):
        METHODS[name] = pyfunc(function)
        return function

    return register


# ---- checks; they run while compiling ---------------------------------------------------------------------------------------


def require_square(n: int, m: int, ndim: int) -> None:
    if ndim != 2 or n != m:
        shape = (n,) if ndim == 1 else (n, m)
        raise OctantsTypeError(f"expected a square matrix, got shape {shape}")


def require_vector(what: str, ndim: int) -> None:
    if ndim != 1:
        raise OctantsTypeError(f"{what} is not a vector")


def require_same(what: str, first: tuple, second: tuple) -> None:
    if first != second:
        raise OctantsTypeError(f"{what} needs operands of the same shape, got {first} and {second}")


def require_size(what: str, n: int, largest: int) -> None:
    if n > largest:
        raise OctantsTypeError(f"{what} is for sizes up to {largest}, got {n}")


def require_cross(n: int) -> None:
    if n not in (2, 3):
        raise OctantsTypeError(f"cross products are of vectors of 2 or 3 entries, got {n}")


def require_matrix(ndim: int) -> None:
    if ndim != 2:
        raise OctantsTypeError(
            "`transpose()` cannot apply to a vector. If you want something like `a @ b.transpose()`, write `a.outer_product(b)` instead."
        )


def require_equal_lengths(lengths: list) -> None:
    if not lengths or any(length != lengths[0] for length in lengths):
        raise OctantsTypeError(f"expected vectors of equal length, got lengths {lengths}")


# ---- shape ------------------------------------------------------------------------------------------------------------------


@_method("get_shape")
def get_shape(self):
    """``(n,)`` for a vector, ``(n, m)`` for a matrix."""
    if lang.static(self.ndim == 1):
        return (self.n,)
    else:
        return (self.n, self.m)


@_method("to_list")
def to_list(self):
    """The entries as a list, of lists if it is a matrix."""
    if lang.static(self.ndim == 1):
        return [self[i] for i in range(self.n)]
    else:
        return [[self[i, j] for j in range(self.m)] for i in range(self.n)]


def _flattened(text, self):
    return matrix_over(self.entries.ravel(), self.dt)


@on_host(_flattened)
@pyfunc
def flattened(self):
    """The entries as one vector, by rows."""
    if lang.static(self.ndim == 1):
        return self
    else:
        return Vector([self[i, j] for i in range(self.n) for j in range(self.m)])


def _transposed(text, self):
    require_matrix(self.ndim)
    return matrix_over(self.entries.T.copy(), self.dt)


@_method("transpose")
@on_host(_transposed)
def transpose(self):
    """Rows and columns exchanged."""
    require_matrix(self.ndim)
    return Matrix([[self[i, j] for i in range(self.n)] for j in range(self.m)])


@_method("fill")
def fill(self: Template, val):
    """Sets every entry to ``val``."""
    for i in lang.static(range(self.n)):
        if lang.static(self.ndim == 1):
            self[i] = val
        else:
            for j in lang.static(range(self.m)):
                self[i, j] = val


@_method("cast")
def cast(self, dtype):
    """The entries converted by value to ``dtype``."""
    return lang.cast(self, dtype)


# ---- over all entries ---------------------------------------------------------------------------------------------------------


@_method("sum")
def sum_of_entries(self):
    """The sum of the entries."""
    entries = flattened(self)
    total = entries[0]
    for i in lang.static(range(1, entries.n)):
        total = total + entries[i]
    return total


@_method("max")
def greatest_entry(self):
    """The greatest entry."""
    entries = flattened(self)
    greatest = entries[0]
    for i in lang.static(range(1, entries.n)):
        greatest = lang.max(greatest, entries[i])
    return greatest


@_method("min")
def least_entry(self):
    """The least entry."""
    entries = flattened(self)
    least = entries[0]
    for i in lang.static(range(1, entries.n)):
        least = lang.min(least, entries[i])
    return least


@_method("any")
def any_entry(self):
    """Whether some entry is not zero."""
    entries = flattened(self)
    found = entries[0] != 0
    for i in lang.static(range(1, entries.n)):
        found = found | (entries[i] != 0)
    return found


@_method("all")
def all_entries(self):
    """Whether no entry is zero."""
    entries = flattened(self)
    hold = entries[0] != 0
    for i in lang.static(range(1, entries.n)):
        hold = hold & (entries[i] != 0)
    return hold


# ---- lengths and products -------------------------------------------------------------------------------------------------------


@_method("norm_sqr")
def norm_sqr(self):
    """The sum of the squares of the entries."""
    return sum_of_entries(self * self)


@_method("norm")
def norm(self, eps=0):
    """The root of the sum of the squares of the entries, plus ``eps`` under the root."""
    return lang.sqrt(norm_sqr(self) + eps)


@_method("norm_inv")
def norm_inv(self, eps=0):
    """One over ``norm(eps)``."""
    return lang.rsqrt(norm_sqr(self) + eps)


@_method("normalized")
def normalized(self, eps=0):
    """The vector divided by its length plus ``eps``."""
    require_vector("what is normalized", self.ndim)
    return self / (norm(self) + eps)


@_method("dot")
def dot(self, other):
    """The scalar product of two vectors."""
    require_vector("lhs for dot", self.ndim)
    require_vector("rhs for dot", other.ndim)
    require_same("dot", (self.n,), (other.n,))
    return sum_of_entries(self * other)


@_method("frobenius_inner")
def frobenius_inner(self, other):
    """The sum of the products of entries at the same place."""
    require_same("frobenius_inner", (self.n, self.m, self.ndim), (other.n, other.m, other.ndim))
    return sum_of_entries(self * other)


def _cross(text, self, other):
    plain = all(type(one) is Vector and one.entries.dtype.char == "d" and one.n == 3 for one in (self, other))
    if not plain or self.dt is not other.dt:
        return text(self, other)
    (a, b, c), (x, y, z) = self.entries.tolist(), other.entries.tolist()
    return matrix_over(array_of([b * z - c * y, c * x - a * z, a * y - b * x]), self.dt)


@_method("cross")
@on_host(_cross)
def cross(self, other):
    """The vector product of vectors of 3 entries; of 2 entries, its third component."""
    require_vector("lhs for cross", self.ndim)
    require_vector("rhs for cross", other.ndim)
    require_same("cross", (self.n,), (other.n,))
    require_cross(self.n)
    if lang.static(self.n == 2):
        products = self * other.yx
        return products[0] - products[1]
    else:
        return self.yzx * other.zxy - self.zxy * other.yzx


def _outer_product(text, self, other):
    require_vector("lhs for outer_product", self.ndim)
    require_vector("rhs for outer_product", other.ndim)
    column = self.entries.reshape(-1, 1).repeat(other.n, axis=1)
    row = other.entries.reshape(1, -1).repeat(self.n, axis=0)
    return matrix_over(column, self.dt) * matrix_over(row, other.dt)


@_method("outer_product")
@on_host(_outer_product)
def outer_product(self, other):
    """The matrix of all products of an entry of one vector with an entry of the other."""
    require_vector("lhs for outer_product", self.ndim)
    require_vector("rhs for outer_product", other.ndim)
    return Matrix([[self[i] * other[j] for j in range(other.n)] for i in range(self.n)])


@_method("trace")
def trace(self):
    """The sum of the diagonal."""
    require_square(self.n, self.m, self.ndim)
    total = self[0, 0]
    for i in lang.static(range(1, self.n)):
        total = total + self[i, i]
    return total


# ---- determinant and inverse ------------------------------------------------------------------------------------------------------


@_method("determinant")
def determinant(self):
    """The determinant, for sizes up to 4."""
    require_square(self.n, self.m, self.ndim)
    require_size("determinant", self.n, 4)
    if lang.static(self.n == 1):
        return self[0, 0]
    elif lang.static(self.n == 2):
        return self[0, 0] * self[1, 1] - self[0, 1] * self[1, 0]
    elif lang.static(self.n == 3):
        return (
            self[0, 0] * (self[1, 1] * self[2, 2] - self[1, 2] * self[2, 1])
            + self[0, 1] * (self[1, 2] * self[2, 0] - self[1, 0] * self[2, 2])
            + self[0, 2] * (self[1, 0] * self[2, 1] - self[1, 1] * self[2, 0])
        )
    else:
        above = pair_minors(self, 0, 1)
        below = pair_minors(self, 2, 3)
        return by_complements(above, below)


@pyfunc
def pair_minors(self, first: Template, second: Template):
    """The six 2×2 determinants of two rows of a 4×4 matrix, for the columns 01, 02, 03, 12, 13, 23."""
    return Vector(
        [
            self[first, 0] * self[second, 1] - self[second, 0] * self[first, 1],
            self[first, 0] * self[second, 2] - self[second, 0] * self[first, 2],
            self[first, 0] * self[second, 3] - self[second, 0] * self[first, 3],
            self[first, 1] * self[second, 2] - self[second, 1] * self[first, 2],
            self[first, 1] * self[second, 3] - self[second, 1] * self[first, 3],
            self[first, 2] * self[second, 3] - self[second, 2] * self[first, 3],
        ]
    )


@pyfunc
def by_complements(above, below):
    """Laplace's expansion by two rows: each minor of the upper rows with that of the other columns in the lower rows."""
    return (
        above[0] * below[5]
        - above[1] * below[4]
        + above[2] * below[3]
        + above[3] * below[2]
        - above[4] * below[1]
        + above[5] * below[0]
    )


def _inverse(text, self):
    if type(self) is not Matrix or self.get_shape() != (2, 2) or self.entries.dtype.char != "d":
        return of_common_type(text, self)
    # Python's own numbers are several times as fast as numpy's.
    (a, b), (c, d) = self.entries.tolist()
    det = a * d - b * c
    if det == 0:
        return of_common_type(text, self)
    scale = 1.0 / det
    return matrix_over(array_of([[d * scale, -b * scale], [-c * scale, a * scale]]), self.dt)


@_method("inverse")
@on_host(_inverse)
def inverse(self):
    """The inverse, for sizes up to 12: by cofactors up to 4, by elimination with pivots above."""
    require_square(self.n, self.m, self.ndim)
    require_size("inverse", self.n, 12)
    if lang.static(self.n == 1):
        return Matrix([[lang.one(self[0, 0]) / self[0, 0]]])
    elif lang.static(self.n == 2):
        det = determinant(self)
        scale = lang.one(det) / det
        return Matrix([[self[1, 1] * scale, -self[0, 1] * scale], [-self[1, 0] * scale, self[0, 0] * scale]])
    elif lang.static(self.n == 3):
        det = determinant(self)
        scale = lang.one(det) / det
        # The indices go round, which gives each cofactor its sign.
        return Matrix(
            [
                [
                    (
                        self[(i + 1) % 3, (j + 1) % 3] * self[(i + 2) % 3, (j + 2) % 3]
                        - self[(i + 1) % 3, (j + 2) % 3] * self[(i + 2) % 3, (j + 1) % 3]
                    )
                    * scale
                    for i in range(3)
                ]
                for j in range(3)
            ]
        )
    elif lang.static(self.n == 4):
        return inverse_4(self)
    else:
        return inverse_by_elimination(self)


@pyfunc
def inverse_4(self):
    above = pair_minors(self, 0, 1)
    below = pair_minors(self, 2, 3)
    det = by_complements(above, below)
    s = above * (lang.one(det) / det)
    c = below * (lang.one(det) / det)
    return Matrix(
        [
            [
                self[1, 1] * c[5] - self[1, 2] * c[4] + self[1, 3] * c[3],
                self[0, 2] * c[4] - self[0, 1] * c[5] - self[0, 3] * c[3],
                self[3, 1] * s[5] - self[3, 2] * s[4] + self[3, 3] * s[3],
                self[2, 2] * s[4] - self[2, 1] * s[5] - self[2, 3] * s[3],
            ],
            [
                self[1, 2] * c[2] - self[1, 0] * c[5] - self[1, 3] * c[1],
                self[0, 0] * c[5] - self[0, 2] * c[2] + self[0, 3] * c[1],
                self[3, 2] * s[2] - self[3, 0] * s[5] - self[3, 3] * s[1],
                self[2, 0] * s[5] - self[2, 2] * s[2] + self[2, 3] * s[1],
            ],
            [
                self[1, 0] * c[4] - self[1, 1] * c[2] + self[1, 3] * c[0],
                self[0, 1] * c[2] - self[0, 0] * c[4] - self[0, 3] * c[0],
                self[3, 0] * s[4] - self[3, 1] * s[2] + self[3, 3] * s[0],
                self[2, 1] * s[2] - self[2, 0] * s[4] - self[2, 3] * s[0],
            ],
            [
                self[1, 1] * c[1] - self[1, 0] * c[3] - self[1, 2] * c[0],
                self[0, 0] * c[3] - self[0, 1] * c[1] + self[0, 2] * c[0],
                self[3, 1] * s[1] - self[3, 0] * s[3] - self[3, 2] * s[0],
                self[2, 0] * s[3] - self[2, 1] * s[1] + self[2, 2] * s[0],
            ],
        ]
    )


@pyfunc
def inverse_by_elimination(self):
    """Gauss and Jordan: row operations that turn the matrix into the unit matrix turn the unit matrix into the inverse.

    The outermost loop is a ``while``, which is never run in parallel.
    """
    # Dividing by one makes a copy, and reals of integers.
    left = self / lang.one(self[0, 0])
    right = lang.zero(left)
    for i in lang.static(range(self.n)):
        right[i, i] = 1
    column = 0
    while column < self.n:
        pivot = column
        largest = lang.abs(left[column, column])
        for i in range(column + 1, self.n):
            size = lang.abs(left[i, column])
            if size > largest:
                largest = size
                pivot = i
        scale = lang.one(largest) / left[pivot, column]
        for j in range(self.n):
            # The pivot row, scaled, and the row whose place it takes.
            a = left[pivot, j] * scale
            b = right[pivot, j] * scale
            left[pivot, j] = left[column, j]
            right[pivot, j] = right[column, j]
            left[column, j] = a
            right[column, j] = b
        for i in range(self.n):
            factor = left[i, column]
            if i != column:
                for j in range(self.n):
                    left[i, j] = left[i, j] - factor * left[column, j]
                    right[i, j] = right[i, j] - factor * right[column, j]
        column = column + 1
    return right


# ---- constructors -----------------------------------------------------------------------------------------------------------------


def zero(dt, n, m=None):
    """A vector of ``n`` zeros, or a matrix of ``n`` × ``m``."""
    return _constant(0, dt, n, m)


def one(dt, n, m=None):
    """A vector of ``n`` ones, or a matrix of ``n`` × ``m``."""
    return _constant(1, dt, n, m)


def identity(dt, n):
    """The unit matrix of size ``n``."""
    import numpy

    return matrix_over(numpy.eye(n, dtype=numpy_type(dt)), data_type(dt))


def unit(n, i, dt=None):
    """The vector of ``n`` entries with a one at ``i`` and zeros elsewhere."""
    n, i = operator.index(n), operator.index(i)
    if not 0 <= i < n:
        raise OctantsTypeError(f"a unit vector of {n} entries has its one at 0 to {n - 1}, not at {i}")
    vector = _constant(0, int if dt is None else dt, n, None)
    vector[i] = 1
    return vector


def _constant(value, dt, n, m):
    import numpy

    return matrix_over(cast_array(numpy.full((n,) if m is None else (n, m), value), numpy_type(dt)), data_type(dt))


@pyfunc
def diag(dim: Template, val):
    """The matrix of size ``dim`` with ``val`` on its diagonal and zeros elsewhere."""
    return Matrix([[val if lang.static(i == j) else lang.zero(val) for j in range(dim)] for i in range(dim)])


@on_host(stacked(axis=0))
@pyfunc
def rows(rows: Template):
    """The matrix with the given vectors as its rows."""
    require_equal_lengths([len(row) for row in rows])
    return Matrix([[row[j] for j in range(len(row))] for row in rows])


@on_host(stacked(axis=1))
@pyfunc
def cols(cols: Template):
    """The matrix with the given vectors as its columns."""
    require_equal_lengths([len(col) for col in cols])
    return Matrix([[col[i] for col in cols] for i in range(len(cols[0]))])


def _matrix_ndarray(n, m, dtype, shape, needs_grad=False, *, needs_dual=False):
    """A zeroed array of matrices: ``oc.Matrix.ndarray(3, 3, oc.f32, shape=100)``."""
    from .types import matrix

    return matrix(n, m, dtype).ndarray(shape, needs_grad=needs_grad, needs_dual=needs_dual)


def _vector_ndarray(n, dtype, shape, needs_grad=False, *, needs_dual=False):
    """A zeroed array of vectors: ``oc.Vector.ndarray(3, oc.f32, shape=100)``."""
    from .types import vector

    return vector(n, dtype).ndarray(shape, needs_grad=needs_grad, needs_dual=needs_dual)


for _name, _function in METHODS.items():
    # The host has its own ways for what needs no kernel language.
    if _name not in Matrix.__dict__:
        setattr(Matrix, _name, _function)
for _function in (zero, one, identity, unit, diag, rows, cols):
    setattr(Matrix, _function.__name__, staticmethod(_function))
setattr(Matrix, "ndarray", staticmethod(_matrix_ndarray))  # noqa: B010
setattr(Vector, "ndarray", staticmethod(_vector_ndarray))  # noqa: B010
