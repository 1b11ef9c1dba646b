"""Reductions at the edges of reals: NaN, both zeros, infinities. Code does what the interpreter does, bit by bit."""

import itertools

import numpy as np
import pytest

import octants as oc

REALS = {oc.f32: (np.float32, np.uint32), oc.f64: (np.float64, np.uint64)}
INTEGERS = {oc.i32: np.int32, oc.u32: np.uint32, oc.i64: np.int64, oc.u64: np.uint64}
NAN, INF = float("nan"), float("inf")
CONTRIBUTIONS = [
    [-0.0],
    [0.0],
    [-0.0, -0.0],
    [0.0, -0.0],
    [NAN],
    [NAN, NAN],
    [NAN, 3.0, NAN],
    [INF],
    [-INF],
    [INF, NAN],
    [INF, -INF],
    [1.0],
    [2.0, -1.0],
]
CELLS = [0.0, -0.0, NAN, INF, -INF, 1.5]


def make(dtype, update):
    array = oc.types.ndarray(dtype, 1)

    @oc.kernel
    def add(x: array, total: array, n: int):
        for i in range(n):
            total[1] += x[i]

    @oc.kernel
    def subtract(x: array, total: array, n: int):
        for i in range(n):
            total[1] -= x[i]

    @oc.kernel
    def multiply(x: array, total: array, n: int):
        for i in range(n):
            oc.atomic_mul(total[1], x[i])

    @oc.kernel
    def least(x: array, total: array, n: int):
        for i in range(n):
            oc.atomic_min(total[1], x[i])

    @oc.kernel
    def greatest(x: array, total: array, n: int):
        for i in range(n):
            oc.atomic_max(total[1], x[i])

    @oc.kernel
    def bits_and(x: array, total: array, n: int):
        for i in range(n):
            total[1] &= x[i]

    @oc.kernel
    def bits_or(x: array, total: array, n: int):
        for i in range(n):
            total[1] |= x[i]

    @oc.kernel
    def bits_xor(x: array, total: array, n: int):
        for i in range(n):
            total[1] ^= x[i]

    return locals()[update]


def results(arch, dtype, numpy_dtype, update, cases, fast_math=False):
    """What each case leaves in the cell and its neighbours."""
    oc.init(arch=arch, fast_math=fast_math, log_level="error")
    kernel = make(dtype, update)
    found = []
    for cell, contributions, neighbour in cases:
        x = np.array(contributions, numpy_dtype)
        total = np.array([neighbour, cell, neighbour], numpy_dtype)
        kernel(x, total, len(contributions))
        found.append(total)
    return np.array(found)


@pytest.mark.parametrize("dtype", REALS, ids=str)
@pytest.mark.parametrize("update", ["add", "subtract", "multiply", "least", "greatest"])
def test_reals_are_reduced_as_the_interpreter_does(dtype, update):
    numpy_dtype, word = REALS[dtype]
    cases = [(cell, part, NAN) for cell, part in itertools.product(CELLS, [[], *CONTRIBUTIONS])]
    device = oc.cfg.arch
    code = results(device, dtype, numpy_dtype, update, cases)
    meant = results(oc.reference, dtype, numpy_dtype, update, cases)
    for case, one, other in zip(cases, code, meant, strict=True):
        np.testing.assert_array_equal(np.isnan(one), np.isnan(other), err_msg=str(case))
        number = ~np.isnan(one)
        np.testing.assert_array_equal(one.view(word)[number], other.view(word)[number], err_msg=str(case))


def test_a_sum_with_a_positive_zero_is_one():
    for arch in (oc.cfg.arch, oc.reference):
        cases = [(-0.0, [0.0], 1.0), (-0.0, [-0.0], 1.0), (-0.0, [], 1.0)]
        found = results(arch, oc.f32, np.float32, "add", cases)[:, 1]
        assert np.signbit(found).tolist() == [False, True, True]


def test_a_number_replaces_a_nan():
    for arch in (oc.cfg.arch, oc.reference):
        cases = [(NAN, [INF], NAN), (NAN, [NAN, 2.0], NAN), (NAN, [NAN], NAN)]
        np.testing.assert_array_equal(results(arch, oc.f32, np.float32, "least", cases)[:, 1], [INF, 2.0, NAN])


def test_a_nan_among_numbers_loses_with_fast_math_too():
    x = [3.0, NAN, 5.0, 4.0, NAN]
    for update, expected in [("least", 3.0), ("greatest", 5.0)]:
        found = results(oc.cfg.arch, oc.f32, np.float32, update, [(4.0, x, NAN), (4.0, [NAN], NAN)], fast_math=True)
        assert found[:, 1].tolist() == [expected, 4.0]


@pytest.mark.parametrize("dtype", INTEGERS, ids=str)
@pytest.mark.parametrize(
    "update", ["add", "subtract", "multiply", "least", "greatest", "bits_and", "bits_or", "bits_xor"]
)
def test_integers_are_reduced_as_the_interpreter_does(dtype, update):
    numpy_dtype = INTEGERS[dtype]
    limits = np.iinfo(numpy_dtype)
    edges = [limits.min, limits.max, 0, 1, limits.max - 1]
    cases = [(cell, list(part), 7) for cell in edges for part in [(), *itertools.product(edges, edges[:3])]]
    code = results(oc.cfg.arch, dtype, numpy_dtype, update, cases)
    np.testing.assert_array_equal(code, results(oc.reference, dtype, numpy_dtype, update, cases))
