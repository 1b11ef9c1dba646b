"""Elements that a serial loop writes again and again: kept in registers while it runs, and nothing else is to be seen of that."""

import numpy as np
import pytest

import octants as oc

#: More than any vector has lanes, and not a multiple of their number.
COUNT = 83


def numbers(*shape):
    return np.random.default_rng(5).random(shape, dtype=np.float32)


def test_sums_under_a_condition(arch):
    place, force = oc.Vector.field(2, oc.f32, COUNT), oc.Vector.field(2, oc.f32, COUNT)
    given = numbers(COUNT, 2)
    place.from_numpy(given)

    @oc.kernel
    def attract():
        for i in force:
            p = place[i]
            for j in range(COUNT):
                if i != j:
                    force[i] += place[j] - p

    attract()
    attract()
    expected = 2 * (given[None] - given[:, None]).sum(axis=1)
    np.testing.assert_allclose(force.to_numpy(), expected, rtol=1e-4, atol=1e-4)


def test_only_who_writes_an_element_touches_it(arch):
    """Neighbouring iterations name one element, and one of them writes it."""
    slots = 4
    at, writes = np.arange(COUNT) % slots, np.arange(COUNT) // slots == np.arange(COUNT) % slots

    @oc.kernel
    def mark(at: oc.types.NDArray, writes: oc.types.NDArray, x: oc.types.NDArray):
        for i in range(at.shape[0]):
            k = at[i]
            for n in range(3):
                if writes[i] > n:
                    x[k] = x[k] + 1.0 + i

    x = np.zeros(slots, np.float32)
    mark(at.astype(np.int32), 2 * writes.astype(np.int32), x)
    expected = np.zeros(slots)
    np.add.at(expected, at[writes], 2 * (1 + np.flatnonzero(writes)))
    np.testing.assert_array_equal(x, expected)


@pytest.mark.parametrize("nowhere", [-1, 2**30, -(2**31)])
def test_an_index_that_is_nowhere_is_not_looked_at(arch, nowhere):
    """The loop does not come to the element of some iterations: it need not be there."""
    at = np.arange(COUNT, dtype=np.int32)
    at[::3] = nowhere

    @oc.kernel
    def add(at: oc.types.NDArray, x: oc.types.NDArray, n: oc.i32):
        for i in range(at.shape[0]):
            k = at[i]
            for j in range(n):
                if k != nowhere and j % 2 == 0:
                    x[k] = x[k] + j

    x = np.zeros(COUNT, np.float32)
    add(at, x, 7)
    np.testing.assert_array_equal(x, np.where(np.arange(COUNT) % 3 == 0, 0, 12))


def test_a_loop_that_does_not_run_touches_nothing(arch):
    @oc.kernel
    def add(at: oc.types.NDArray, x: oc.types.NDArray, n: oc.i32):
        for i in range(at.shape[0]):
            k = at[i]
            for j in range(n):
                x[k] = x[k] + j

    x = np.ones(2, np.float32)
    add(np.full(COUNT, 2**30, np.int32), x, 0)
    np.testing.assert_array_equal(x, 1)


def test_an_element_that_may_be_the_same_one_is_read_where_it_lies(arch):
    """`x[k]` of a loaded index is `x[i]` now and then."""
    given = numbers(COUNT)

    @oc.kernel
    def chase(at: oc.types.NDArray, x: oc.types.NDArray, n: oc.i32):
        oc.loop_config(serialize=True)
        for i in range(x.shape[0]):
            for j in range(n):
                x[i] = x[i] + 0.5 * x[at[j]]

    at = np.array([0, 3, 82, 3], np.int32)
    x, expected = given.copy(), given.astype(np.float64)
    chase(at, x, len(at))
    for i in range(COUNT):
        for k in at:
            expected[i] += 0.5 * expected[k]
    np.testing.assert_allclose(x, expected, rtol=1e-4)


def test_neighbours_and_entries_are_elements_of_their_own(arch):
    @oc.kernel
    def step(x: oc.types.NDArray, n: oc.i32):
        for i in range(1):
            for j in range(n):
                x[i, 0] = x[i, 0] + x[i, 1]
                x[i, 1] = x[i, 1] + x[i + 1, 1]
                if j == 2:
                    x[i + 1, 1] = 7.0

    x = np.array([[1, 2], [3, 4]], np.float32)
    step(x, 5)
    a, b, c = 1, 2, 4
    for j in range(5):
        a, b = a + b, b + c
        c = 7 if j == 2 else c
    np.testing.assert_array_equal(x, [[a, b], [3, c]])


def test_a_while_that_ends_by_what_it_writes(arch):
    x = oc.field(oc.f32, COUNT)
    given = 100 * numbers(COUNT)
    x.from_numpy(given)
    calls = oc.field(oc.i32, COUNT)

    @oc.kernel
    def halve():
        for i in x:
            while x[i] > 1.0:
                x[i] *= 0.5
                calls[i] += 1
                if calls[i] == 5:
                    break

    halve()
    expected, count = given.copy(), np.zeros(COUNT, np.int32)
    for i in range(COUNT):
        while expected[i] > 1 and count[i] < 5:
            expected[i] *= np.float32(0.5)
            count[i] += 1
    np.testing.assert_array_equal(x.to_numpy(), expected)
    np.testing.assert_array_equal(calls.to_numpy(), count)


def test_fields_with_offsets_and_nested_nodes(arch):
    x, y = oc.field(oc.i32), oc.field(oc.i32)
    oc.root.dense(oc.i, 8).dense(oc.i, 4).place(x, offset=-5)
    oc.root.pointer(oc.i, 8).dense(oc.i, 4).place(y)

    @oc.kernel
    def count(first: oc.i32, last: oc.i32):
        for i in range(first, last):
            for j in range(6):
                if i % 2 == 0 and -5 <= i < 27 and j != 3:
                    x[i] += j
                if i % 8 == 4 and 0 <= i < 32 and j < 3:
                    y[i] += 1

    count(-40, 60)
    assert [x[i] for i in range(-5, 27)] == [12 if i % 2 == 0 else 0 for i in range(-5, 27)]
    assert [y[i] for i in range(32)] == [3 if i % 8 == 4 else 0 for i in range(32)]
