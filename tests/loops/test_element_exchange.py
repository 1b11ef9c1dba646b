"""Loops that load and store whole vectors and matrices at their own index. On a GPU the lanes of a warp do it together, where a body is long or
elements are wide."""

import numpy as np
import pytest

import octants as oc

LENGTHS = [0, 1, 31, 32, 33, 1000]
ELEMENTS = {
    "vec3": oc.types.vector(3, oc.f32),
    "vec5": oc.types.vector(5, oc.i32),
    "mat3": oc.types.matrix(3, 3, oc.f32),
    "mat2x3": oc.types.matrix(2, 3, oc.f32),
    "mat2x4": oc.types.matrix(2, 4, oc.f32),
    "mat3x4": oc.types.matrix(3, 4, oc.f32),
    "mat4": oc.types.matrix(4, 4, oc.f32),
}
SHAPES = {
    "vec3": (3,),
    "vec5": (5,),
    "mat3": (3, 3),
    "mat2x3": (2, 3),
    "mat2x4": (2, 4),
    "mat3x4": (3, 4),
    "mat4": (4, 4),
}


@pytest.fixture(params=ELEMENTS)
def element(request):
    return request.param


def filled(element, length, first=0):
    """An array, and what it holds."""
    array = oc.ndarray(ELEMENTS[element], max(length, 1))
    shape = (max(length, 1), *SHAPES[element])
    values = (np.arange(np.prod(shape)).reshape(shape) + first).astype(np.int32 if element == "vec5" else np.float32)
    array.from_numpy(values)
    return array, values


def kernel_of(element):
    arrays = oc.types.ndarray(dtype=ELEMENTS[element], ndim=1)

    @oc.kernel
    def step(x: arrays, y: arrays, lo: oc.i32, hi: oc.i32, rounds: oc.i32):
        for i in range(lo, hi):
            v = x[i]
            for _ in range(rounds):
                v = v * 2
            y[i] = v + 1

    return step


@pytest.mark.parametrize("length", LENGTHS)
def test_elements_reach_their_places(element, length):
    (x, before), (y, untouched) = filled(element, length), filled(element, length, 7000)
    kernel_of(element)(x, y, 0, length, 3)
    np.testing.assert_array_equal(y.to_numpy()[:length], before[:length] * 8 + 1)
    np.testing.assert_array_equal(y.to_numpy()[length:], untouched[length:])
    np.testing.assert_array_equal(x.to_numpy(), before)


def test_short_bodies(element):
    arrays = oc.types.ndarray(dtype=ELEMENTS[element], ndim=1)

    @oc.kernel
    def step(x: arrays, y: arrays, z: arrays, n: oc.i32):
        for i in range(n):
            v = x[i]
            y[i] = v
            z[i] = v * 2 + 1

    (x, before), (y, untouched), (z, _) = (filled(element, 1000, first) for first in (0, 7000, 9000))
    step(x, y, z, 997)
    np.testing.assert_array_equal(y.to_numpy()[:997], before[:997])
    np.testing.assert_array_equal(y.to_numpy()[997:], untouched[997:])
    np.testing.assert_array_equal(z.to_numpy()[:997], before[:997] * 2 + 1)


@pytest.mark.no_device
def test_wide_elements_of_a_short_body_are_exchanged(element):
    arrays = oc.types.ndarray(dtype=ELEMENTS[element], ndim=1)

    @oc.kernel
    def copy(x: arrays, y: arrays):
        for i in x:
            y[i] = x[i]

    (x, _), (y, _) = filled(element, 10), filled(element, 10)
    copy(x, y)
    assert "octants_$_exchange" in copy.dump("ptx", capability=90)


@pytest.mark.parametrize("lo, hi", [(1, 2), (5, 37), (31, 33), (32, 64), (33, 999), (127, 130), (990, 1000)])
def test_elements_outside_the_range_stay(element, lo, hi):
    (x, before), (y, expected) = filled(element, 1000), filled(element, 1000, 7000)
    kernel_of(element)(x, y, lo, hi, 2)
    expected[lo:hi] = before[lo:hi] * 4 + 1
    np.testing.assert_array_equal(y.to_numpy(), expected)


@pytest.mark.parametrize("length", LENGTHS)
def test_elements_are_replaced_in_place(element, length):
    x, before = filled(element, length)
    kernel_of(element)(x, x, 0, length, 1)
    np.testing.assert_array_equal(x.to_numpy()[:length], before[:length] * 2 + 1)


def test_later_stores_of_an_element_win():
    arrays = oc.types.ndarray(dtype=ELEMENTS["mat3"], ndim=1)

    @oc.kernel
    def twice(x: arrays, y: arrays, z: arrays, rounds: oc.i32):
        for i in range(x.shape[0]):
            v = x[i]
            for _ in range(rounds):
                v = v + v
            y[i] = v
            z[i] = v * 3

    (x, before), (y, _) = filled("mat3", 100), filled("mat3", 100)
    twice(x, y, y, 2)
    np.testing.assert_array_equal(y.to_numpy(), before * 12)


def test_points_that_run_for_different_times_and_skip_work():
    arrays = oc.types.ndarray(dtype=ELEMENTS["vec3"], ndim=1)

    @oc.kernel
    def climb(x: arrays, y: arrays):
        for i in range(x.shape[0]):
            v = x[i]
            n = 0
            while n < i % 7:
                v += 1.0
                n += 1
            if i % 3 == 0:
                v = -v
            y[i] = v

    (x, before), (y, _) = filled("vec3", 333), filled("vec3", 333)
    climb(x, y)
    i = np.arange(333)[:, None]
    np.testing.assert_array_equal(y.to_numpy(), np.where(i % 3 == 0, -1, 1) * (before + i % 7))


def test_sums_beside_exchanged_elements():
    arrays = oc.types.ndarray(dtype=ELEMENTS["vec3"], ndim=1)

    @oc.kernel
    def total(x: arrays, y: arrays, rounds: oc.i32) -> oc.i32:
        found = 0
        for i in range(1, x.shape[0]):
            v = x[i]
            for _ in range(rounds):
                v = v * 2
            found += oc.cast(v[0], oc.i32)
            y[i] = v
        return found

    (x, before), (y, expected) = filled("vec3", 500), filled("vec3", 500, 9)
    assert total(x, y, 1) == int(before[1:, 0].sum()) * 2
    expected[1:] = before[1:] * 2
    np.testing.assert_array_equal(y.to_numpy(), expected)


def test_fields_of_elements():
    x, y = oc.Matrix.field(3, 3, oc.f32), oc.Matrix.field(3, 3, oc.f32)
    oc.root.dense(oc.i, 70).place(x)
    oc.root.dense(oc.i, 70).place(y)
    values = np.arange(70 * 9, dtype=np.float32).reshape(70, 3, 3)
    x.from_numpy(values)

    @oc.kernel
    def step(rounds: oc.i32):
        for i in range(3, 69):
            v = x[i]
            for _ in range(rounds):
                v = v * 2
            y[i] = v

    step(2)
    expected = np.zeros_like(values)
    expected[3:69] = values[3:69] * 4
    np.testing.assert_array_equal(y.to_numpy(), expected)
