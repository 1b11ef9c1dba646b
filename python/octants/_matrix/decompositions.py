# type: ignore  (in the kernel language annotations are values, and what is static decides the types)
# ruff: noqa: RET505  (a branch that is decided while compiling stands beside the other)
"""Decompositions of small matrices, one per thread: written in the kernel language, so they run on the host too.

Singular values of 3×3 matrices come from one-sided rotations (Hestenes): pairs of columns of the matrix are turned until all are
orthogonal. Their lengths are then the singular values and the product of the rotations is V. The first rotations are found from the products
of the columns alone, AᵀA, which is less to turn; what squaring loses of small singular values, the columns themselves give back in the last
ones. A 2×2 matrix is a rotation or reflection times a symmetric matrix, both known in closed form; so the product of its
factors, ``U @ V.transpose()``, is right to far below the precision where the matrix is almost a rotation. Eigenvalues of symmetric matrices come from Jacobi's rotations. Matrices are scaled first, so that no intermediate overflows.

Accuracy, relative to the largest singular value, in units of the type's precision (1.2e-7 for f32, 2.2e-16 for f64): singular value
decompositions reconstruct the matrix, and their factors are orthogonal, within 10; eigenvalue decompositions of symmetric matrices within 20.
Singular values of a 2×2 matrix that differ by less than 32 units are taken as equal: it is reconstructed within 40, then.
"""

from __future__ import annotations

from .. import _language as lang
from .._language.pyfunc import pyfunc
from .._octants import dtypes
from ..types import Template
from . import Matrix, Vector
from .host_forms import of_real_type, on_host
from .methods import cols, cross, dot
from .promotion import data_type

f64 = dtypes["f64"]

# Singular values of a 2×2 matrix that differ by less, in units of the type's precision, count as equal. The deformation of a body in free
# fall is the unit matrix with rounding errors of about 1e-6 in f32: 32 units cover them.
EQUAL_UNITS = 32

# Sweeps over the products of a 3×3 matrix' columns before the columns themselves are turned. After three, turning one pair of columns is enough in
# f32 for 98 of 100 matrices with random entries.
SWEEPS_OF_PRODUCTS = 3

# Products of the longest column with others that are left as they are, in units of what one sweep leaves.
NEGLIGIBLE_TOLERANCES = 2.5


# ---- checks and constants; they run while compiling ---------------------------------------------------------------------------


def real_type(dt):
    """The type to compute in."""
    return data_type(float if dt is None else dt)


def require_sizes(sizes: tuple, message: str, n: int, m: int, ndim: int) -> None:
    if ndim != 2 or n != m or n not in sizes:
        raise Exception(message)


def require_system(n: int, m: int, ndim: int, length: int, length_ndim: int) -> None:
    assert ndim == 2 and n == m, f"solve needs a square matrix, got {n} rows and {m} columns"
    assert length_ndim == 1 and length == n, f"solve needs a right side of {n} entries, got {length}"


def precision(dt) -> float:
    """How far a product may be off, relative to its factors."""
    return 4e-16 if dt == f64 else 2e-7


def unit_roundoff(dt) -> float:
    """The distance from 1 to the next number."""
    return 2.3e-16 if dt == f64 else 1.2e-7


def least_scale(dt) -> float:
    """A number so small that its inverse is just a number."""
    return 1e-307 if dt == f64 else 1e-37


def negligible_product(dt) -> float:
    """What a product of two numbers of which the greater is at most about 1 does not matter below, nor does its square vanish."""
    return 1e-150 if dt == f64 else 1e-18


# ---- rotations ------------------------------------------------------------------------------------------------------------------


@pyfunc
def rotation(difference, twice_product, negligible):
    """Cosine and sine of the smaller angle that makes two directions orthogonal, and by how much their lengths' squares part.

    For columns p and q, ``difference`` is q·q - p·p and ``twice_product`` is 2 p·q; for a symmetric matrix they are the difference of
    two diagonal entries and twice the entry between them. If both are negligible, nothing turns.
    """
    # A difference that is not zero: then neither is what is divided by, and without a product nothing turns.
    apart = lang.max(lang.abs(difference), negligible)
    root = lang.sqrt(apart * apart + twice_product * twice_product)
    # The angle's cosine and sine are to each other as this and the product, and the sum of their squares is 2 root adjacent.
    adjacent = apart + root
    scale = lang.rsqrt(2 * root * adjacent)
    growth = (root - apart) / 2
    falls = difference < 0
    return adjacent * scale, twice_product * lang.select(falls, -scale, scale), lang.select(falls, -growth, growth)


@pyfunc
def greatest(self):
    """The greatest magnitude of an entry."""
    result = lang.abs(self[0, 0])
    for i in lang.static(range(self.n)):
        for j in lang.static(range(self.m)):
            result = lang.max(result, lang.abs(self[i, j]))
    return result


# ---- singular values --------------------------------------------------------------------------------------------------------------


@on_host(of_real_type)
@pyfunc
def svd(A, dt=None):
    """``U, S, V`` with ``A = U @ S @ V.transpose()``, the singular values in descending order; for 2×2 and 3×3.

    For 3×3, U and V are rotations and the last singular value may be negative. For 2×2, no singular value is negative
    and U may be a reflection.
    """
    require_sizes((2, 3), "SVD only supports 2×2 and 3×3 matrices.", A.n, A.m, A.ndim)
    if lang.static(A.n == 2):
        return svd_2(A, real_type(dt))
    else:
        return svd_3(A, real_type(dt))


@pyfunc
def renormalised(c, s):
    """A cosine and a sine from approximate ones: a Newton step towards a sum of squares of 1."""
    great = lang.max(lang.abs(c), lang.abs(s))
    small = lang.min(lang.abs(c), lang.abs(s))
    # 1 - c² - s², without a rounding at the size of 1.
    missing = ((1 - great) * (1 + great) - small * small) / 2
    return c + c * missing, s + s * missing


@pyfunc
def polar_2(a, dt: Template):
    """``c, s, reflects, trace, difference, twice``: the polar decomposition of a matrix whose greatest entry is about 1.

    The orthogonal factor is ``[[c, -s], [s, c]]``, or ``[[c, s], [s, -c]]`` if it reflects. The symmetric one has this trace, this
    difference of its diagonal entries and twice this entry beside them; none of its eigenvalues is negative.
    """
    e = a[0, 0] + a[1, 1]
    h = a[1, 0] - a[0, 1]
    f = a[0, 0] - a[1, 1]
    g = a[1, 0] + a[0, 1]
    reflects = f * f + g * g > e * e + h * h
    x = lang.select(reflects, f, e)
    y = lang.select(reflects, g, h)
    other_x = lang.select(reflects, e, f)
    other_y = lang.select(reflects, -h, g)
    square = x * x + y * y
    is_zero = square < dt(least_scale(dt))
    inverse = lang.rsqrt(lang.select(is_zero, lang.one(square), square))
    c, s = renormalised(lang.select(is_zero, lang.one(square), x * inverse), y * inverse)
    mirrored = lang.select(reflects, -s, s)
    return c, s, reflects, c * x + s * y, c * other_x + mirrored * other_y, c * other_y - mirrored * other_x


@pyfunc
def svd_2(A, dt: Template):
    a = lang.cast(A, dt)
    scale = lang.max(greatest(a), dt(least_scale(dt)))
    a = a / scale
    c, s, reflects, trace, difference, twice = polar_2(a, dt)
    # Singular values that are almost equal turn nothing, so that the product of the factors is the orthogonal factor itself.
    equal = dt(EQUAL_UNITS * unit_roundoff(dt)) * trace
    twice = lang.select(difference * difference + twice * twice > equal * equal, twice, lang.zero(twice))
    cosine, sine, _ = rotation(-difference, twice, dt(negligible_product(dt)))
    cosine, sine = renormalised(cosine, sine)
    v = Vector([cosine, -sine])
    w = Vector([sine, cosine])
    # Whether the symmetric factor's eigenvalue of v is less than that of w.
    if difference * (cosine * cosine - sine * sine) < 2 * twice * cosine * sine:
        old = v
        v = w
        w = -old
    zero = lang.zero(c)
    sign = lang.select(reflects, -lang.one(c), lang.one(c))
    u = Vector([c * v[0] - sign * s * v[1], s * v[0] + sign * c * v[1]])
    across = Vector([-u[1], u[0]]) * sign
    first = dot(u, a @ v)
    second = dot(across, a @ w)
    if second < 0:
        across = -across
        second = -second
    return cols([u, across]), Matrix([[first * scale, zero], [zero, second * scale]]), cols([v, w])


@pyfunc
def turned_products(pp, qq, pq, rp, rq, v, w, negligible):
    """Turns two columns to be orthogonal that only their products are known of, also with the third one, and two columns of V with them."""
    cosine, sine, growth = rotation(qq - pp, 2 * pq, negligible)
    return (
        pp - growth,
        qq + growth,
        lang.zero(pq),
        rp * cosine - rq * sine,
        rp * sine + rq * cosine,
        v * cosine - w * sine,
        v * sine + w * cosine,
    )


@pyfunc
def rotated_pair(p, q, v, w, negligible):
    """Turns two columns to be orthogonal, and two columns of V with them; also gives how far they had to go."""
    product = 2 * dot(p, q)
    cosine, sine, _ = rotation(dot(q, q) - dot(p, p), product, negligible)
    return (
        p * cosine - q * sine,
        p * sine + q * cosine,
        v * cosine - w * sine,
        v * sine + w * cosine,
        lang.abs(product),
        lang.abs(sine),
    )


@pyfunc
def ordered(p, q, v, w, pp, qq):
    """Two columns, those of V, and the squares of their lengths, with the longer one first. A sign keeps V a rotation."""
    swap = qq > pp
    return (
        select_vector(swap, q, p),
        select_vector(swap, -p, q),
        select_vector(swap, w, v),
        select_vector(swap, -v, w),
        lang.select(swap, qq, pp),
        lang.select(swap, pp, qq),
    )


@pyfunc
def select_vector(condition, a, b):
    """One of two vectors."""
    return Vector([lang.select(condition, a[i], b[i]) for i in range(a.n)])


@pyfunc
def orthogonal_to(u):
    """Some unit vector that is orthogonal to a unit vector of three entries."""
    zero = lang.zero(u[0])
    flat = lang.abs(u[0]) > lang.abs(u[2])
    return unit(select_vector(flat, Vector([-u[1], u[0], zero]), Vector([zero, -u[2], u[1]])))


@pyfunc
def unit(v):
    result = v * lang.rsqrt(dot(v, v))
    return result * unit_factor(result)


@pyfunc
def unit_factor(v):
    """What makes an almost unit vector one: a Newton step. Approximate roots are all off to the same side."""
    return lang.one(v[0]) * 1.5 - dot(v, v) / 2


@pyfunc
def svd_3(A, dt: Template):
    least = dt(least_scale(dt))
    one = lang.cast(1.0, dt)
    zero = lang.cast(0.0, dt)
    a = lang.cast(A, dt)
    scale = lang.max(greatest(a), least)
    a = a * (one / scale)
    b0 = Vector([a[0, 0], a[1, 0], a[2, 0]])
    b1 = Vector([a[0, 1], a[1, 1], a[2, 1]])
    b2 = Vector([a[0, 2], a[1, 2], a[2, 2]])
    v0 = Vector([one, zero, zero])
    v1 = Vector([zero, one, zero])
    v2 = Vector([zero, zero, one])
    negligible = dt(negligible_product(dt))
    g00 = dot(b0, b0)
    g01 = dot(b0, b1)
    g02 = dot(b0, b2)
    g11 = dot(b1, b1)
    g12 = dot(b1, b2)
    g22 = dot(b2, b2)
    tolerance = dt(precision(dt)) * (g00 + g11 + g22)
    for _ in range(SWEEPS_OF_PRODUCTS):
        g00, g11, g01, g02, g12, v0, v1 = turned_products(g00, g11, g01, g02, g12, v0, v1, negligible)
        g00, g22, g02, g01, g12, v0, v2 = turned_products(g00, g22, g02, g01, g12, v0, v2, negligible)
        g11, g22, g12, g01, g02, v1, v2 = turned_products(g11, g22, g12, g01, g02, v1, v2, negligible)
    b0 = a @ v0
    b1 = a @ v1
    b2 = a @ v2
    n0 = dot(b0, b0)
    n1 = dot(b1, b1)
    n2 = dot(b2, b2)
    b0, b1, v0, v1, n0, n1 = ordered(b0, b1, v0, v1, n0, n1)
    b0, b2, v0, v2, n0, n2 = ordered(b0, b2, v0, v2, n0, n2)
    b1, b2, v1, v2, n1, n2 = ordered(b1, b2, v1, v2, n1, n2)
    # What squaring lost matters to the shorter columns. Turning keeps the order of lengths.
    b1, b2, v1, v2, _, _ = rotated_pair(b1, b2, v1, v2, negligible)
    product = 2 * lang.max(lang.abs(dot(b0, b1)), lang.abs(dot(b0, b2)))
    sweep = lang.select(product > dt(NEGLIGIBLE_TOLERANCES) * tolerance, 0, 12)
    while sweep < 12:
        b0, b1, v0, v1, product_01, sine_01 = rotated_pair(b0, b1, v0, v1, negligible)
        b0, b2, v0, v2, product_02, sine_02 = rotated_pair(b0, b2, v0, v2, negligible)
        b1, b2, v1, v2, product_12, sine_12 = rotated_pair(b1, b2, v1, v2, negligible)
        # A pair that was made orthogonal is disturbed by later turns: by at most a product times a sine.
        product = lang.max(product_01, product_02, product_12)
        sine = lang.max(sine_01, sine_02, sine_12)
        sweep = lang.select(product * sine > tolerance, sweep + 1, 12)
    n0 = dot(b0, b0)
    n1 = dot(b1, b1)
    u0 = b0 * lang.rsqrt(lang.max(n0, least))
    u0 = u0 * unit_factor(u0)
    # A column without a length has no direction: any orthogonal one will do.
    if n0 <= least:
        u0 = Vector([one, zero, zero])
    across = b1 - u0 * dot(u0, b1)
    length = dot(across, across)
    u1 = across * lang.rsqrt(lang.max(length, least))
    u1 = u1 - u0 * dot(u0, u1)
    # What is left of a column that is rounding error alone may point along the first one.
    if (length <= least) | (4 * length <= n1):
        u1 = orthogonal_to(u0)
    u1 = u1 * unit_factor(u1)
    u2 = cross(u0, u1)
    # Each turn's approximate root shortened the columns of V, and with them the matrix.
    long_0 = unit_factor(v0)
    long_1 = unit_factor(v1)
    long_2 = unit_factor(v2)
    s0 = dot(u0, b0) * (long_0 * scale)
    s1 = dot(u1, b1) * (long_1 * scale)
    s2 = dot(u2, b2) * (long_2 * scale)
    sigma = Matrix([[s0, zero, zero], [zero, s1, zero], [zero, zero, s2]])
    return cols([u0, u1, u2]), sigma, cols([v0 * long_0, v1 * long_1, v2 * long_2])


@on_host(of_real_type)
@pyfunc
def polar_decompose(A, dt=None):
    """``R, S`` with ``A = R @ S``, R orthogonal and S symmetric; for 2×2 and 3×3.

    For 3×3, R is a rotation, and S has a negative eigenvalue if the determinant of A is negative. For 2×2, S has none and R may be a
    reflection.
    """
    require_sizes((2, 3), "Polar decomposition only supports 2×2 and 3×3 matrices.", A.n, A.m, A.ndim)
    if lang.static(A.n == 2):
        return polar_decompose_2(A, real_type(dt))
    else:
        u, s, v = svd(A, dt)
        return u @ v.transpose(), v @ s @ v.transpose()


@pyfunc
def polar_decompose_2(A, dt: Template):
    a = lang.cast(A, dt)
    scale = lang.max(greatest(a), dt(least_scale(dt)))
    c, s, reflects, trace, difference, twice = polar_2(a / scale, dt)
    half = scale / 2
    between = twice * half
    sign = lang.select(reflects, -lang.one(c), lang.one(c))
    symmetric = Matrix([[(trace + difference) * half, between], [between, (trace - difference) * half]])
    return Matrix([[c, -sign * s], [s, sign * c]]), symmetric


# ---- eigenvalues --------------------------------------------------------------------------------------------------------------------


@on_host(of_real_type)
@pyfunc
def eig(A, dt=None):
    """Eigenvalues and eigenvectors of a 2×2 matrix.

    Row ``i`` of the first result is eigenvalue ``i``: its real and its imaginary part. Column ``i`` of the second is its eigenvector: real
    and imaginary part of the first entry, then of the second.
    """
    require_sizes((2,), "Eigen solver only supports 2×2 matrices.", A.n, A.m, A.ndim)
    return eig_2(A, real_type(dt))


@pyfunc
def eig_2(A, dt: Template):
    a = lang.cast(A, dt)
    zero = lang.cast(0.0, dt)
    mean = (a[0, 0] + a[1, 1]) * lang.cast(0.5, dt)
    half = (a[0, 0] - a[1, 1]) * lang.cast(0.5, dt)
    # Eigenvalues are mean ± root(discriminant).
    discriminant = half * half + a[0, 1] * a[1, 0]
    root = lang.sqrt(lang.abs(discriminant))
    real = lang.select(discriminant < 0, zero, root)
    imaginary = lang.select(discriminant < 0, root, zero)
    values = Matrix([[mean + real, imaginary], [mean - real, -imaginary]])
    first = eigenvector(a, half, real, imaginary, zero)
    second = eigenvector(a, half, -real, -imaginary, zero)
    return values, cols([first, second])


@pyfunc
def eigenvector(a, half, real, imaginary, zero):
    """The unit eigenvector for the eigenvalue ``mean + real + i imaginary``.

    Both rows of ``A - value`` are orthogonal to it, so each gives it; the longer row gives it accurately.
    """
    upper = Vector([a[0, 1], zero, real - half, imaginary])
    lower = Vector([real + half, imaginary, a[1, 0], zero])
    result = select_vector(dot(lower, lower) > dot(upper, upper), lower, upper)
    # A multiple of the unit matrix leaves every direction: the two eigenvectors are then the axes.
    length = dot(result, result)
    if length <= 0:
        result = Vector([lang.one(zero), zero, zero, zero])
    return result * lang.rsqrt(dot(result, result))


@on_host(of_real_type)
@pyfunc
def sym_eig(A, dt=None):
    """Eigenvalues in ascending order and a matrix of unit eigenvectors as columns, of a symmetric matrix up to 6×6."""
    require_sizes((1, 2, 3, 4, 5, 6), "Symmetric eigen solver currently supports sizes up to 6×6.", A.n, A.m, A.ndim)
    return sym_eig_n(A, real_type(dt))


@pyfunc
def sym_eig_n(A, dt: Template):
    least = dt(least_scale(dt))
    a = lang.cast(A, dt)
    scale = lang.max(greatest(a), least)
    a = a * (lang.cast(1.0, dt) / scale)
    v = lang.zero(a)
    for i in lang.static(range(A.n)):
        v[i, i] = 1
    negligible = dt(negligible_product(dt))
    rounding = lang.cast(precision(dt) / 16, dt)
    tolerance = rounding * 16 * A.n
    sweep = 0
    while sweep < 12:
        product = lang.cast(0.0, dt)
        sine = lang.cast(0.0, dt)
        for p in lang.static(range(A.n)):
            for q in lang.static(range(p + 1, A.n)):
                # What is lost in rounding anyway turns nothing: turning would only add its own rounding.
                between = lang.select(lang.abs(a[p, q]) > rounding, a[p, q], lang.zero(rounding))
                product = lang.max(product, lang.abs(between))
                c, s, _ = rotation(a[q, q] - a[p, p], 2 * between, negligible)
                sine = lang.max(sine, lang.abs(s))
                shift = s / c * between
                a[p, p] = a[p, p] - shift
                a[q, q] = a[q, q] + shift
                a[p, q] = lang.cast(0.0, dt)
                # Only the upper triangle is kept.
                for r in lang.static(range(p)):
                    x = a[r, p]
                    y = a[r, q]
                    a[r, p] = c * x - s * y
                    a[r, q] = s * x + c * y
                for r in lang.static(range(p + 1, q)):
                    x = a[p, r]
                    y = a[r, q]
                    a[p, r] = c * x - s * y
                    a[r, q] = s * x + c * y
                for r in lang.static(range(q + 1, A.n)):
                    x = a[p, r]
                    y = a[q, r]
                    a[p, r] = c * x - s * y
                    a[q, r] = s * x + c * y
                for r in lang.static(range(A.n)):
                    x = v[r, p]
                    y = v[r, q]
                    v[r, p] = c * x - s * y
                    v[r, q] = s * x + c * y
        sweep = lang.select(product * sine > tolerance, sweep + 1, 12)
    values = Vector([a[i, i] * scale for i in range(A.n)])
    for end in lang.static(range(1, A.n)):
        for i in lang.static(range(A.n - end)):
            swap = values[i] > values[i + 1]
            x = values[i]
            y = values[i + 1]
            values[i] = lang.select(swap, y, x)
            values[i + 1] = lang.select(swap, x, y)
            for r in lang.static(range(A.n)):
                x = v[r, i]
                y = v[r, i + 1]
                v[r, i] = lang.select(swap, y, x)
                v[r, i + 1] = lang.select(swap, x, y)
    return values, v


@on_host(of_real_type)
@pyfunc
def make_spd(A, dt=None):
    """The nearest symmetric matrix without negative eigenvalues, for symmetric matrices up to 6×6."""
    values, v = sym_eig(A, dt)
    weighted = lang.zero(v)
    for i in lang.static(range(A.n)):
        for j in lang.static(range(A.n)):
            weighted[i, j] = v[i, j] * lang.max(values[j], lang.zero(values[j]))
    return weighted @ v.transpose()


# ---- linear systems -------------------------------------------------------------------------------------------------------------------


@on_host(of_real_type)
@pyfunc
def solve(A, b, dt=None):
    """The solution ``x`` of ``A @ x = b`` for 2×2 and 3×3, by elimination with pivots."""
    require_system(A.n, A.m, A.ndim, b.n, b.ndim)
    require_sizes((2, 3), "Solver only supports 2×2 and 3×3 matrices.", A.n, A.m, A.ndim)
    return solve_n(A, b, real_type(dt))


@pyfunc
def solve_n(A, b, dt: Template):
    a = lang.cast(A, dt)
    x = lang.cast(b, dt)
    for k in lang.static(range(A.n)):
        for i in lang.static(range(k + 1, A.n)):
            # Compared one by one, the row with the greatest entry in this column comes up.
            swap = lang.abs(a[i, k]) > lang.abs(a[k, k])
            for j in lang.static(range(k, A.n)):
                upper = a[k, j]
                lower = a[i, j]
                a[k, j] = lang.select(swap, lower, upper)
                a[i, j] = lang.select(swap, upper, lower)
            upper = x[k]
            lower = x[i]
            x[k] = lang.select(swap, lower, upper)
            x[i] = lang.select(swap, upper, lower)
        assert a[k, k] != 0, "Matrix is singular in linear solve."
        for i in lang.static(range(k + 1, A.n)):
            factor = a[i, k] / a[k, k]
            for j in lang.static(range(k + 1, A.n)):
                a[i, j] = a[i, j] - factor * a[k, j]
            x[i] = x[i] - factor * x[k]
    for back in lang.static(range(1, A.n + 1)):
        for j in lang.static(range(A.n - back + 1, A.n)):
            x[A.n - back] = x[A.n - back] - a[A.n - back, j] * x[j]
        x[A.n - back] = x[A.n - back] / a[A.n - back, A.n - back]
    return x
