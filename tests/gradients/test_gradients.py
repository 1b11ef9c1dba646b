"""Derivatives by value: against closed forms and central differences, in both modes, on every device."""

import dataclasses

import numpy as np
import pytest
from gradient_values import INTS, SCALAR, VEC, X, differences, integers, made, square

import octants as oc


@oc.kernel
def weighted_sum(y: VEC, loss: SCALAR):
    for i in y:
        loss[None] += y[i] * (i + 1)


def gradient(kernel, x, *rest, outputs=None):
    """The derivatives of the weighted sum of what the kernel writes to its second argument, and central differences of it."""
    n = outputs or len(x)
    loss = made(0.0)

    def value(numbers):
        y = made(np.zeros(n))
        kernel(made(numbers), y, *rest)
        return float(y.to_numpy() @ np.arange(1, n + 1))

    array, y = made(x), made(np.zeros(n))
    with oc.ad.Tape(loss):
        kernel(array, y, *rest)
        weighted_sum(y, loss)
    return array.grad.to_numpy(), differences(value, x)


def check(kernel, x, *rest, outputs=None):
    found, expected = gradient(kernel, x, *rest, outputs=outputs)
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)
    assert np.abs(found).max() > 0


# ---- shapes of kernels ----------------------------------------------------------------------------------------------------


def test_straight_line(arch):
    @oc.kernel
    def f(x: VEC, y: VEC):
        for i in x:
            a = oc.sin(x[i]) * oc.exp(x[i])
            b = oc.sqrt(x[i] + 1.0) / (a + 2.0)
            y[i] = a * b + oc.tanh(b) - oc.log(x[i] + 3.0) + oc.atan2(a, b) + x[i] ** 3 + oc.abs(b)

    check(f, X)


def test_branches(arch):
    @oc.kernel
    def f(x: VEC, y: VEC):
        for i in x:
            v = x[i] * 2.0
            if v > 1.5:
                v = v * v
            elif i == 0:
                v = oc.sin(v)
            else:
                v -= x[i] * x[i]
            y[i] = v if x[i] < 1.0 else oc.max(v, x[i]) * 3.0

    check(f, X)


def test_loops_with_carried_values(arch):
    @oc.kernel
    def f(x: VEC, y: VEC, n: oc.i32):
        for i in x:
            v = x[i]
            w = oc.cast(1.0, oc.f64)
            for k in range(n):
                v = oc.sin(v) * 0.9 + 0.1 * w
                w *= v
            y[i] = v + w

    check(f, X, 7)
    for n in (0, 1, 31, 3):
        found, expected = gradient(f, X, n)
        np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-7)


def test_nested_loops_with_bounds_from_arrays(arch):
    @oc.kernel
    def f(x: VEC, y: VEC, rows: INTS):
        for i in range(y.shape[0]):
            v = oc.cast(1.0, oc.f64)
            for k in range(rows[i], rows[i + 1]):
                for j in range(k + 1):
                    v = v * 0.5 + oc.cos(v * x[k]) * x[j]
            y[i] = v

    check(f, X, integers([0, 1, 1, 4]), outputs=3)


def test_while_with_break_and_continue(arch):
    @oc.kernel
    def f(x: VEC, y: VEC):
        for i in x:
            v = x[i]
            k = 0
            while v < 3.0:
                k += 1
                if k == 2:
                    continue
                v = v * v * 0.25 + v + 0.2
                if k > 5:
                    break
            y[i] = v

    check(f, X)


def test_several_tasks(arch):
    @oc.kernel
    def f(x: VEC, y: VEC, middle: VEC):
        for i in x:
            middle[i] = oc.sin(x[i]) * x[i]
        for i in y:
            y[i] = middle[i] * middle[(i + 1) % 4]

    middle = made(np.zeros(4))
    check(f, X, middle)


def test_functions_and_reductions(arch):
    @oc.func
    def smooth(a, b):
        return oc.select(a > b, a * a, oc.exp(b) * a)

    @oc.real_func
    def power(a: oc.f64, n: oc.i32) -> oc.f64:
        r = oc.cast(1.0, oc.f64)
        for _ in range(n):
            r *= a
        return r

    @oc.kernel
    def f(x: VEC, y: VEC):
        for i in x:
            y[0] += smooth(x[i], 0.8)
            y[1] -= power(x[i], i)

    check(f, X, outputs=2)


def test_vectors_and_matrices(arch):
    x = oc.Vector.field(3, oc.f64, shape=4, needs_grad=True)
    m = oc.Matrix.field(3, 3, oc.f64, shape=(), needs_grad=True)
    loss = oc.field(oc.f64, shape=(), needs_grad=True)

    @oc.kernel
    def f():
        for i in x:
            v = m[None] @ x[i]
            loss[None] += v.dot(v)

    rng = np.random.default_rng(1)
    xs, ms = rng.normal(size=(4, 3)), rng.normal(size=(3, 3))
    x.from_numpy(xs)
    m.from_numpy(ms)
    with oc.ad.Tape(loss):
        f()
    np.testing.assert_allclose(x.grad.to_numpy(), 2 * xs @ (ms.T @ ms), rtol=1e-10)
    np.testing.assert_allclose(m.grad.to_numpy(), 2 * ms @ (xs.T @ xs), rtol=1e-10)


# ---- where gradients lie --------------------------------------------------------------------------------------------------


def test_fields_of_all_kinds_of_placement(arch):
    a = oc.field(oc.f64)
    b = oc.field(oc.f64, shape=(3, 4), order="ji", offset=(-1, 2), needs_grad=True)
    s = oc.Struct.field({"n": oc.i32, "u": oc.f64, "v": oc.types.vector(2, oc.f64)}, shape=4, needs_grad=False)
    t = oc.Vector.field(2, oc.f64, shape=4, needs_grad=True, layout=oc.Layout.SOA)
    loss = oc.field(oc.f64, needs_grad=True)
    oc.root.dense(oc.i, 4).place(a, a.grad)
    oc.root.place(loss)
    oc.root.lazy_grad()

    @oc.kernel
    def f():
        for i in a:
            loss[None] += a[i] ** 2 * s[i].u * s[i].v[1] + t[i][0] * t[i][1] * s[i].n
        for i, j in b:
            loss[None] += b[i, j] * (i + 10 * j)

    a.from_numpy(np.arange(4.0))
    s.u.fill(2.0)
    s.v.fill(3.0)
    s.n.fill(5)
    t.from_numpy(np.arange(8.0).reshape(4, 2))
    with oc.ad.Tape(loss):
        f()
    np.testing.assert_allclose(a.grad.to_numpy(), 12 * np.arange(4.0))
    i, j = np.mgrid[-1:2, 2:6]
    np.testing.assert_allclose(b.grad.to_numpy(), i + 10 * j)
    np.testing.assert_allclose(t.grad.to_numpy(), 5 * np.arange(8.0).reshape(4, 2)[:, ::-1])
    np.testing.assert_allclose(s.u.grad.to_numpy(), 3 * np.arange(4.0) ** 2)
    np.testing.assert_allclose(s.v.grad.to_numpy()[:, 1], 2 * np.arange(4.0) ** 2)


def test_templates_members_and_views(arch):
    @oc.data_oriented
    class Model:
        def __init__(self):
            self.w = oc.field(oc.f64, shape=3, needs_grad=True)
            self.b = made([1.0, 2.0, 3.0])

        @oc.kernel
        def run(self, x: oc.template(), part: oc.BufferView, k: oc.f64):
            for i in x:
                part[i] += k * self.w[i] * x[i] * self.b[i]

    model = Model()
    x = oc.field(oc.f64, shape=3, needs_grad=True)
    x.fill(2.0)
    model.w.fill(3.0)
    out = made(np.zeros(8))
    model.run(x, out[4:7], 0.5)
    out.grad.from_numpy(np.arange(8.0))
    model.run.grad(x, out[4:7], k=0.5)
    seeds = np.arange(4.0, 7.0)
    np.testing.assert_allclose(x.grad.to_numpy(), 0.5 * 3 * np.arange(1, 4) * seeds)
    np.testing.assert_allclose(model.w.grad.to_numpy(), 0.5 * 2 * np.arange(1, 4) * seeds)
    np.testing.assert_allclose(model.b.grad.to_numpy(), 0.5 * 3 * 2 * seeds)
    assert model.run == model.run
    assert model.run.__func__ is Model.run


def test_code_for_arrays_with_gradients_is_not_for_others(arch):
    @oc.kernel
    def f(x: VEC, y: VEC):
        for i in x:
            y[i] += 2.0 * x[i]

    x, y, constant = made([1.0, 2.0]), made([0.0, 0.0]), made([1.0, 1.0], needs_grad=False)
    y.grad.fill(1.0)
    f.grad(x, y)
    f.grad(constant, y)
    f.grad(x, y)
    np.testing.assert_array_equal(x.grad.to_numpy(), [4.0, 4.0])
    with pytest.raises(oc.OctantsRuntimeError, match=r"\[OC1102\].*Gradients of `y` are not allocated"):
        f.grad(x, constant)


def test_gradients_accumulate_and_stores_take_them(arch):
    x, y = made([3.0]), made([0.0])

    @oc.kernel
    def f(x: VEC, y: VEC):
        for i in x:
            y[i] = x[i] * x[i]

    y.grad.fill(1.0)
    f.grad(x, y)
    assert x.grad[0] == 6.0
    assert y.grad[0] == 0.0
    y.grad.fill(1.0)
    f.grad(x, y)
    assert x.grad[0] == 12.0


def test_stop_grad_makes_what_is_loaded_a_constant(arch):
    x = oc.field(oc.f64, shape=2, needs_grad=True)
    w = oc.Struct.field({"u": oc.f64, "v": oc.types.vector(2, oc.f64)}, shape=2, needs_grad=True)
    loss = oc.field(oc.f64, shape=(), needs_grad=True)

    @oc.kernel
    def f(y: oc.template()):
        oc.stop_grad(x)
        oc.stop_grad(w.v)
        for i in y:
            loss[None] += y[i] * x[i] * w[i].u * w[i].v[0]

    @oc.kernel
    def g(y: oc.template()):
        oc.stop_grad(y)
        for i in y:
            loss[None] += y[i] * x[i]

    y = oc.field(oc.f64, shape=2, needs_grad=True)
    for field, value in ((x, 2.0), (y, 3.0), (w, 5.0)):
        field.fill(value)
    with oc.ad.Tape(loss):
        f(y)
    assert x.grad.to_numpy().tolist() == [0.0, 0.0]
    assert w.v.grad.to_numpy().tolist() == [[0.0, 0.0], [0.0, 0.0]]
    assert w.u.grad.to_numpy().tolist() == [30.0, 30.0]
    assert y.grad.to_numpy().tolist() == [50.0, 50.0]
    with oc.ad.Tape(loss):
        g(y)
    assert (x.grad[0], y.grad[0]) == (3.0, 0.0)


def gradients_of(kernel, x, loss):
    """Of a kernel that adds multiples of `x[i]` to `loss`: by which factors, in reverse and in forward mode."""
    x.fill(3.0)
    loss[None] = 0.0
    with oc.ad.Tape(loss):
        kernel()
    backward = x.grad.to_numpy().tolist()
    with oc.ad.FwdMode(loss=loss, param=x, seed=[1.0] * x.shape[0]):
        kernel()
    assert loss.dual[None] == sum(backward)
    assert len(set(backward)) == 1
    return backward[0]


def test_stop_grad_holds_in_the_block_that_it_stands_in(arch):
    x = oc.field(oc.f64, shape=3, needs_grad=True, needs_dual=True)
    loss = oc.field(oc.f64, shape=(), needs_grad=True, needs_dual=True)

    @oc.kernel
    def first_of_two_loops():
        for i in x:
            oc.stop_grad(x)
            loss[None] += x[i] ** 2
        for i in x:
            loss[None] += x[i] ** 2

    @oc.kernel
    def behind_a_loop():
        for i in x:
            loss[None] += x[i]
        oc.stop_grad(x)
        for i in x:
            loss[None] += x[i]

    @oc.kernel
    def branch():
        for i in x:
            if i < 5:
                loss[None] += x[i]
                oc.stop_grad(x)
                loss[None] += 10 * x[i]
            loss[None] += 100 * x[i]

    @oc.kernel
    def inner_loop():
        for i in x:
            loss[None] += 100 * x[i]
            before = x[i]
            for j in range(1):
                oc.stop_grad(x)
                loss[None] += 1000 * x[i] + 10000 * before
            loss[None] += 10 * x[i]

    @oc.kernel
    def outer_loop():
        for i in x:
            loss[None] += 100 * x[i]
            oc.stop_grad(x)
            for j in range(1):
                loss[None] += 1000 * x[i]

    @oc.kernel
    def branch_that_the_rest_nests_in():
        for i in x:
            loss[None] += x[i]
            if i == 5:
                loss[None] += 10 * x[i]
                continue
            else:
                oc.stop_grad(x)
                loss[None] += 100 * x[i]
            loss[None] += 1000 * x[i]

    @oc.kernel
    def rest_behind_continue():
        for i in x:
            loss[None] += x[i]
            if i == 5:
                continue
            oc.stop_grad(x)
            loss[None] += 10 * x[i]

    @oc.kernel
    def one_turn_of_a_static_loop():
        for i in x:
            for k in oc.static(range(2)):
                for j in range(1):
                    if oc.static(k == 1):
                        oc.stop_grad(x)
                    loss[None] += 10**k * x[i]

    @oc.func
    def load(i):
        return x[i]

    @oc.func
    def stop_and_load(i):
        oc.stop_grad(x)
        return x[i]

    @oc.kernel
    def load_by_a_func():
        for i in x:
            oc.stop_grad(x)
            loss[None] += load(i)
        for i in x:
            loss[None] += 10 * load(i)

    @oc.kernel
    def stop_by_a_func():
        for i in x:
            loss[None] += stop_and_load(i) + 10 * x[i]
        for i in x:
            loss[None] += 100 * x[i]

    found = {
        kernel.__name__: gradients_of(kernel, x, loss)
        for kernel in (
            first_of_two_loops, behind_a_loop, branch, inner_loop, outer_loop, branch_that_the_rest_nests_in,
            rest_behind_continue, one_turn_of_a_static_loop, load_by_a_func, stop_by_a_func,
        )
    }  # fmt: skip
    assert found == {
        "first_of_two_loops": 6.0,
        "behind_a_loop": 0.0,
        "branch": 100.0,
        "inner_loop": 10110.0,
        "outer_loop": 0.0,
        "branch_that_the_rest_nests_in": 1001.0,
        "rest_behind_continue": 0.0,
        "one_turn_of_a_static_loop": 1.0,
        "load_by_a_func": 10.0,
        "stop_by_a_func": 100.0,
    }


def test_stop_grad_knows_a_field_by_any_of_its_names(arch):
    w = oc.Struct.field({"u": oc.f64, "v": oc.types.vector(2, oc.f64)}, shape=2, needs_grad=True)
    v, loss = w.v, oc.field(oc.f64, shape=(), needs_grad=True)

    @oc.kernel
    def whole():
        for i in range(2):
            oc.stop_grad(w)
            loss[None] += v[i][0] * w[i].u

    @oc.kernel
    def member():
        for i in range(2):
            oc.stop_grad(v)
            loss[None] += w[i].v[1] + w[i].u

    w.fill(1.0)
    for kernel, of_u in ((whole, 0.0), (member, 1.0)):
        with oc.ad.Tape(loss):
            kernel()
        assert w.u.grad.to_numpy().tolist() == [of_u, of_u]
        assert not w.v.grad.to_numpy().any()


def test_stop_grad_of_a_sparse_field(arch):
    x = oc.field(oc.f64, needs_grad=True)
    oc.root.pointer(oc.i, 4).dense(oc.i, 2).place(x, x.grad)
    loss = oc.field(oc.f64, shape=(), needs_grad=True)

    @oc.kernel
    def set_up():
        for i in range(2, 4):
            x[i] = 3.0

    @oc.kernel
    def f():
        for i in x:
            oc.stop_grad(x)
            loss[None] += x[i] ** 2
        for i in x:
            loss[None] += x[i] ** 2

    set_up()
    with oc.ad.Tape(loss):
        f()
    assert loss[None] == 36.0
    assert [x.grad[i] for i in range(5)] == [0.0, 0.0, 6.0, 6.0, 0.0]


def test_stop_grad_and_real_functions(arch):
    x = oc.field(oc.f64, shape=2, needs_grad=True)
    loss = oc.field(oc.f64, shape=(), needs_grad=True)

    @oc.real_func
    def load(i: oc.i32) -> oc.f64:
        return x[i]

    @oc.kernel
    def top():
        oc.stop_grad(x)
        for i in range(2):
            loss[None] += load(i)

    @oc.kernel
    def loop():
        for i in range(2):
            oc.stop_grad(x)
            loss[None] += load(i)

    with oc.ad.Tape(loss):
        top()
    assert x.grad.to_numpy().tolist() == [0.0, 0.0]
    with pytest.raises(oc.OctantsCompilationError, match="does not reach into the real function `load`"):
        loop()


def test_options_for_stacks_change_nothing():
    assert oc.is_extension_enabled(oc.extension.adstack)


def test_members_of_dataclasses_and_tensors(arch):
    @dataclasses.dataclass
    class Pair:
        x: VEC
        y: VEC

    @oc.kernel
    def f(p: Pair, n: oc.i32):
        for i in p.x:
            v = p.x[i]
            for _ in range(n):
                v = v * v
            p.y[i] = v

    @oc.kernel
    def g(t: oc.Tensor, u: oc.Tensor):
        for i in range(3):
            u[None] += t[i] * t[i]

    pair = Pair(made([1.5]), made([0.0]))
    f(pair, 2)
    pair.y.grad.fill(1.0)
    f.grad(pair, 2)
    assert pair.x.grad[0] == 4 * 1.5**3
    u = oc.tensor(oc.f64, (), needs_grad=True)
    for backend in (oc.Backend.NDARRAY, oc.Backend.FIELD):
        t = oc.tensor(oc.f64, 3, needs_grad=True, backend=backend)
        t.fill(2.0)
        with oc.ad.Tape(u):
            g(t, u)
        assert t.grad.to_numpy().tolist() == [4.0, 4.0, 4.0]


def test_gradients_of_arrays_are_arrays_in_kernels(arch):
    @dataclasses.dataclass(frozen=True)
    class Weights:
        w: oc.Tensor
        rate: oc.f64

    @oc.func
    def change(of, at):
        return of.grad[at]

    @oc.kernel
    def descend(p: Weights):
        for I in oc.grouped(p.w.grad):
            p.w[I] -= p.rate * change(p.w, I)

    @oc.kernel
    def clear(x: oc.types.ndarray()):
        if oc.static(x.grad is not None):
            x.grad.fill(0)

    for layout in None, (1, 0):
        p = Weights(oc.tensor(oc.f64, (2, 3), layout=layout, needs_grad=True), 0.5)
        p.w.grad.from_numpy(np.arange(6.0).reshape(2, 3))
        descend(p)
        descend(p)
        assert p.w.to_numpy().tolist() == [[0, -1, -2], [-3, -4, -5]]
        clear(p.w)
        assert not p.w.grad.to_numpy().any()

    @oc.kernel
    def step(x: oc.types.ndarray()):
        for i in x:
            x[i] -= x.grad[i]

    x, without = made(X), made(X, needs_grad=False)
    x.grad.fill(1.0)
    step(x)
    np.testing.assert_allclose(x.to_numpy(), np.array(X) - 1)
    clear(without)
    # Code for an array with gradients is not for one without.
    with pytest.raises(oc.OctantsCompilationError, match="the array `x` has no gradients"):
        step(without)
    with pytest.raises(RuntimeError, match="Cannot automatically differentiate through a grad tensor"):
        step.grad(x)


def test_annotations_demand_gradients_or_leave_them_alone(arch):
    @oc.kernel
    def demanding(x: oc.types.ndarray(needs_grad=True), loss: SCALAR):
        for i in x:
            loss[None] += x[i] * x[i]

    @oc.kernel
    def ignoring(x: oc.types.ndarray(needs_grad=False), y: VEC, loss: SCALAR):
        for i in x:
            loss[None] += x[i] * y[i]

    x, y, loss, without = made(X), made(X), made(0.0), made(X, needs_grad=False)
    for _ in range(2):
        with pytest.raises(ValueError, match="Invalid value for argument x - required needs_grad=True"):
            demanding(without, loss)
        with oc.ad.Tape(loss):
            demanding(x, loss)
        np.testing.assert_allclose(x.grad.to_numpy(), 2 * np.array(X))
        with oc.ad.Tape(loss):
            ignoring(x, y, loss)
        assert not x.grad.to_numpy().any()
        np.testing.assert_allclose(y.grad.to_numpy(), X)
    demanding(np.array(X), loss)


def test_gradients_of_nothing_are_refused(arch):
    x, y = made(X, needs_grad=False), made(X, needs_grad=False)

    @oc.kernel
    def copy(x: VEC, y: VEC):
        for i in x:
            y[i] = x[i]

    with pytest.raises(RuntimeError, match="Gradients of `x`, `y` are not allocated"):
        copy.grad(x, y)
    # In a tape such a call is one among others.
    loss = made(0.0)
    with oc.ad.Tape(loss):
        copy(x, y)
        square(made(X), loss)


@pytest.mark.device_memory
def test_gradients_where_the_host_sees_no_memory():
    @oc.kernel
    def f(x: VEC, y: VEC, n: oc.i32):
        for i in x:
            v = x[i]
            for _ in range(n):
                v = oc.sin(v) + x[i]
            y[i] = v

    check(f, X, 5)


def test_streams_take_gradients(arch):
    x, loss = made([1.0, 2.0]), made(0.0)
    stream = oc.create_stream()
    with oc.ad.Tape(loss):
        square(x, loss, qd_stream=stream)
    np.testing.assert_array_equal(x.grad.to_numpy(), [2.0, 4.0])


def test_branches_that_run_at_the_same_time(arch):
    @oc.kernel
    def f(x: VEC, y: VEC):
        with oc.stream_parallel():
            for i in range(2):
                y[i] = x[i] * x[i]
        with oc.stream_parallel():
            for i in range(2, 4):
                y[i] = oc.exp(x[i])

    check(f, X)


def test_debug_mode(arch):
    oc.init(arch=getattr(oc, arch), debug=True, log_level="error")

    @oc.kernel
    def f(x: VEC, y: VEC, n: INTS):
        for i in x:
            v = x[i]
            for k in range(n[i]):
                assert v < 100.0
                v = oc.sin(v) * x[(i + k) % 4]
            y[i] = v

    check(f, X, integers([0, 1, 2, 3]))
    x, loss = made(X), made(0.0)
    with oc.ad.Tape(loss, validation=True):
        square(x, loss)
    np.testing.assert_allclose(x.grad.to_numpy(), 2 * np.array(X))


def test_steps_of_a_simulation_in_rows_of_one_field(arch):
    steps = 20
    position = oc.field(oc.f64, shape=(steps + 1, 3), needs_grad=True)
    velocity = oc.field(oc.f64, shape=(steps + 1, 3), needs_grad=True)
    loss = oc.field(oc.f64, shape=(), needs_grad=True)

    @oc.kernel
    def step(t: oc.i32):
        for p in range(3):
            velocity[t + 1, p] = velocity[t, p] - 0.1 * oc.sin(position[t, p])
            position[t + 1, p] = position[t, p] + 0.1 * velocity[t + 1, p]

    @oc.kernel
    def last():
        for p in range(3):
            loss[None] += position[steps, p] ** 2

    start = np.zeros((steps + 1, 3))
    start[0] = [0.1, 0.7, 1.3]

    def run(values):
        position.from_numpy(values)
        with oc.ad.Tape(loss):
            for t in range(steps):
                step(t)
            last()
        return loss[None], position.grad.to_numpy()[0]

    _, found = run(start)
    for p in range(3):
        high, low = start.copy(), start.copy()
        high[0, p] += 1e-6
        low[0, p] -= 1e-6
        np.testing.assert_allclose(found[p], (run(high)[0] - run(low)[0]) / 2e-6, rtol=1e-6)


def test_fields_that_are_gone_are_not_cleared():
    builder = oc.FieldsBuilder()
    gone = oc.field(oc.f64)
    builder.dense(oc.i, 3).place(gone, gone.grad)
    builder.finalize().destroy()
    old = oc.field(oc.f64, shape=(), needs_grad=True)
    x, loss = made([1.0, 2.0]), made(0.0)
    with pytest.raises(oc.OctantsRuntimeError, match="was reset"), oc.ad.Tape(loss):
        square(x, loss)
        oc.reset()
    oc.init(log_level="error")
    x, loss = made([1.0, 2.0]), made(0.0)
    with oc.ad.Tape(loss):
        square(x, loss)
    np.testing.assert_array_equal(x.grad.to_numpy(), [2.0, 4.0])
    assert old is not gone


def test_the_plan_of_a_derivative():
    @oc.kernel
    def f(x: VEC, y: VEC, n: oc.i32):
        for i in x:
            v = x[i]
            for _ in range(n):
                v = oc.sin(v) + oc.floor(x[i])
            y[i] = v

    plan = f.grad_plan(made([1.0]), made([0.0]), 3)
    assert plan["derived"] == ["x", "y"]
    (kept,) = plan["kept"]
    assert kept["values"] == ["f64"]
    assert kept["bytes_per_iteration"] == 8
    assert "test_gradients.py" in kept["loop"]
    assert len(plan["stops"]) == 1
    assert f.grad_plan(made([1.0]), n=3, y=made([0.0])) == plan
    straight = square.grad_plan(made([1.0]), made(0.0))
    assert straight["kept"] == []
    assert straight["stops"] == []


# ---- refusals -------------------------------------------------------------------------------------------------------------


def test_memory_under_two_names_is_refused():
    @oc.kernel
    def f(x: VEC, y: VEC):
        for i in x:
            y[i] = x[i] * x[i]

    @oc.kernel
    def g(x: oc.template(), y: oc.template()):
        for i in x:
            y[i] = x[i] * x[i]

    @oc.kernel
    def product(a: VEC, b: VEC, y: VEC):
        for i in a:
            y[i] = a[i] * b[i]

    x, y = made([1.0, 2.0]), made([0.0, 0.0])
    with pytest.raises(oc.OctantsRuntimeError, match=r"\[OC1104\].*`x` and `y` share memory"):
        f.grad(x, x)
    with pytest.raises(oc.OctantsRuntimeError, match=r"\[OC1104\].*through a grad tensor.*`a\.grad`"):
        product.grad(x, x.grad, y)
    y.grad = made([0.0])
    with pytest.raises(oc.OctantsRuntimeError, match=r"the gradients of `y` have another shape"):
        f.grad(x, y)
    a = oc.field(oc.f64, shape=2, needs_grad=True)
    b = oc.field(oc.f64, shape=2, needs_grad=True)
    g.grad(a, b)
    with pytest.raises(oc.OctantsRuntimeError, match=r"\[OC1104\]"):
        g.grad(a, a)


def test_the_same_array_twice_is_fine_where_it_is_only_read(arch):
    @oc.kernel
    def f(a: VEC, b: VEC, y: VEC):
        for i in a:
            y[i] = a[i] * b[i]

    x, y = made([3.0]), made([0.0])
    y.grad.fill(1.0)
    f.grad(x, x, y)
    assert x.grad[0] == 6.0


def test_tensors_of_other_libraries_that_require_gradients_are_refused():
    class Tensor(np.ndarray):
        requires_grad = True

    loss = made(0.0)
    square.grad(np.ones(3), loss)
    with pytest.raises(oc.OctantsRuntimeError, match=r"\[OC1104\].*not supported"):
        square.grad(np.ones(3).view(Tensor), loss)


def test_gradients_are_of_reals():
    with pytest.raises(oc.OctantsRuntimeError, match="not supported"):
        oc.ndarray(oc.i32, 4, needs_grad=True)
    with pytest.raises(oc.OctantsRuntimeError, match="not supported"):
        oc.field(oc.i32, shape=4, needs_grad=True)


@pytest.mark.parametrize("dtype", [oc.f32, oc.f64])
def test_the_greatest_value_is_found_again_whatever_it_is_rounded_with(arch, dtype):
    """The derivative computes each value once more: with other digits than the kernel did it would find none, and give zeros."""
    array = oc.types.ndarray(dtype=dtype, ndim=1)

    @oc.kernel
    def updates(x: array, y: array, n: int):
        for i in range(n):
            oc.atomic_max(y[0], x[i] * x[1] * 1.3 + x[i] * 0.7 + x[i] * x[i] * x[i])

    @oc.kernel
    def functions(x: array, y: array, n: int):
        for i in range(n):
            oc.atomic_min(y[0], -oc.sin(x[i]) / x[1])

    @oc.kernel
    def nested(x: array, y: array, n: int):
        for i in range(n // 8):
            for k in range(8):
                oc.atomic_max(y[0], oc.sin(x[8 * i + k]) / x[1])

    @oc.kernel
    def assigned(x: array, y: array, n: int):
        for i in range(n):
            y[0] = max(y[0], x[i] * x[1] * 1.3 + oc.sqrt(x[i]) * 0.7)

    @oc.kernel
    def variable(x: array, y: array, n: int):
        greatest = oc.cast(-100.0, dtype)
        for i in range(n):
            greatest = max(greatest, x[i] * x[1] * 1.3 + oc.exp(x[i]) * 0.7)
        y[0] = greatest

    rng = np.random.default_rng(3)
    x, y = oc.ndarray(dtype, 160, needs_grad=True), oc.ndarray(dtype, 1, needs_grad=True)
    for kernel in (updates, functions, nested, assigned, variable):
        for n in (8, 9, 15, 17, 23, 25, 31, 36, 37, 40, 48, 63, 129, 160):
            x.from_numpy(rng.uniform(0.3, 1.4, 160).astype(dtype.numpy_name))
            y.fill(100.0 if kernel is functions else -100.0)
            x.grad.fill(0.0)
            y.grad.fill(1.0)
            kernel(x, y, n)
            kernel.grad(x, y, n)
            # One value, and the factor that all of them have.
            assert 1 <= np.count_nonzero(x.grad.to_numpy()) <= 2, (kernel, n)


def test_gradients_that_are_placed_at_other_indices_are_refused(arch):
    for shape, offset in ((4, 0), (4, -1), (8, -2), (2, -2)):
        x, loss = oc.field(oc.f32), oc.field(oc.f32, (), needs_grad=True)
        oc.root.dense(oc.i, 4).place(x, offset=-2)
        oc.root.dense(oc.i, shape).place(x.grad, offset=offset)

        @oc.kernel
        def squares():
            for i in x:
                loss[None] += x[i] ** 2

        with (
            pytest.raises(oc.OctantsRuntimeError, match=r"its `\.grad` has shape .*: place both with the same shape"),
            oc.ad.Tape(loss),
        ):
            squares()
    y = oc.field(oc.f32)
    oc.root.dense(oc.i, 4).place(y, offset=-2)
    oc.root.dense(oc.i, 4).place(y.grad, offset=-2)

    @oc.kernel
    def weighted():
        for i in y:
            loss[None] += y[i] * (i + 3)

    with oc.ad.Tape(loss):
        weighted()
    assert y.grad.to_numpy().tolist() == [1, 2, 3, 4]
