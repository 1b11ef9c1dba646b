"""Assignments in parallel loops that the compiler folds: to a constant, or to another op. They stay the reductions that they are."""

import warnings

import numpy as np
import pytest

import octants as oc

array = oc.types.ndarray(dtype=oc.i32, ndim=1)


@pytest.fixture(autouse=True)
def quiet():
    """No warning may be given, but where a test asks for it."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield


def numbers():
    return np.random.default_rng(5).integers(1, 1000, 500).astype(np.int32)


def test_an_update_that_folds_to_a_constant_is_no_race_beside_updates_that_it_absorbs(arch):
    @oc.kernel
    def folded(x: array, zero: oc.template(), n: int) -> oc.types.vector(4, oc.i32):
        a = 5
        b = 5
        c = 5
        d = 5
        for i in range(n):
            a = a & x[i]
            b = b * x[i]
            c = x[i] | c
            d = oc.min(d, x[i])
            if x[i] > 500:
                a = a & zero
                b = zero * b
                c = c | (zero - 1)
                d = oc.min(d, zero - 2147483648)
        return oc.Vector([a, b, c, d])

    assert folded(numbers(), 0, 500).to_numpy().tolist() == [0, 0, -1, -(2**31)]


def test_an_update_that_folds_is_no_race_where_another_element_may_be_the_same(arch):
    @oc.kernel
    def folded(x: array, s: array, k: int, n: int):
        for i in range(n):
            s[k] = s[k] * 0
            s[0] = x[i] * s[0]

    s = np.array([3, 4], dtype=np.int32)
    folded(numbers(), s, 0, 500)
    assert s.tolist() == [0, 4]


def test_one_component_that_folds_is_no_race(arch):
    @oc.kernel
    def folded(x: array, n: int) -> oc.types.vector(2, oc.i32):
        v = oc.Vector([7, 7])
        for i in range(n):
            v = v & oc.Vector([x[i] | 1, x[i] | 2])
            if x[i] > 500:
                v = v & oc.Vector([0, x[i] | 2])
        return v

    x = numbers()
    assert folded(x, len(x)).to_numpy().tolist() == [0, 7 & int(np.bitwise_and.reduce(x | 2))]


def test_a_real_product_with_zero_is_no_race_with_fast_math():
    oc.init(arch=oc.cpu, log_level="error", fast_math=True)

    @oc.kernel
    def folded(x: array, n: int) -> oc.f32:
        s = 2.0
        for i in range(n):
            s = s * x[i]
            if x[i] > 500:
                s = s * 0.0
        return s

    assert folded(numbers(), 500) == 0.0


def test_complements_and_negations_are_updates(arch):
    @oc.kernel
    def flips(x: array, n: int) -> oc.types.vector(5, oc.i32):
        a = 5
        b = oc.u8(5)
        c = 5
        d = True
        e = 3.0
        for i in range(n):
            if x[i] > 500:
                a = ~a
                b = b ^ oc.u8(255)
                c = -c
                d = not d
                e = e * -1.0
            a = a ^ x[i]
        return oc.Vector([a, oc.i32(b), c, oc.i32(d), oc.i32(e)])

    x = numbers()
    odd = bool((x > 500).sum() % 2)
    every = int(np.bitwise_xor.reduce(x)) ^ 5
    expected = [~every, 250, -5, 0, -3] if odd else [every, 5, 5, 1, 3]
    assert flips(x, len(x)).to_numpy().tolist() == expected


def test_a_constant_that_does_not_absorb_the_other_updates_is_a_race():
    @oc.kernel
    def race(x: array, s: array, n: int):
        for i in range(n):
            oc.atomic_add(s[0], x[i])
            s[0] = 0

    with pytest.warns(UserWarning, match="OC1007"):
        race(numbers(), np.zeros(1, dtype=np.int32), 500)


def test_an_extreme_that_the_types_decide_is_no_race(arch):
    @oc.kernel
    def folded(x: oc.types.ndarray(dtype=oc.u32, ndim=1)) -> oc.u32:
        least = x[0]
        for i in range(x.shape[0]):
            oc.atomic_min(least, oc.u32(i) + 3)
            least = min(x[i], oc.u32(0)) if min(x[i], oc.u32(0)) <= least else least
        return least

    assert folded(np.full(100, 9, np.uint32)) == 0
