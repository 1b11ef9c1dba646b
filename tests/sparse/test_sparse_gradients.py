"""Gradients through sparse fields: as on dense ones, in the same cells; and what is refused."""

import numpy as np
import pytest

import octants as oc

pytestmark = [pytest.mark.host_access]


@pytest.fixture(autouse=True)
def on_every_device(arch):
    """No test of this file leaves a device out."""


TREES = {
    "dense": lambda: oc.root.dense(oc.ij, 16),
    "pointer": lambda: oc.root.pointer(oc.ij, 16),
    "pointer dense": lambda: oc.root.pointer(oc.ij, 4).dense(oc.ij, 4),
    "pointer bitmasked": lambda: oc.root.pointer(oc.ij, 4).bitmasked(oc.ij, 4),
    "dense bitmasked": lambda: oc.root.dense(oc.ij, 4).bitmasked(oc.ij, 4),
    "pointer pointer dense": lambda: oc.root.pointer(oc.ij, 2).pointer(oc.ij, 2).dense(oc.ij, 4),
    "dynamic": lambda: oc.root.dense(oc.i, 16).dynamic(oc.j, 16, chunk_size=4),
}


def gradients_of(make):
    """Of a program with steps in rows of a field, a stencil, a scatter and loops over what is active: its loss and gradients."""
    x, y = oc.field(oc.f32, needs_grad=True), oc.field(oc.f32, needs_grad=True)
    v = oc.Vector.field(2, oc.f32, needs_grad=True)
    for field in (x, y, v):
        make().place(field, field.grad)
    loss = oc.field(oc.f32, shape=(), needs_grad=True)
    some = [1, 2, 3, 6, 7, 11]

    @oc.kernel
    def step(t: oc.i32):
        for i in range(16):
            if (i * 7) % 5 < 3:
                x[t + 1, i] = oc.sin(x[t, i]) * 0.9 + 0.05 * x[t, (i + 1) % 16] + 0.01 * i

    @oc.kernel
    def scatter():
        for i, j in x:
            if x[i, j] != 0.0:
                y[(i * 3) % 16, (j * 5) % 16] += x[i, j] ** 2
                v[i, j] = [x[i, j], 2.0 * x[i, j]]

    @oc.kernel
    def total():
        for i, j in v:
            loss[None] += v[i, j][0] * v[i, j][1] * 0.1
        for i, j in y:
            loss[None] += y[i, j] * oc.exp(-y[i, j])

    for i in some:
        x[0, i] = 0.1 * i
    with oc.ad.Tape(loss):
        for t in range(5):
            step(t)
        scatter()
        total()
    found = x.grad.to_numpy()
    return loss[None], found, x.to_numpy(), y.grad.to_numpy()


@pytest.mark.parametrize("tree", [name for name in TREES if name != "dense"])
def test_gradients_are_those_of_a_dense_field(tree):
    dense, sparse = gradients_of(TREES["dense"]), gradients_of(TREES[tree])
    assert sparse[0] == pytest.approx(dense[0], rel=1e-5)
    # An element that is not there has no gradient.
    there = sparse[2] != 0
    assert there.any() and np.array_equal(there, dense[2] != 0)
    assert np.allclose(sparse[1][there], dense[1][there], rtol=1e-4, atol=1e-6)
    there = sparse[3] != 0
    assert there.sum() > 20 and np.allclose(sparse[3][there], dense[3][there], rtol=1e-4, atol=1e-6)


def test_gradients_make_no_cells_and_leave_the_zero_cell_alone():
    x = oc.field(oc.f32, needs_grad=True)
    blocks = oc.root.pointer(oc.i, 8)
    blocks.dense(oc.i, 2).place(x, x.grad)
    loss = oc.field(oc.f32, shape=(), needs_grad=True)

    @oc.kernel
    def total():
        for i in range(16):
            loss[None] += 3.0 * x[i]

    x[4] = 1.0
    with oc.ad.Tape(loss):
        total()
    assert blocks._num_dynamically_allocated == 1
    assert x.grad.to_numpy().tolist() == [0, 0, 0, 0, 3, 3] + 10 * [0]


def test_forward_mode_makes_cells():
    x, y = oc.field(oc.f32, needs_dual=True), oc.field(oc.f32, needs_dual=True)
    oc.root.pointer(oc.i, 8).place(x, x.dual)
    oc.root.pointer(oc.i, 4).bitmasked(oc.i, 2).place(y, y.dual)

    @oc.kernel
    def cube():
        for i in x:
            y[i] = x[i] ** 3

    x[5] = 2.0
    with oc.ad.FwdMode(loss=y, param=x, seed=[float(i == 5) for i in range(8)]):
        cube()
    assert y[5] == 8 and y.dual[5] == 12


def test_what_has_no_gradient_through_cells_is_refused():
    x, y, apart = (oc.field(oc.f32, needs_grad=True) for _ in range(3))
    node = oc.root.pointer(oc.i, 8)
    node.place(x, x.grad)
    lists = oc.root.dense(oc.i, 2).dynamic(oc.j, 8)
    lists.place(y, y.grad)
    oc.root.pointer(oc.i, 8).place(apart)
    oc.root.dense(oc.i, 8).place(apart.grad)
    loss = oc.field(oc.f32, shape=(), needs_grad=True)

    @oc.kernel
    def drop():
        for i in x:
            if x[i] > 1:
                oc.deactivate(node, i)

    @oc.kernel
    def grow():
        for i in x:
            x[(i + 1) % 8] += 2.0 * x[i]

    @oc.kernel
    def push():
        for i in x:
            oc.append(lists, [0], x[i])

    @oc.kernel
    def other():
        for i in apart:
            loss[None] += apart[i] ** 2

    @oc.kernel
    def twice():
        for i in x:
            x[i] = x[i] ** 2

    x[1] = 1.0
    for kernel, match in [
        (drop, r"\[OC1103\][\s\S]*deactivate\(node, i\)"),
        (grow, r"\[OC1103\][\s\S]*makes cells"),
        (push, r"\[OC1103\][\s\S]*append\(lists"),
        (other, r"\[OC1104\].*`apart`"),
        (twice, r"\[OC1101\][\s\S]*`x`"),
    ]:
        with pytest.raises((oc.OctantsCompilationError, RuntimeError), match=match):
            kernel.grad()
        if kernel is not other:
            with pytest.raises((oc.OctantsCompilationError, RuntimeError), match=match), oc.ad.Tape(loss):
                kernel()


def test_cells_that_are_made_or_given_up_meanwhile_are_told():
    x = oc.field(oc.f32, needs_grad=True)
    node = oc.root.pointer(oc.i, 8)
    node.place(x, x.grad)
    loss = oc.field(oc.f32, shape=(), needs_grad=True)

    @oc.kernel
    def total():
        for i in x:
            loss[None] += 2.0 * x[i]

    @oc.ad.no_grad
    @oc.kernel
    def more():
        for i in range(8):
            x[i] = 1.0

    x[3] = 1.0
    # The loop would visit other cells than it did.
    with pytest.raises(RuntimeError, match=r"\[OC1105\]"), oc.ad.Tape(loss):
        total()
        more()
    assert x.grad[3] == 0
    with oc.ad.Tape(loss):
        total()
    assert x.grad.to_numpy().tolist() == 8 * [2.0]


def test_the_host_may_look_at_elements_in_a_tape(arch):
    x, y = (oc.field(oc.f64, needs_grad=True) for _ in range(2))
    loss = oc.field(oc.f64, (), needs_grad=True)
    for one in (x, y):
        oc.root.pointer(oc.i, 4).place(one, one.grad)

    @oc.kernel
    def square():
        for i in x:
            y[i] = x[i] * x[i]

    @oc.kernel
    def add_up():
        for i in y:
            loss[None] += y[i]

    for i in range(4):
        x[i] = i + 1.0
    with oc.ad.Tape(loss):
        square()
        assert y[2] == 9.0
        assert y.to_numpy().tolist() == [1.0, 4.0, 9.0, 16.0]
        add_up()
    assert x.grad.to_numpy().tolist() == [2.0, 4.0, 6.0, 8.0]
    with pytest.raises(oc.OctantsRuntimeError, match="OC1105"), oc.ad.Tape(loss):
        square()
        x[0] = 2.0 * y[0]
        add_up()
