"""How far each math function may be from the exact result, in units in the last place (ULP).

One ULP is the gap between the exact result and the next number of its type. The exact result is numpy's in the next wider type (f64 for f32,
80 bits for f64), at arguments that are dense in the middle and even in the exponent out to the ends of the function's range.
`BOUNDS` is the table of docs/reference/accuracy.md; a test keeps the two the same. `measure_accuracy.py` beside it measures a device on many more
arguments.
"""

import re
from pathlib import Path

import numpy as np
import pytest
from devices import INTERPRETED

import octants as oc

DOCUMENT = Path(__file__).resolve().parents[2] / "docs" / "reference" / "accuracy.md"
REALS = {oc.f32: (np.float32, np.float64), oc.f64: (np.float64, np.longdouble)}

HUGE = 1e30
SIGNED, POSITIVE, ANGLE, UNIT = (-HUGE, HUGE), (0.0, HUGE), (-1e5, 1e5), (-1.0, 1.0)


def exact_erf(x):
    """``exp(-x²)`` times a series of positive terms, in the type of the argument; one from where no type tells the difference."""
    near = np.minimum(np.abs(x), 6.5)
    term = near.copy()
    total = near.copy()
    for n in range(1, 200):
        term = term * (2 * near * near / (2 * n + 1))
        total += term
    return np.copysign(np.minimum(total * np.exp(-near * near) * 2 / np.sqrt(4 * np.arctan(x.dtype.type(1))), 1), x)


# One argument: the operation in the language, the exact one, and the range of arguments. `log2` is a function of the language itself.
UNARY = {
    "sin": (oc.sin, np.sin, ANGLE),
    "cos": (oc.cos, np.cos, ANGLE),
    "tan": (oc.tan, np.tan, ANGLE),
    "asin": (oc.asin, np.arcsin, UNIT),
    "acos": (oc.acos, np.arccos, UNIT),
    "tanh": (oc.tanh, np.tanh, SIGNED),
    "erf": (oc.erf, exact_erf, SIGNED),
    "exp": (oc.exp, np.exp, (-80.0, 80.0)),
    "log": (oc.log, np.log, POSITIVE),
    "log2": (oc.math.log2, np.log2, POSITIVE),
    "sqrt": (oc.sqrt, np.sqrt, POSITIVE),
    "rsqrt": (oc.rsqrt, lambda x: 1 / np.sqrt(x), POSITIVE),
    "floor": (oc.floor, np.floor, SIGNED),
    "ceil": (oc.ceil, np.ceil, SIGNED),
    "round": (oc.round, lambda x: np.copysign(np.floor(np.abs(x) + 0.5), x), (-1e6, 1e6)),
    "abs": (oc.abs, np.abs, SIGNED),
}
BINARY = {
    "atan2": (oc.atan2, np.arctan2, SIGNED, SIGNED),
    "pow": (oc.pow, np.power, (0.0, 1e9), (-4.0, 4.0)),
    "raw_div": (oc.raw_div, np.divide, (-1e15, 1e15), (-1e15, 1e15)),
}

# ULPs with fast_math=False, and with fast_math=True. The interpreter's are a CPU's without.
CPU_BOUNDS = {
    "sin": (1.0, 1.5),
    "cos": (1.0, 1.5),
    "tan": (1.5, 1.5),
    "asin": (1.0, 1.5),
    "acos": (1.0, 1.5),
    "atan2": (1.5, 1.5),
    "tanh": (2.5, 1.5),
    "erf": (1.5, 1.5),
    "exp": (1.0, 1.5),
    "log": (1.0, 4.0),
    "log2": (1.0, 4.0),
    "pow": (1.0, 4.0),
    "sqrt": (0.5, 1.0),
    "rsqrt": (1.5, 3.0),
    "raw_div": (0.5, 0.5),
    "floor": (0.0, 0.0),
    "ceil": (0.0, 0.0),
    "round": (0.0, 0.0),
    "abs": (0.0, 0.0),
}
# The vendor's library, with and without; what is an instruction is approximated with fast_math.
GPU_BOUNDS = CPU_BOUNDS | {
    "sin": (2.0, 2.0),
    "cos": (2.0, 2.0),
    "tan": (3.5, 3.5),
    "asin": (2.0, 2.0),
    "acos": (2.0, 2.0),
    "atan2": (2.5, 2.5),
    "tanh": (2.0, 2.0),
    "erf": (3.5, 3.5),
    "exp": (2.0, 2.0),
    "log": (1.0, 1.0),
    "log2": (1.5, 1.5),
    "pow": (2.0, 2.0),
    "rsqrt": (1.5, 2.0),
}
# Those that a CPU computes by arithmetic with fast_math, in every loop; of f32 two more.
ARITHMETIC = ("exp", "asin", "acos", "atan2", "tanh", "erf")
ARITHMETIC_F32 = (*ARITHMETIC, "log", "log2")
# Those that it computes so in vectors, where a product and a sum are one instruction. Otherwise they are the C library's, with this bound.
ANGLES = ("sin", "cos", "tan")
LIBRARY_BOUND = 4.0
BOUNDS = {"cpu": CPU_BOUNDS, "reference": CPU_BOUNDS, "remote": CPU_BOUNDS, "cuda": GPU_BOUNDS}


def arguments(real, limits, random, count):
    low, high = limits
    sign = random.choice([-1.0, 1.0], count) if low < 0 else 1.0
    parts = [
        random.uniform(max(low, -4), min(high, 4), count),
        random.uniform(max(low, -1e4), min(high, 1e4), count),
        np.exp(random.uniform(np.log(1e-30), np.log(high), count)) * sign,
    ]
    x = np.concatenate(parts).astype(real)
    x[x == 0] = 1
    return x


def ulps(got, exact):
    with np.errstate(all="ignore"):
        gap = np.spacing(np.abs(exact).astype(got.dtype)).astype(exact.dtype)
        error = np.abs(got.astype(exact.dtype) - exact) / gap
    # Beyond the type's range the exact result is infinite, and so must this one be.
    beyond = ~np.isfinite(gap)
    assert not np.isfinite(got[beyond]).any()
    return np.where(beyond, 0, error)


def bound(arch, name, dtype, fast):
    stated = BOUNDS[arch][name][fast and arch != "reference"]
    if fast and arch == "cpu" and dtype is oc.f32 and name in ARITHMETIC_F32:
        stated = 1.5
    if fast and arch == "cpu" and name in ANGLES and not fuses():
        stated = LIBRARY_BOUND
    return stated + 1e-3


def fuses():
    """Whether this machine has vectors of 256 bits, and products and sums in one instruction."""
    flags = re.search(r"^flags\s*:(.*)", Path("/proc/cpuinfo").read_text(), flags=re.MULTILINE)
    return flags is not None and {"avx2", "fma"} <= set(flags[1].split())


def is_arithmetic(name, dtype):
    return name in (ARITHMETIC_F32 if dtype is oc.f32 else ARITHMETIC)


def start(arch, fast):
    oc.init(arch=getattr(oc, arch), fast_math=fast, log_level="error")


def samples(arch):
    return 2_000 if arch in INTERPRETED else 20_000


@pytest.mark.parametrize("fast", [False, True], ids=["exact", "fast_math"])
@pytest.mark.parametrize("dtype", REALS, ids=str)
@pytest.mark.parametrize("name", UNARY)
def test_one_argument(arch, name, dtype, fast):
    function, exact, limits = UNARY[name]
    start(arch, fast)
    array = oc.types.ndarray(dtype=dtype, ndim=1)

    @oc.kernel
    def k(x: array, out: array):
        for i in range(x.shape[0]):
            out[i] = function(x[i])

    real, wide = REALS[dtype]
    x = arguments(real, limits, np.random.default_rng(7), samples(arch))
    out = np.empty_like(x)
    k(x, out)
    error = ulps(out, exact(x.astype(wide)))
    worst = int(np.argmax(error))
    assert error[worst] <= bound(arch, name, dtype, fast), (x[worst], out[worst])


@pytest.mark.parametrize("fast", [False, True], ids=["exact", "fast_math"])
@pytest.mark.parametrize("dtype", REALS, ids=str)
@pytest.mark.parametrize("name", BINARY)
def test_two_arguments(arch, name, dtype, fast):
    function, exact, first, second = BINARY[name]
    start(arch, fast)
    array = oc.types.ndarray(dtype=dtype, ndim=1)

    @oc.kernel
    def k(x: array, y: array, out: array):
        for i in range(x.shape[0]):
            out[i] = function(x[i], y[i])

    real, wide = REALS[dtype]
    random = np.random.default_rng(8)
    x = arguments(real, first, random, samples(arch))
    y = random.permutation(arguments(real, second, random, samples(arch)))
    out = np.empty_like(x)
    k(x, y, out)
    with np.errstate(all="ignore"):
        error = ulps(out, exact(x.astype(wide), y.astype(wide)))
    if fast:
        # Results below the type's normal range may be flushed.
        error = np.where(np.abs(out) < np.finfo(real).tiny, 0, error)
    worst = int(np.argmax(error))
    assert error[worst] <= bound(arch, name, dtype, fast), (x[worst], y[worst], out[worst])


@pytest.mark.parametrize("dtype", REALS, ids=str)
def test_angles_of_any_size_are_reduced_exactly(arch, dtype):
    start(arch, fast=False)
    array = oc.types.ndarray(dtype=dtype, ndim=1)

    @oc.kernel
    def k(x: array, s: array, c: array):
        for i in range(x.shape[0]):
            s[i] = oc.sin(x[i])
            c[i] = oc.cos(x[i])

    real, wide = REALS[dtype]
    # Exact even in 80 bits only while the argument is small; numpy reduces f64 arguments of any size exactly.
    x = np.exp(np.random.default_rng(9).uniform(0, np.log(1e38), 3000)).astype(np.float32).astype(real)
    s, c = np.empty_like(x), np.empty_like(x)
    k(x, s, c)
    assert ulps(s, np.sin(x.astype(np.float64)).astype(wide)).max() <= 2
    assert ulps(c, np.cos(x.astype(np.float64)).astype(wide)).max() <= 2


EDGES = {
    "sin": ([0.0, -0.0, np.inf, np.nan], [0.0, -0.0, np.nan, np.nan]),
    "cos": ([0.0, -0.0, np.inf, -np.inf, np.nan], [1.0, 1.0, np.nan, np.nan, np.nan]),
    "tan": ([0.0, -0.0, -np.inf, np.nan, 1e-45, -1e-40], [0.0, -0.0, np.nan, np.nan, 1e-45, -1e-40]),
    "tanh": ([0.0, -0.0, np.inf, -np.inf, np.nan], [0.0, -0.0, 1.0, -1.0, np.nan]),
    "erf": ([0.0, -0.0, 10.0, -10.0, np.inf, -np.inf, np.nan], [0.0, -0.0, 1.0, -1.0, 1.0, -1.0, np.nan]),
    "asin": ([1.0, -1.0, 1.5, 0.0, -0.0, np.nan], [np.pi / 2, -np.pi / 2, np.nan, 0.0, -0.0, np.nan]),
    "acos": ([1.0, -1.0, -1.5, 0.0, -0.0, np.nan], [0.0, np.pi, np.nan, np.pi / 2, np.pi / 2, np.nan]),
    "exp": ([0.0, np.inf, -np.inf, 1000.0, -1000.0, np.nan], [1.0, np.inf, 0.0, np.inf, 0.0, np.nan]),
    "log": ([1.0, 0.0, np.inf, -1.0, np.nan], [0.0, -np.inf, np.inf, np.nan, np.nan]),
    "log2": ([1.0, 8.0, 0.0, -1.0], [0.0, 3.0, -np.inf, np.nan]),
    "sqrt": ([0.0, -0.0, np.inf, -1.0, np.nan], [0.0, -0.0, np.inf, np.nan, np.nan]),
    "rsqrt": ([0.0, np.inf, 4.0], [np.inf, 0.0, 0.5]),
    "floor": ([-0.5, 0.5, -0.0, np.inf, np.nan], [-1.0, 0.0, -0.0, np.inf, np.nan]),
    "ceil": ([-0.5, 0.5, -0.0, np.inf, np.nan], [-0.0, 1.0, -0.0, np.inf, np.nan]),
    "round": ([0.5, 1.5, 2.5, -0.5, -2.5, 0.49999997, np.inf], [1.0, 2.0, 3.0, -1.0, -3.0, 0.0, np.inf]),
}


@pytest.mark.parametrize("fast", [False, True], ids=["exact", "fast_math"])
@pytest.mark.parametrize("dtype", REALS, ids=str)
@pytest.mark.parametrize("name", EDGES)
def test_edges(arch, name, dtype, fast):
    if fast and (arch != "cpu" or not (is_arithmetic(name, dtype) or name in ANGLES and fuses())):
        pytest.skip("edges are promised without fast_math, and of functions that are arithmetic")
    function = UNARY[name][0]
    start(arch, fast)
    array = oc.types.ndarray(dtype=dtype, ndim=1)

    @oc.kernel
    def k(x: array, out: array):
        for i in range(x.shape[0]):
            out[i] = function(x[i])

    real = REALS[dtype][0]
    # Whole vectors, and what is left over.
    x, expected = (np.tile(np.array(values, dtype=real), 21) for values in EDGES[name])
    out = np.empty_like(x)
    k(x, out)
    if (arch, name, dtype) == ("cuda", "log2", oc.f64):
        # The vendor's function is not exact at powers of two; it keeps its bound of 1.5 ULP.
        np.testing.assert_allclose(out, expected, rtol=2.0**-52)
    else:
        np.testing.assert_array_equal(out, expected)
    known = ~np.isnan(expected)
    assert np.array_equal(np.signbit(out[known]), np.signbit(expected[known]))


@pytest.mark.parametrize("fast", [False, True], ids=["exact", "fast_math"])
@pytest.mark.parametrize("dtype", REALS, ids=str)
@pytest.mark.parametrize("count", [1, 40])
def test_angles_of_axes_and_infinite_points(arch, fast, dtype, count):
    start(arch, fast)
    array = oc.types.ndarray(dtype=dtype, ndim=1)

    @oc.kernel
    def k(y: array, x: array, out: array):
        for i in range(x.shape[0]):
            out[i] = oc.atan2(y[i], x[i])

    real = REALS[dtype][0]
    info = np.finfo(real)
    special = np.array([0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, info.tiny / 64, -info.max, np.nan], dtype=real)
    y, x = (np.tile(values.ravel(), count) for values in np.meshgrid(special, special))
    out = np.empty_like(x)
    k(y, x, out)
    np.testing.assert_allclose(out, np.arctan2(y, x), rtol=2.5 * info.eps, atol=4 * info.smallest_subnormal)


@pytest.mark.parametrize("dtype", REALS, ids=str)
def test_results_below_the_normal_ones(arch, dtype):
    """A power of e that is subnormal, and the logarithm of such a number."""
    start(arch, fast=True)
    array = oc.types.ndarray(dtype=dtype, ndim=1)

    @oc.kernel
    def k(x: array, power: array, log: array):
        for i in range(x.shape[0]):
            power[i] = oc.exp(x[i])
            log[i] = oc.log(power[i])

    real, wide = REALS[dtype]
    x = np.linspace(*((-103, -80) if dtype is oc.f32 else (-745, -700)), 1000, dtype=real)
    power, log = np.empty_like(x), np.empty_like(x)
    k(x, power, log)
    assert ulps(power, np.exp(x.astype(wide))).max() <= 2
    assert ulps(log, np.log(power.astype(wide))).max() <= 1.5


@pytest.mark.parametrize("dtype", REALS, ids=str)
@pytest.mark.parametrize("name", ANGLES)
def test_angles_near_multiples_of_a_quarter_turn(arch, name, dtype):
    """The three numbers around each multiple: all but the last digits of the angle cancel."""
    function, exact, _ = UNARY[name]
    start(arch, fast=True)
    array = oc.types.ndarray(dtype=dtype, ndim=1)

    @oc.kernel
    def k(x: array, out: array):
        for i in range(x.shape[0]):
            out[i] = function(x[i])

    real, wide = REALS[dtype]
    # In 80 bits π itself is too short for more.
    most = 63_000 if dtype is oc.f32 else 500
    near = (np.arange(-most, most) * (np.pi / 2)).astype(real)
    x = np.concatenate([near, np.nextafter(near, real(np.inf)), np.nextafter(near, real(-np.inf))])
    x[x == 0] = 1
    out = np.empty_like(x)
    k(x, out)
    error = ulps(out, exact(x.astype(wide)))
    worst = int(np.argmax(error))
    assert error[worst] <= bound(arch, name, dtype, True), (x[worst], out[worst])


@pytest.mark.parametrize("dtype", REALS, ids=str)
@pytest.mark.parametrize("name", ANGLES)
def test_large_angles_leave_their_neighbours_alone(name, dtype):
    """Angles that are reduced by other code, in the same vector."""
    function, exact, _ = UNARY[name]
    start("cpu", fast=True)
    array = oc.types.ndarray(dtype=dtype, ndim=1)

    @oc.kernel
    def k(x: array, out: array):
        for i in range(x.shape[0]):
            out[i] = function(x[i])

    real, wide = REALS[dtype]
    x = np.random.default_rng(12).uniform(-9, 9, 4000).astype(real)
    alone, out = np.empty_like(x), np.empty_like(x)
    k(x, alone)
    large = np.arange(4000) % 37 == 5
    mixed = np.where(large, real(1) + np.abs(x) * real(1e9), x).astype(real)
    mixed[5] = np.inf
    mixed[42] = np.nan
    k(mixed, out)
    assert np.array_equal(out[~large], alone[~large])
    assert np.isnan(out[[5, 42]]).all()
    large[[5, 42]] = False
    assert ulps(out[large], exact(mixed[large].astype(wide))).max() <= LIBRARY_BOUND


@pytest.mark.parametrize(("name", "dtype"), [(n, t) for t in REALS for n in ARITHMETIC_F32 if is_arithmetic(n, t)])
def test_a_function_is_the_same_in_every_lane_and_outside_of_vectors(name, dtype):
    function = (UNARY | BINARY)[name][0]
    start("cpu", fast=True)
    array = oc.types.ndarray(dtype=dtype, ndim=1)

    @oc.func
    def of(x):
        return function(x, x * 0.7 + 0.1) if oc.static(name == "atan2") else function(x)

    @oc.kernel
    def parallel(x: array, out: array):
        for i in range(x.shape[0]):
            out[i] = of(x[i])

    @oc.kernel
    def apart(x: array, out: array):
        for i in range(x.shape[0] // 7):
            out[7 * i] = of(x[7 * i])

    @oc.kernel
    def one(x: array, out: array, i: oc.i32):
        out[i] = of(x[i])

    x = np.random.default_rng(13).uniform(0.01, 0.99, 7 * 41).astype(REALS[dtype][0])
    whole, every_seventh, single = np.empty_like(x), np.empty_like(x), np.empty_like(x)
    parallel(x, whole)
    apart(x, every_seventh)
    assert np.array_equal(every_seventh[::7], whole[::7])
    for i in range(20):
        one(x, single, i)
    assert np.array_equal(single[:20], whole[:20])


@pytest.mark.parametrize("fast", [False, True], ids=["exact", "fast_math"])
@pytest.mark.parametrize("dtype", REALS, ids=str)
def test_mantissa_and_exponent_are_exact(arch, dtype, fast):
    start(arch, fast)
    array = oc.types.ndarray(dtype=dtype, ndim=1)

    @oc.kernel
    def k(x: array, mantissa: array, exponent: oc.types.ndarray(dtype=oc.i32, ndim=1)):
        for i in range(x.shape[0]):
            mantissa[i], exponent[i] = oc.frexp(x[i])

    real = REALS[dtype][0]
    info = np.finfo(real)
    edges = [0.0, -0.0, -8.0, 0.5, np.inf, -np.inf, np.nan, info.smallest_subnormal, info.tiny, info.max]
    x = np.append(np.array(edges, dtype=real), arguments(real, SIGNED, np.random.default_rng(11), 500))
    mantissa, exponent = np.empty_like(x), np.empty(x.size, dtype=np.int32)
    k(x, mantissa, exponent)
    expected = np.frexp(x)
    np.testing.assert_array_equal(mantissa, expected[0])
    np.testing.assert_array_equal(exponent, expected[1])
    assert oc.frexp(12.5) == (0.78125, 4)


def test_half_precision_is_rounded_once(arch):
    start(arch, fast=False)
    array = oc.types.ndarray(dtype=oc.f16, ndim=1)

    @oc.kernel
    def k(x: array, y: array, out: oc.types.ndarray(dtype=oc.f16, ndim=2)):
        for i in range(x.shape[0]):
            out[0, i] = x[i] + y[i]
            out[1, i] = x[i] * y[i]
            out[2, i] = x[i] / y[i]
            out[3, i] = oc.sqrt(abs(x[i]))
            out[4, i] = oc.sin(x[i])
            out[5, i] = oc.erf(x[i] / oc.cast(25.0, oc.f16))
            out[6, i] = oc.rsqrt(y[i])

    random = np.random.default_rng(10)
    x = random.uniform(-100, 100, 2000).astype(np.float16)
    y = random.uniform(1, 50, 2000).astype(np.float16)
    out = np.empty((7, 2000), dtype=np.float16)
    k(x, y, out)
    a, b = x.astype(np.float64), y.astype(np.float64)
    quotient = (a / 25).astype(np.float16).astype(np.float64)
    expected = [a + b, a * b, a / b, np.sqrt(np.abs(a)), np.sin(a), exact_erf(quotient), 1 / np.sqrt(b)]
    for row, exact in zip(out, expected, strict=True):
        assert ulps(row, exact).max() <= 0.501


SPECIAL = [0.0, np.inf, 4.0, 1e-40, 1.2e-38, 3e38, -1.0, -np.inf, np.nan]


@pytest.mark.parametrize("fast", [False, True], ids=["exact", "fast_math"])
@pytest.mark.parametrize("count", [1, 3, 9, 100])
def test_reciprocals_of_roots_at_zero_and_infinity(arch, fast, count):
    """Loops of few and many iterations: scalars and vectors."""
    start(arch, fast=fast)
    array = oc.types.ndarray(dtype=oc.f32, ndim=1)

    @oc.kernel
    def k(x: array, out: oc.types.ndarray(dtype=oc.f32, ndim=2)):
        for i in range(x.shape[0]):
            out[0, i] = oc.rsqrt(x[i])
            out[1, i] = 1 / oc.sqrt(x[i])
            out[2, i] = 3 / oc.sqrt(x[i])
            out[3, i] = oc.Vector([oc.sqrt(abs(x[i])), 0.0]).norm_inv()

    @oc.kernel
    def with_a_loop(x: array, out: oc.types.ndarray(dtype=oc.f32, ndim=2)):
        for i in range(x.shape[0]):
            s = 0.0
            for j in range(x.shape[0] // x.shape[0]):
                s += oc.rsqrt(x[i] + j)
            out[0, i] = s

    @oc.kernel
    def one(x: oc.f32) -> oc.f32:
        return oc.rsqrt(x)

    x = np.resize(np.array(SPECIAL, dtype=np.float32), count)
    out = np.zeros((4, count), dtype=np.float32)
    with np.errstate(all="ignore"):
        exact = 1 / np.sqrt(x.astype(np.float64))
    k(x, out)
    np.testing.assert_allclose(out[0], exact, rtol=1e-5)
    np.testing.assert_allclose(out[1], exact, rtol=1e-5)
    np.testing.assert_allclose(out[2], 3 * exact, rtol=1e-5)
    with np.errstate(all="ignore"):
        of_magnitude = 1 / np.sqrt(np.abs(x, dtype=np.float64))
    np.testing.assert_allclose(out[3], of_magnitude, rtol=1e-5)
    with_a_loop(x, out)
    np.testing.assert_allclose(out[0], exact, rtol=1e-5)
    for value, expected in zip(x, exact, strict=True):
        np.testing.assert_allclose(one(value), expected, rtol=1e-5)


def test_a_number_by_its_own_root_is_its_root_under_fast_math(fresh_session):
    start(fresh_session, fast=True)
    array = oc.types.ndarray(dtype=oc.f32, ndim=1)

    @oc.kernel
    def k(x: array, out: array):
        for i in range(x.shape[0]):
            out[i] = x[i] / oc.sqrt(x[i])

    @oc.kernel
    def one(x: oc.f32) -> oc.f32:
        return x / oc.sqrt(x)

    x = np.array([0.0, 4.0, np.inf, 2.25] * 20, dtype=np.float32)
    out = np.zeros_like(x)
    k(x, out)
    np.testing.assert_allclose(out, np.sqrt(x), rtol=1e-5)
    assert (one(0.0), one(np.inf)) == (0.0, np.inf)


@pytest.mark.no_device
def test_the_document_states_these_bounds():
    rows = re.findall(r"^\| `(\w+)` (.+)\|", DOCUMENT.read_text(), flags=re.MULTILINE)
    stated = {name: [float(number) for number in re.findall(r"(?<=\| )[\d.]+(?= )", rest)] for name, rest in rows}
    assert stated == {name: [*CPU_BOUNDS[name], *GPU_BOUNDS[name]] for name in CPU_BOUNDS}


@pytest.mark.parametrize("fast", [False, True], ids=["exact", "fast_math"])
@pytest.mark.parametrize("dtype", REALS, ids=str)
def test_whole_quotients_of_reals_are_not_rounded_below(arch, dtype, fast):
    """A product with the reciprocal would be: 49 times 1/49 is less than 1 in f32."""
    start(arch, fast)
    array = oc.types.ndarray(dtype=dtype, ndim=1)

    @oc.kernel
    def k(x: array, y: array, quotient: array, constant: array, rest: array):
        for i in range(x.shape[0]):
            quotient[i] = x[i] // y[i]
            constant[i] = x[i] // 49.0
            rest[i] = x[i] % y[i]

    real, _ = REALS[dtype]
    whole, y = (values.ravel().astype(real) for values in np.mgrid[1:41, 1:200])
    quotient, constant, rest = (np.empty_like(y) for _ in range(3))
    k(whole * y, y, quotient, constant, rest)
    assert np.array_equal(quotient, whole)
    assert np.array_equal(rest, np.zeros_like(y))
    assert np.array_equal(constant, np.floor(whole * y / 49))


@pytest.mark.parametrize("fast", [False, True], ids=["exact", "fast_math"])
@pytest.mark.parametrize("dtype", REALS, ids=str)
def test_remainders_of_truncated_quotients_are_exact(arch, dtype, fast):
    start(arch, fast)
    array = oc.types.ndarray(dtype=dtype, ndim=1)

    @oc.kernel
    def k(x: array, y: array, out: array):
        for i in range(x.shape[0]):
            out[i] = oc.raw_mod(x[i], y[i])

    real, _ = REALS[dtype]
    random = np.random.default_rng(10)
    x = np.exp(random.uniform(-20, 20, 3000)) * random.choice([-1, 1], 3000)
    y = np.exp(random.uniform(-20, 20, 3000)) * random.choice([-1, 1], 3000)
    x, y = x.astype(real), y.astype(real)
    out = np.empty_like(x)
    k(x, y, out)
    assert np.array_equal(out, np.fmod(x, y))
