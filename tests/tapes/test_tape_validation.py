"""Iterations of a parallel loop that meet at an element that gradients flow through, at indices that only a run knows: `validation=True` finds them."""

import numpy as np
import pytest
from gradient_values import INTS, SCALAR, VEC, X, integers, made

import octants as oc

RING, BACKWARD, SAME, TWICE = [1, 2, 3, 0], [3, 2, 1, 0], [0, 1, 2, 3], [0, 0, 1, 2]


@pytest.fixture
def debug(arch):
    oc.init(arch=getattr(oc, arch), debug=True, log_level="error")


@oc.kernel
def take(x: VEC, where: INTS, loss: SCALAR):
    for i in x:
        loss[None] += x[where[i]]
        x[i] = 0.0


@oc.kernel
def put(x: VEC, y: VEC, where: INTS):
    for i in x:
        y[where[i]] = 2.0 * x[i]


@oc.kernel
def double_listed(x: VEC, where: INTS):
    for i in x:
        x[where[i]] = x[where[i]] * 2.0


@oc.kernel
def add_up(x: VEC, where: INTS, loss: SCALAR):
    for i in x:
        loss[None] += x[where[i]] * x[i]


@oc.kernel
def take_in_order(x: VEC, where: INTS, loss: SCALAR):
    oc.loop_config(serialize=True)
    for i in range(4):
        loss[None] += x[where[i]]
        x[i] = 0.0


def validated(loss, run):
    with oc.ad.Tape(loss, validation=True):
        run()


def test_what_one_iteration_reads_and_another_overwrites(debug):
    x, loss = made(X), made(0.0)
    text = r"\[OC1106\].*iteration \d reads an element of `x` here that iteration \d of the same parallel loop writes"
    with pytest.raises(oc.OctantsAssertionError, match=text) as told:
        validated(loss, lambda: take(x, integers(RING), loss))
    assert "x[where[i]]" in str(told.value)
    assert "x[i] = 0.0" in str(told.value)
    # Nothing ran.
    np.testing.assert_array_equal(x.to_numpy(), X)
    validated(loss, lambda: take(x, integers(SAME), loss))
    np.testing.assert_array_equal(x.grad.to_numpy(), 1.0)


def test_what_two_iterations_assign_to(debug):
    x, y, loss = made(X), made(np.zeros(4)), made(0.0)
    with pytest.raises(
        oc.OctantsAssertionError, match=r"\[OC1106\].*iterations 0 and 1 .* assign to one element of `y`"
    ):
        validated(loss, lambda: put(x, y, integers(TWICE)))
    validated(loss, lambda: put(x, y, integers(BACKWARD)))
    np.testing.assert_array_equal(y.to_numpy(), 2 * np.array(X)[::-1])


def test_elements_by_a_list(debug):
    x, loss = made(X), made(0.0)
    with pytest.raises(oc.OctantsAssertionError, match=r"\[OC1106\]"):
        validated(loss, lambda: double_listed(x, integers(TWICE)))

    def run():
        double_listed(x, integers(BACKWARD))
        add_up(x, integers(SAME), loss)

    validated(loss, run)
    np.testing.assert_allclose(x.grad.to_numpy(), 8 * np.array(X))


def test_what_is_read_alone_or_in_order_meets_nobody(debug):
    x, loss = made(X), made(0.0)
    validated(loss, lambda: add_up(x, integers(TWICE), loss))
    validated(loss, lambda: take_in_order(x, integers(RING), loss))
    # The last one reads what the first has overwritten.
    np.testing.assert_array_equal(x.grad.to_numpy(), [0.0, 1.0, 1.0, 1.0])


def test_fields_of_vectors_in_functions(debug):
    v = oc.Vector.field(2, oc.f64, shape=4, needs_grad=True)
    where, loss = oc.field(oc.i32, shape=4), oc.field(oc.f64, shape=(), needs_grad=True)

    @oc.func
    def move(i):
        v[i] = 0.5 * v[where[i]]

    @oc.kernel
    def step():
        for i in v:
            move(i)

    @oc.kernel
    def total():
        for i in v:
            loss[None] += v[i].sum()

    def run():
        step()
        total()

    where.from_numpy(np.array(RING, dtype=np.int32))
    with pytest.raises(oc.OctantsAssertionError, match=r"\[OC1106\](.|\n)*`v`(.|\n)*move\(i\)"):
        validated(loss, run)
    where.from_numpy(np.array(SAME, dtype=np.int32))
    validated(loss, run)
    np.testing.assert_array_equal(v.grad.to_numpy(), 0.5)


def test_without_validation_nothing_is_looked_for(arch):
    x, loss = made(X), made(0.0)
    with oc.ad.Tape(loss):
        take(x, integers(SAME), loss)
    np.testing.assert_array_equal(x.grad.to_numpy(), 1.0)


def test_sparse_fields_are_said_not_to_be_looked_at(debug):
    x, loss = oc.field(oc.f64, needs_grad=True), made(0.0)
    oc.root.pointer(oc.i, 4).place(x, x.grad)

    @oc.kernel
    def add_all(loss: SCALAR):
        for i in x:
            loss[None] += x[i] * x[i]

    for i in range(4):
        x[i] = i
    with pytest.warns(UserWarning, match="validation=True does not find .* sparse field: `add_all` has some") as told:
        validated(loss, lambda: [add_all(loss), add_all(loss)])
    assert len(told) == 1
    np.testing.assert_array_equal(x.grad.to_numpy(), 4.0 * np.arange(4))


@oc.kernel
def halve(x: VEC):
    for i in x:
        x[i] = 0.5 * x[i] * x[i]


def test_what_a_kernel_has_overwritten_is_told_as_such(debug):
    """And not as a write of another library."""
    x, loss = made(X), made(0.0)

    def run():
        halve(x)
        add_up(x, integers(SAME), loss)
        halve(x)

    with pytest.raises(oc.OctantsRuntimeError, match=r"OC1105.*the kernel `halve`"):
        validated(loss, run)
