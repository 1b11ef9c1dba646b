"""Updates inside rows of a sparse matrix: no atomics where rows are disjoint, right values where they are not."""

import numpy as np
import pytest

import octants as oc

reals = oc.types.ndarray(dtype=oc.f64, ndim=1)
ints = oc.types.ndarray(dtype=oc.i32, ndim=1)

ASCENDING = np.concatenate([[0], np.cumsum(np.random.default_rng(1).integers(0, 9, 4000))]).astype(np.int32)
#: Every second row begins where its neighbour does and is as long: two iterations add to each element.
TWICE = np.array([0, 4000] * 500 + [0], dtype=np.int32)
ROWS = {
    "ascending": ASCENDING,
    "one": np.array([2, 9], dtype=np.int32),
    "none": np.array([3], dtype=np.int32),
    "overlapping": TWICE,
}


def reference(first, count):
    times = np.zeros(count)
    for lo, hi in zip(first[:-1], first[1:], strict=True):
        times[lo:hi] += 1
    return times


@pytest.mark.parametrize("rows", ROWS)
def test_rows_are_added_to_by_each_of_their_iterations(rows):
    @oc.kernel
    def count(first: ints, times: ints, backwards: ints):
        for i in range(first.shape[0] - 1):
            for k in range(first[i], first[i + 1]):
                times[k] += 1
                backwards[first[i] + first[i + 1] - 1 - k] -= 1

    first = ROWS[rows]
    length = max(int(first.max()), 1)
    times, backwards = np.zeros(length, np.int32), np.zeros(length, np.int32)
    for _ in range(3):
        count(first, times, backwards)
    np.testing.assert_array_equal(times, 3 * reference(first, length))
    np.testing.assert_array_equal(backwards, -times)


@pytest.mark.parametrize("rows", ROWS)
def test_gradients_of_sparse_rows(rows):
    @oc.kernel
    def multiply(x: reals, y: reals, first: ints, at: ints, w: reals):
        for i in range(y.shape[0]):
            total = oc.cast(0.0, oc.f64)
            for k in range(first[i], first[i + 1]):
                total += w[k] * x[at[k]]
            y[i] = total

    rng = np.random.default_rng(2)
    first = ROWS[rows]
    count, columns = max(int(first.max()), 1), 50
    at = rng.integers(0, columns, count).astype(np.int32)

    def array(values):
        made = oc.ndarray(oc.f64, values.shape, needs_grad=True)
        made.from_numpy(values)
        return made

    x, w, y = array(rng.random(columns)), array(rng.random(count)), array(np.zeros(max(len(first) - 1, 1)))
    adjoints = rng.random(y.shape)
    y.grad.from_numpy(adjoints)
    expected_w, expected_x = np.zeros(count), np.zeros(columns)
    x_values, w_values = x.to_numpy(), w.to_numpy()
    if len(first) == 1:
        first = np.array([3, 3], dtype=np.int32)
    for i, (lo, hi) in enumerate(zip(first[:-1], first[1:], strict=True)):
        if lo < hi:
            expected_w[lo:hi] += adjoints[i] * x_values[at[lo:hi]]
            np.add.at(expected_x, at[lo:hi], adjoints[i] * w_values[lo:hi])
    rows_of, columns_of = oc.ndarray(oc.i32, first.shape), oc.ndarray(oc.i32, at.shape)
    rows_of.from_numpy(first)
    columns_of.from_numpy(at)
    multiply(x, y, rows_of, columns_of, w)
    multiply.grad(x, y, rows_of, columns_of, w)
    np.testing.assert_allclose(w.grad.to_numpy(), expected_w, rtol=1e-11)
    np.testing.assert_allclose(x.grad.to_numpy(), expected_x, rtol=1e-11)


def test_rows_that_the_loop_itself_moves_are_not_looked_at_ahead():
    @oc.kernel
    def move(first: ints, times: ints):
        oc.loop_config(serialize=True)
        for i in range(first.shape[0] - 1):
            for k in range(first[i], first[i + 1]):
                times[k] += 1
            first[i + 1] = 0

    first, times = np.array([0, 2, 4, 4], np.int32), np.zeros(4, np.int32)
    move(first, times)
    np.testing.assert_array_equal(times, [3, 3, 2, 2])
