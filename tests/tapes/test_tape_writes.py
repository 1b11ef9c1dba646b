"""Writes between the calls of a tape and its way back: what the derivative needs is refused with both names, all else is right."""

import dataclasses
import threading

import numpy as np
import pytest
from gradient_values import SCALAR, VEC, made, square

import octants as oc

ROWS = oc.types.ndarray(dtype=oc.f64, ndim=2)
X = [1.0, 2.0]


@oc.kernel
def double(x: VEC, y: VEC):
    for i in x:
        y[i] = 2.0 * x[i]


@oc.kernel
def overwrite(x: VEC):
    for i in x:
        x[i] = 5.0


HOST_WRITES = {
    "fill": lambda x: x.fill(3.0),
    "from_numpy": lambda x: x.from_numpy(np.ones(2)),
    "__setitem__": lambda x: x.__setitem__(1, 4.0),
    "copy_from": lambda x: x.copy_from(made([7.0, 8.0])),
}


@pytest.mark.parametrize("name", HOST_WRITES)
def test_host_writes_of_needed_values_are_refused(arch, name):
    x, loss = made(X), made(0.0)
    by = "the kernel `copy_arrays`" if name == "copy_from" else f"`{name}`"
    text = rf"\[OC1105\].*the gradients of `square`, called at .*py:\d+, need what it saw of `x`, and {by} at .*test_tape_writes.py:\d+ has written"
    with pytest.raises(oc.OctantsRuntimeError, match=text), oc.ad.Tape(loss):
        square(x, loss)
        HOST_WRITES[name](x)
    with oc.ad.Tape(loss):
        HOST_WRITES[name](x)
        square(x, loss)
    # A copy hands gradients on to its source.
    expected = 0 * x.to_numpy() if name == "copy_from" else 2 * x.to_numpy()
    np.testing.assert_array_equal(x.grad.to_numpy(), expected)


def test_host_writes_of_fields_are_refused(arch):
    x = oc.field(oc.f64, 3, needs_grad=True)
    v = oc.Vector.field(2, oc.f64, 3, needs_grad=True)
    loss = oc.field(oc.f64, (), needs_grad=True)

    @oc.kernel
    def f(row: oc.i32):
        loss[None] += x[row] * x[row] * v[row][0] * v[row][1]

    def other(one):
        one[2] = 1.0

    for wrong in (
        lambda: x.fill(1.0),
        lambda: x.from_numpy(np.ones(3)),
        lambda: other(x),
        lambda: v.__setitem__(2, [1.0, 2.0]),
        lambda: v[2].__setitem__(0, 2.0),
        lambda: v.get_scalar_field(1).fill(2.0),
    ):
        with pytest.raises(oc.OctantsRuntimeError, match=r"\[OC1105\]"), oc.ad.Tape(loss):
            f(2)
            wrong()
    x.fill(3.0)
    v.fill(1.0)
    # Other elements than those that were read.
    with oc.ad.Tape(loss):
        f(1)
        other(x)
        v[2] = [1.0, 2.0]
        f(2)
    assert x.grad.to_numpy().tolist() == [0.0, 6.0, 4.0]


def test_writes_of_other_kernels_are_refused(arch):
    x, y, loss = made(X), made([0.0, 0.0]), made(0.0)
    text = r"the gradients of `square`, called at .*py:\d+, need what it saw of `x`, and the kernel `overwrite` at .*py:\d+ has written"
    with pytest.raises(oc.OctantsRuntimeError, match=text), oc.ad.Tape(loss):
        square(x, loss)
        overwrite(x)
    with pytest.raises(oc.OctantsRuntimeError, match=text), oc.ad.Tape(loss):
        square(x, loss)
        oc.ad.no_grad(overwrite)(x)
    with pytest.raises(oc.OctantsRuntimeError, match=text), oc.ad.Tape(loss):
        square(x, loss)
        thread = threading.Thread(target=overwrite, args=(x,))
        thread.start()
        thread.join()
    x.from_numpy(np.array(X))
    # A linear kernel needs no values.
    with oc.ad.Tape(loss):
        double(x, y)
        square(y, loss)
        overwrite(x)
    np.testing.assert_array_equal(x.grad.to_numpy(), [8.0, 16.0])
    # The start has no influence.
    with oc.ad.Tape(loss):
        overwrite(x)
        double(x, y)
        square(y, loss)
    np.testing.assert_array_equal(x.grad.to_numpy(), [0.0, 0.0])


def test_views_and_members_are_the_arrays_that_they_are_of(arch):
    @dataclasses.dataclass
    class State:
        x: VEC

    @oc.kernel
    def of_view(x: oc.BufferView[oc.f64], loss: SCALAR):
        for i in range(x.shape[0]):
            loss[None] += x[i] * x[i]

    @oc.kernel
    def of_member(state: State, loss: SCALAR):
        for i in state.x:
            loss[None] += state.x[i] * state.x[i]

    x, loss = made([1.0, 2.0, 3.0, 4.0]), made(0.0)
    with pytest.raises(oc.OctantsRuntimeError, match=r"\[OC1105\]"), oc.ad.Tape(loss):
        of_view(x[1:3], loss)
        x[2] = 1.0
    with pytest.raises(oc.OctantsRuntimeError, match=r"\[OC1105\]"), oc.ad.Tape(loss):
        of_member(State(x), loss)
        x[2] = 1.0
    x.from_numpy(np.array([1.0, 2.0, 3.0, 4.0]))
    with oc.ad.Tape(loss):
        of_view(x[1:3], loss)
        x[0] = 9.0
        of_view(x[0:1], loss)
    assert x.grad.to_numpy().tolist() == [18.0, 4.0, 6.0, 0.0]


def test_steps_in_rows_and_columns_are_told_apart(arch):
    n, steps = 3, 6

    @oc.kernel
    def in_rows(x: ROWS, t: oc.i32):
        for i in range(x.shape[1]):
            x[t + 1, i] = x[t, i] * x[t, i] * 0.5 + x[t, (i + 1) % n]

    @oc.kernel
    def in_columns(x: ROWS, t: oc.i32):
        for i in range(x.shape[0]):
            x[i, t + 1] = x[i, t] * x[i, t] * 0.5 + x[(i + 1) % n, t]

    @oc.kernel
    def total(x: ROWS, loss: SCALAR, last: oc.template()):
        for index in oc.grouped(x):
            if index[oc.static(last)] == steps:
                loss[None] += x[index]

    start = np.array([0.3, 0.5, 0.2])
    found = []
    for kernel, shape, axis in ((in_rows, (steps + 1, n), 0), (in_columns, (n, steps + 1), 1)):
        x, loss = made(np.zeros(shape)), made(0.0)
        values = np.zeros(shape)
        first = [(slice(0, 1),), (slice(None), slice(0, 1))][axis]
        values[first] = start.reshape(values[first].shape)
        x.from_numpy(values)
        with oc.ad.Tape(loss):
            for t in range(steps):
                kernel(x, t)
            total(x, loss, axis)
        found.append(x.grad.to_numpy()[first].reshape(-1))
        assert np.abs(found[-1]).min() > 0.1
        with (
            pytest.raises(oc.OctantsRuntimeError, match=rf"\[OC1105\].*`{kernel.__name__}`, called at .*, need.*`x`"),
            oc.ad.Tape(loss),
        ):
            for t in range(steps):
                kernel(x, t)
            kernel(x, 2)
            total(x, loss, axis)
    np.testing.assert_allclose(found[1], found[0])


def test_bounds_that_change_are_refused(arch):
    n, x, loss = oc.ndarray(oc.i32, ()), made(X), made(0.0)

    @oc.kernel
    def f(x: VEC, loss: SCALAR, n: oc.types.ndarray(dtype=oc.i32, ndim=0)):
        for i in x:
            v = x[i]
            for _ in range(n[None]):
                v = v * v
            loss[None] += v

    n.fill(2)
    with pytest.raises(oc.OctantsRuntimeError, match=r"\[OC1105\].*`n`, and `fill` at"), oc.ad.Tape(loss):
        f(x, loss, n)
        n.fill(3)
    # By hand, memory is what it is now.
    loss.grad.fill(1.0)
    x.grad.fill(0.0)
    f.grad(x, loss, n)
    np.testing.assert_allclose(x.grad.to_numpy(), 8 * np.array(X) ** 7)


def test_a_tape_without_a_loss_watches_until_its_way_back(arch):
    x, loss = made(X), made(0.0)
    with oc.ad.Tape() as tape:
        square(x, loss)
    loss.grad.fill(1.0)
    overwrite(x)
    with pytest.raises(oc.OctantsRuntimeError, match=r"\[OC1105\].*the kernel `overwrite`"):
        tape.grad()


def test_gradients_of_what_the_host_overwrites_are_not_mixed(arch):
    x, y, loss = made(X), made([0.0, 0.0]), made(0.0)
    # `square` needs `y`; `double` needs no values, but hands on the gradients of what it wrote, not of what `fill` did.
    with (
        pytest.raises(
            oc.OctantsRuntimeError, match=r"the gradients of `double`, called at .*, need those of `y`, and `fill`"
        ),
        oc.ad.Tape(loss),
    ):
        double(x, y)
        y.fill(1.0)
        square(y, loss)


def test_validation_finds_writes_through_views(arch):
    if arch in ("cuda", "remote"):
        pytest.skip("the host has no views of a device's own memory")
    oc.init(arch=getattr(oc, arch), debug=True, log_level="error")
    x, loss = made(X), made(0.0)
    rows, total = oc.field(oc.f64, (2, 2), needs_grad=True), oc.field(oc.f64, (), needs_grad=True)

    @oc.kernel
    def f(row: oc.i32):
        for i in range(2):
            total[None] += rows[row, i] ** 2

    alias, row_alias = x.to_numpy(copy=False), rows.to_numpy(copy=False)
    with (
        pytest.raises(AssertionError, match="the gradients of `square` need what `x` held"),
        oc.ad.Tape(loss, validation=True),
    ):
        square(x, loss)
        alias[1] = 7.0
    with oc.ad.Tape(loss, validation=True):
        square(x, loss)
    assert x.grad.to_numpy().tolist() == [2.0, 14.0]
    rows.fill(1.0)
    with oc.ad.Tape(total, validation=True):
        f(0)
        row_alias[1, 0] = 3.0
        f(1)
    assert rows.grad.to_numpy().tolist() == [[2.0, 2.0], [6.0, 2.0]]
    with (
        pytest.raises(AssertionError, match="the gradients of `f` need what `rows` held"),
        oc.ad.Tape(total, validation=True),
    ):
        f(0)
        row_alias[0, 1] = 3.0
