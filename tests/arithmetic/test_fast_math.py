"""What ``fast_math`` leaves as it is written: quotients, and what becomes a whole number (docs/reference/accuracy.md states the rule).

Expected values are numpy's in f32, operation by operation.
"""

import numpy as np
import pytest
from devices import INTERPRETED

import octants as oc

REALS = oc.types.ndarray(dtype=oc.f32, ndim=1)
DOUBLES = oc.types.ndarray(dtype=oc.f64, ndim=1)
WHOLES = oc.types.ndarray(dtype=oc.i32, ndim=1)
F32 = np.float32
# Divisors whose multiples a product with the reciprocal gets wrong, and others.
DIVISORS = [1, 3, 7, 10, 41, 49, 55, 141, 480, 999, 20_000]


@pytest.fixture(autouse=True)
def fast(arch):
    oc.init(arch=getattr(oc, arch), fast_math=True, log_level="error")


def count(arch):
    return 500 if arch in INTERPRETED else 20_000


@pytest.mark.parametrize(("width", "height"), [(640, 480), (512, 333), (321, 77)])
def test_the_middle_of_a_picture_is_zero(width, height):
    @oc.kernel
    def known(x: REALS):
        for i in range(width + 1):
            x[i] = (i - 0.5 * width) / height

    @oc.kernel
    def told(x: REALS, w: oc.i32, h: oc.i32):
        for i in range(w + 1):
            x[i] = (i - 0.5 * w) / h

    @oc.kernel
    def one(i: oc.i32, w: oc.i32, h: oc.i32) -> oc.f32:
        return (i - 0.5 * w) / h

    expected = (np.arange(width + 1).astype(F32) - F32(0.5 * width)) / F32(height)
    x = np.full(width + 1, np.nan, F32)
    known(x)
    np.testing.assert_array_equal(x, expected)
    x[:] = np.nan
    told(x, width, height)
    np.testing.assert_array_equal(x, expected)
    assert one(width, 2 * width, height) == 0


@pytest.mark.parametrize("n", DIVISORS)
def test_quotients_of_multiples_are_exact(arch, n):
    """In a plain loop, in one with a loop inside, which runs in lanes, and one by one; by a number that is known and by one that is told."""

    @oc.kernel
    def known(y: WHOLES):
        for i in range(y.shape[0]):
            y[i] = int(i * n / n)

    @oc.kernel
    def told(y: WHOLES, m: oc.i32):
        for i in range(y.shape[0]):
            y[i] = int(i * m / m)

    @oc.kernel
    def in_lanes(y: WHOLES, m: oc.i32, turns: oc.i32):
        for i in range(y.shape[0]):
            total = 0
            for j in range(turns):
                total += int((i + j) * n / n) + int((i + j) * m / m)
            y[i] = total

    @oc.kernel
    def serial(y: WHOLES, m: oc.i32):
        oc.loop_config(serialize=True)
        for i in range(y.shape[0]):
            y[i] = int(i * m / m)

    # Products up to 2 ** 24 are exact in f32.
    size = min(count(arch), 2**24 // n)
    numbers = np.arange(size, dtype=np.int32)
    for kernel, expected in [
        (lambda y: known(y), numbers),
        (lambda y: told(y, n), numbers),
        (lambda y: in_lanes(y, n, 3), 6 * numbers + 6),
        (lambda y: serial(y, n), numbers),
    ]:
        y = np.full(size, -1, np.int32)
        kernel(y)
        np.testing.assert_array_equal(y[:-3], expected[:-3])


def test_quotients_by_every_number_are_exact(arch):
    @oc.kernel
    def k(y: WHOLES, times: oc.i32):
        for i in range(y.shape[0]):
            n = i + 1
            y[i] = int(n * times / n)

    y = np.empty(count(arch), np.int32)
    for times in (1, 3, 41, 141, 800):
        k(y, times)
        assert (y == times).all()


def test_random_quotients_are_correctly_rounded(arch):
    @oc.kernel
    def k(a: REALS, b: REALS, quotient: REALS, whole: WHOLES, constant: REALS, inverse: REALS, m: oc.f32, told: REALS):
        for i in range(a.shape[0]):
            quotient[i] = a[i] / b[i]
            whole[i] = int(a[i] / b[i])
            constant[i] = a[i] / 141.7
            inverse[i] = 1 / b[i]
            told[i] = a[i] / m

    @oc.kernel
    def doubles(a: DOUBLES, b: DOUBLES, quotient: DOUBLES, constant: DOUBLES):
        for i in range(a.shape[0]):
            quotient[i] = a[i] / b[i]
            constant[i] = a[i] / 141.7

    random = np.random.default_rng(3)
    size = count(arch)
    a, b = (np.exp(random.uniform(-30, 30, size)) * random.choice([-1, 1], size) for _ in range(2))
    # Whole ones in between, which are what programs divide.
    a[::3], b[::3] = random.integers(0, 4000, (2, a[::3].size)) + 1
    x, y = a.astype(F32), b.astype(F32)
    quotient, constant, inverse, told = (np.empty_like(x) for _ in range(4))
    whole = np.empty(size, np.int32)
    k(x, y, quotient, whole, constant, inverse, F32(0.3), told)
    np.testing.assert_array_equal(quotient, x / y)
    inside = np.abs(x / y) < 2**31
    np.testing.assert_array_equal(whole[inside], np.trunc(x / y)[inside].astype(np.int32))
    np.testing.assert_array_equal(constant, x / F32(141.7))
    np.testing.assert_array_equal(inverse, F32(1) / y)
    np.testing.assert_array_equal(told, x / F32(0.3))
    wide, fixed = np.empty(size), np.empty(size)
    doubles(a, b, wide, fixed)
    np.testing.assert_array_equal(wide, a / b)
    # A real of the text is an f32.
    np.testing.assert_array_equal(fixed, a / np.float64(F32(141.7)))


ROUNDED = {"floor": oc.floor, "ceil": oc.ceil, "round": oc.round, "int": int}


@pytest.mark.parametrize("name", ROUNDED)
def test_what_becomes_whole_is_not_contracted(arch, name):
    """`floor(max(p, 0.5 / n) * n - 0.5)` is that of the product's rounding and the difference's, through variables, choices and functions."""
    whole = ROUNDED[name]

    @oc.func
    def border(p, n):
        return oc.max(p, 0.5 / n) * n - 0.5

    @oc.kernel
    def straight(p: REALS, n: REALS, y: REALS):
        for i in range(y.shape[0]):
            y[i] = whole(oc.max(p[i], 0.5 / n[i]) * n[i] - 0.5)

    @oc.kernel
    def through_a_func(p: REALS, n: REALS, y: REALS):
        for i in range(y.shape[0]):
            y[i] = whole(border(p[i], n[i]))

    @oc.kernel
    def through_a_variable(p: REALS, n: REALS, y: REALS):
        for i in range(y.shape[0]):
            at = 7.0
            if n[i] > 0:
                at = oc.max(p[i], 0.5 / n[i]) * n[i]
                at -= 0.5
            y[i] = whole(at)

    @oc.kernel
    def in_lanes(p: REALS, n: REALS, y: REALS, turns: oc.i32):
        for i in range(y.shape[0]):
            total = 0.0
            for j in range(turns):
                total += whole(oc.max(p[i], 0.5 / n[i]) * n[i] - 0.5)
            y[i] = total

    size = count(arch)
    n = np.arange(1, size + 1).astype(F32)
    p = np.zeros(size, F32)
    p[1::3] = 1 / n[1::3]
    at = np.maximum(p, F32(0.5) / n) * n - F32(0.5)
    expected = {
        "floor": np.floor,
        "ceil": np.ceil,
        "round": lambda x: np.copysign(np.floor(np.abs(x) + F32(0.5)), x),
        "int": np.trunc,
    }[name](at)
    y = np.empty(size, F32)
    for kernel in (straight, through_a_func, through_a_variable):
        y[:] = np.nan
        kernel(p, n, y)
        np.testing.assert_array_equal(y, expected)
    in_lanes(p, n, y, 1)
    np.testing.assert_array_equal(y, expected)


def test_an_index_is_not_contracted(arch):
    @oc.kernel
    def k(x: REALS, grid: WHOLES, n: oc.f32):
        for i in range(x.shape[0]):
            grid[int(x[i] * n + 0.5)] += 1

    random = np.random.default_rng(5)
    for n in (3.0, 41.0, 100.0):
        x = random.uniform(0, 1, count(arch)).astype(F32)
        # Halfway between two cells, as nearly as can be.
        x[::2] = (random.integers(0, int(n), x[::2].size).astype(F32) + F32(0.5)) / F32(n)
        grid = np.zeros(int(n) + 2, np.int32)
        k(x, grid, n)
        cells = (x * F32(n) + F32(0.5)).astype(np.int32)
        np.testing.assert_array_equal(grid, np.bincount(cells, minlength=grid.size))


def test_sums_as_they_are_written(arch):
    """A compensated sum keeps what it compensates, and a number is rounded by adding and subtracting a large one."""

    @oc.kernel
    def compensated(x: REALS) -> oc.f32:
        total = 0.0
        lost = 0.0
        oc.loop_config(serialize=True)
        for i in range(x.shape[0]):
            y = x[i] - lost
            t = total + y
            lost = (t - total) - y
            total = t
        return total

    @oc.kernel
    def rounded(x: REALS, y: REALS):
        for i in range(x.shape[0]):
            y[i] = (x[i] + 12582912.0) - 12582912.0

    x = np.random.default_rng(6).uniform(0, 1, count(arch)).astype(F32)
    exact = x.astype(np.float64).sum()
    assert abs(compensated(x) - exact) <= np.spacing(F32(exact))
    y = np.empty_like(x)
    rounded(x * 1000, y)
    np.testing.assert_array_equal(y, np.rint(x * 1000))


def test_integers_of_python_are_arguments_of_functions(arch):
    half = 2

    class Angles:
        turn = -1

    angles = Angles()

    @oc.kernel
    def k(y: REALS):
        for _ in range(1):
            y[0] = oc.acos(-1)
            y[1] = oc.asin(1)
            y[2] = oc.sin(half)
            y[3] = oc.cos(angles.turn)
            y[4] = oc.tan(1)
            y[5] = oc.tanh(1)
            y[6] = oc.floor(3)
            y[7] = oc.ceil(-3)
            y[8] = oc.round(3)
            y[9] = oc.erf(0)
            y[10] = oc.atan2(-1, -1)
            y[11] = oc.exp(0) + oc.log(1) + oc.sqrt(4) + oc.rsqrt(4)

    y = np.zeros(12, F32)
    k(y)
    pi = np.pi
    expected = [pi, pi / 2, np.sin(2), np.cos(-1), np.tan(1), np.tanh(1), 3, -3, 3, 0, -3 * pi / 4, 3.5]
    np.testing.assert_allclose(y, expected, rtol=1e-6)
