"""Updates of neighbours: each element collects what iterations near it add. Values at and near the ends, for loops of every length."""

import numpy as np
import pytest

import octants as oc

one = oc.types.ndarray(dtype=oc.f64, ndim=1)
two = oc.types.ndarray(dtype=oc.f64, ndim=2)


def arrays(shape, seed):
    """An array of random numbers with gradients, its values, and random adjoints of a result of the same shape."""
    rng = np.random.default_rng(seed)
    values, adjoints = rng.random(shape), rng.random(shape)
    x, y = oc.ndarray(oc.f64, shape, needs_grad=True), oc.ndarray(oc.f64, shape, needs_grad=True)
    x.from_numpy(values)
    y.from_numpy(np.zeros(shape))
    y.grad.from_numpy(adjoints)
    x.grad.from_numpy(np.ones(shape))
    return x, y, values, adjoints


@pytest.mark.parametrize("n", [1, 2, 3, 4, 5, 6, 7, 8, 33])
def test_gradients_of_neighbours_along_one_axis(n):
    @oc.kernel
    def product(x: one, y: one):
        for i in range(2, x.shape[0] - 1):
            y[i] = x[i - 2] * x[i] + oc.sin(x[i + 1])

    x, y, values, adjoints = arrays((n,), n)
    expected, left = np.ones(n), adjoints.copy()
    for i in range(2, n - 1):
        expected[i - 2] += adjoints[i] * values[i]
        expected[i] += adjoints[i] * values[i - 2]
        expected[i + 1] += adjoints[i] * np.cos(values[i + 1])
        left[i] = 0.0
    product.grad(x, y)
    np.testing.assert_allclose(x.grad.to_numpy(), expected, rtol=1e-13)
    np.testing.assert_array_equal(y.grad.to_numpy(), left)


@pytest.mark.parametrize("shape", [(1, 1), (2, 5), (3, 3), (3, 40), (4, 4), (5, 3), (6, 7), (40, 5)])
def test_gradients_of_neighbours_along_two_axes(shape):
    @oc.kernel
    def stencil(x: two, y: two):
        for i, j in oc.ndrange((1, x.shape[0] - 1), (1, x.shape[1] - 1)):
            y[i, j] = x[i, j] * (x[i - 1, j] + x[i + 1, j + 1] + x[i, j - 1])

    x, y, values, adjoints = arrays(shape, 7)
    expected = np.ones(shape)
    for i in range(1, shape[0] - 1):
        for j in range(1, shape[1] - 1):
            near = [(i - 1, j), (i + 1, j + 1), (i, j - 1)]
            expected[i, j] += adjoints[i, j] * sum(values[place] for place in near)
            for place in near:
                expected[place] += adjoints[i, j] * values[i, j]
    stencil.grad(x, y)
    np.testing.assert_allclose(x.grad.to_numpy(), expected, rtol=1e-13)


@pytest.mark.parametrize("n", [1, 2, 3, 4, 9, 50])
def test_conditions_hold_for_whoever_collects(n):
    """Without the condition the first and the last iteration would add outside the array."""

    @oc.kernel
    def scatter(x: one, to: one):
        for i in range(x.shape[0]):
            if i > 0 and x[i] > 0.3:
                to[i - 1] += x[i]
            if i < x.shape[0] - 1:
                to[i + 1] -= 2.0 * x[i]
            to[i] += 1.0

    rng = np.random.default_rng(n)
    values = rng.random(n)
    guarded = oc.ndarray(oc.f64, (n,))
    x = oc.ndarray(oc.f64, (n,))
    x.from_numpy(values)
    guarded.fill(0.5)
    expected = np.full(n, 1.5)
    for i in range(n):
        if i > 0 and values[i] > 0.3:
            expected[i - 1] += values[i]
        if i < n - 1:
            expected[i + 1] -= 2.0 * values[i]
    scatter(x, guarded)
    np.testing.assert_allclose(guarded.to_numpy(), expected, rtol=1e-13)


def test_a_loop_that_ends_before_it_begins_adds_nothing():
    @oc.kernel
    def scatter(x: one, to: one, n: int):
        for i in range(4, n):
            to[i - 1] += x[i]
            to[i + 1] += x[i]

    x, to = np.ones(32), np.zeros(32)
    for n in (-(2**31), -5, 0, 3, 4):
        scatter(x, to, n)
        np.testing.assert_array_equal(to, 0.0)
    scatter(x, to, 5)
    assert to[3] == to[5] == 1.0 and to.sum() == 2.0


def test_neighbours_of_fields_and_of_components():
    v = oc.Vector.field(2, oc.f64, 12, needs_grad=True)
    w = oc.Vector.field(2, oc.f64, 12, needs_grad=True)

    @oc.kernel
    def turn():
        for i in range(1, 11):
            w[i] = v[i - 1] * v[i + 1][1]

    rng = np.random.default_rng(3)
    values, adjoints = rng.random((12, 2)), rng.random((12, 2))
    v.from_numpy(values)
    w.grad.from_numpy(adjoints)
    expected = np.zeros((12, 2))
    for i in range(1, 11):
        expected[i - 1] += adjoints[i] * values[i + 1, 1]
        expected[i + 1, 1] += adjoints[i] @ values[i - 1]
    turn.grad()
    np.testing.assert_allclose(v.grad.to_numpy(), expected, rtol=1e-13)


@pytest.mark.parametrize("n", [1, 3, 16, 37])
def test_sums_of_inner_loops_reach_their_elements(n):
    """All lanes add to one element in the inner loop, and each to its own once behind it."""

    @oc.kernel
    def pairs(x: one, y: one):
        for i in range(x.shape[0]):
            force = oc.cast(0.0, oc.f64)
            for j in range(x.shape[0]):
                if j != i:
                    force += oc.sin(x[j]) * x[i]
            y[i] = force

    x, y, values, adjoints = arrays((n,), n)
    expected = np.ones(n)
    for i in range(n):
        for j in range(n):
            if j != i:
                expected[j] += adjoints[i] * np.cos(values[j]) * values[i]
                expected[i] += adjoints[i] * np.sin(values[j])
    pairs.grad(x, y)
    np.testing.assert_allclose(x.grad.to_numpy(), expected, rtol=1e-12)


def test_a_loop_that_does_not_run_touches_no_element():
    """The index of a row without entries lies outside the array."""

    @oc.kernel
    def rows(to: one, at: oc.types.ndarray(dtype=oc.i32, ndim=1), count: oc.types.ndarray(dtype=oc.i32, ndim=1)):
        for i in range(at.shape[0]):
            for k in range(count[i]):
                to[at[i]] += 0.25 * k

    at = np.array([3, -(2**30), 3, 5, 2**30], np.int32)
    count = np.array([4, 0, 2, 3, -7], np.int32)
    to = np.zeros(8)
    rows(to, at, count)
    assert to[3] == 0.25 * 7 and to[5] == 0.25 * 3 and to.sum() == 2.5
