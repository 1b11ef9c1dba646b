"""Shapes of loops and bounds that derivatives must be right for, each against differences: lengths, domains and places of bounds that
are easily confused."""

import numpy as np
import pytest
from gradient_values import INTS, VEC, X, differences, integers, made

import octants as oc

I2 = oc.types.ndarray(dtype=oc.i32, ndim=2)


@oc.kernel
def bound_of_a_thousand(x: VEC, y: VEC, n: INTS):
    for i in x:
        v = x[i]
        for _ in range(n[0]):
            v = oc.sin(v) * 0.5 + 0.5 * x[i]
        y[i] = v


@oc.kernel
def triple_nest(x: VEC, y: VEC, n: INTS):
    for i in x:
        v = x[i]
        for a in range(n[0]):
            for b in range(n[1]):
                for c in range(n[2]):
                    v = oc.sin(v) + x[(a + b + c) % 4]
                v = v * 0.5
            v += x[a % 4] * v
        y[i] = v


@oc.kernel
def product_domain(x: VEC, y: VEC, n: INTS):
    for i, j in oc.ndrange(n[0], n[1]):
        v = x[i]
        for _ in range(j):
            v = v * x[j] + 0.1
        y[j] += v


@oc.kernel
def index_kept_in_a_variable(x: VEC, y: VEC, n: INTS):
    for i in x:
        at = oc.cast(i, oc.i64)
        v = x[i]
        for k in range(3):
            for _ in range(n[oc.cast(at, oc.i32)]):
                v = oc.sin(v) + x[k]
        y[i] = v


@oc.kernel
def bound_of_a_shape(x: VEC, y: VEC, n: I2):
    for i in x:
        v = x[i]
        for _ in range(n.shape[0]):
            for _ in range(n.shape[1]):
                v = oc.sin(v) * 0.9
        y[i] = v


@oc.kernel
def rows_some_of_them_backward(x: VEC, y: VEC, start: INTS):
    for i in x:
        v = x[i]
        for k in range(start[i], start[i + 1]):
            v = oc.sin(v) * x[k % 4]
        y[i] = v


@oc.kernel
def difference_of_arrays_of_other_lengths(x: VEC, y: VEC, a: INTS, b: INTS):
    for i in x:
        v = x[i]
        if i < b.shape[0]:
            for _ in range(a[i] - b[i]):
                v = oc.sin(v) + 0.1
        y[i] = v


@oc.kernel
def loops_over_two_arrays(x: VEC, y: VEC, a: INTS, b: INTS):
    for i in range(a.shape[0]):
        v = x[i % 4]
        for _ in range(a[i]):
            v = oc.sin(v)
        y[i % 4] += v
    for i in range(b.shape[0]):
        v = x[i]
        for _ in range(b[i]):
            v = v * v
        y[i] += v


@oc.kernel
def assigned_several_times(x: VEC, y: VEC, n: INTS):
    for i in x:
        v = x[i]
        for k in range(n[i]):
            v = oc.sin(v)
            if v > 0.5:
                v = v * x[i]
            else:
                v = v + x[i]
            v = v * v
        y[i] = v


@oc.kernel
def handed_on_unchanged(x: VEC, y: VEC, n: INTS):
    for i in x:
        v, w = x[i], x[i]
        for j in range(n[i]):
            for k in range(j + 1):
                v = v * w
                w = w
        y[i] = v


@oc.kernel
def siblings(x: VEC, y: VEC, n: INTS):
    for i in x:
        v = x[i]
        for _ in range(n[i]):
            v = oc.sin(v)
        for _ in range(2):
            v = v * x[i]
        for _ in range(n[3 - i]):
            v = oc.exp(-v)
        y[i] = v


@oc.kernel
def gated_loops(x: VEC, y: VEC, n: INTS):
    for i in x:
        if n[i] % 2 == 1:
            v = x[i]
            for _ in range(n[i]):
                v = oc.sin(v) * 1.5
            y[i] = v


RIGHT = [
    (bound_of_a_thousand, ([1000],)),
    (triple_nest, ([2, 3, 2],)),
    (product_domain, ([3, 4],)),
    (index_kept_in_a_variable, ([2, 0, 1, 3],)),
    (bound_of_a_shape, (np.zeros((2, 5)),)),
    (rows_some_of_them_backward, ([0, 3, 1, 4, 4],)),
    (difference_of_arrays_of_other_lengths, ([3, 4, 7, 9], [1, 2])),
    (difference_of_arrays_of_other_lengths, ([3, 4], [1, 2, 3, 4][:2])),
    (loops_over_two_arrays, ([1, 0, 2, 1, 1, 9], [2, 1])),
    (loops_over_two_arrays, ([1, 0], [2, 1, 0, 3])),
    (assigned_several_times, ([0, 1, 2, 5],)),
    (handed_on_unchanged, ([0, 1, 2, 3],)),
    (siblings, ([0, 1, 2, 3],)),
    (gated_loops, ([0, 1, 2, 3],)),
]


@pytest.mark.parametrize(("kernel", "bounds"), RIGHT, ids=lambda one: getattr(one, "__name__", ""))
def test_derivative_is_right(arch, kernel, bounds):
    rest = [integers(one) for one in bounds]
    x, y = made(X), made(np.zeros(4))
    kernel(x, y, *rest)
    y.grad.from_numpy(np.arange(1.0, 5.0))
    kernel.grad(x, y, *rest)

    def value(numbers):
        out = made(np.zeros(4))
        kernel(made(numbers), out, *rest)
        return out.to_numpy() @ np.arange(1, 5)

    np.testing.assert_allclose(x.grad.to_numpy(), differences(value, X), rtol=1e-5, atol=1e-7)


def test_bounds_of_a_field_and_an_array_together(arch):
    limit = oc.field(oc.i32, shape=4)
    limit.from_numpy(np.array([3, 4, 5, 6], dtype=np.int32))

    @oc.kernel
    def f(x: VEC, y: VEC, n: INTS):
        for i in x:
            v = x[i]
            for _ in range(limit[i] - n[i]):
                v = oc.sin(v) * x[i]
            y[i] = v

    n = integers([3, 1, 2, 9])
    x, y = made(X), made(np.zeros(4))
    f(x, y, n)
    y.grad.fill(1.0)
    f.grad(x, y, n)

    def value(numbers):
        out = made(np.zeros(4))
        f(made(numbers), out, n)
        return out.to_numpy().sum()

    np.testing.assert_allclose(x.grad.to_numpy(), differences(value, X), rtol=1e-5, atol=1e-7)


def test_one_entry_for_each_iteration():
    """However often a value is assigned, and not at all where it is handed on unchanged."""
    for kernel, kept in ((assigned_several_times, [["f64"]]), (gated_loops, [["f64"]])):
        plan = kernel.grad_plan(made(X), made(np.zeros(4)), integers([1, 2, 3, 4]))
        assert [one["values"] for one in plan["kept"]] == kept
    plan = handed_on_unchanged.grad_plan(made(X), made(np.zeros(4)), integers([1, 2, 3, 4]))
    assert [one["values"] for one in plan["kept"]] == [["f64"], ["f64"]]


def test_updates_of_all_iterations_that_cannot_be_derived():
    @oc.kernel
    def old_value(x: VEC, y: VEC):
        for i in x:
            y[i] = oc.atomic_add(y[0], x[i]) * 2.0

    @oc.kernel
    def overwritten_total(x: VEC, y: VEC):
        for i in x:
            oc.atomic_max(y[0], x[i])
        y[1] = y[0] * 2.0
        y[0] = 0.0

    x = oc.field(oc.f64, shape=4, needs_dual=True)
    y = oc.field(oc.f64, shape=(), needs_dual=True)

    @oc.kernel
    def overwritten_read():
        for i in x:
            oc.atomic_max(y[None], x[i])
            x[i] = 2.0 * x[i]

    loss = made(0.0)
    for kernel, code in ((old_value, "OC1103"), (overwritten_total, "OC1101")):
        with pytest.raises(oc.OctantsCompilationError, match=rf"\[{code}\]"), oc.ad.Tape(loss):
            kernel(made(X), made(np.zeros(4)))
    with (
        pytest.raises(oc.OctantsCompilationError, match=r"\[OC1101\]"),
        oc.ad.FwdMode(loss=y, param=x, seed=[1.0, 0.0, 0.0, 0.0]),
    ):
        overwritten_read()


# ---- quantised fields -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["fixed", "float"])
def test_what_would_be_lost_in_a_quantised_field_is_refused(arch, kind):
    quant = oc.types.quant
    q = oc.field({"fixed": quant.fixed(16, max_value=4.0), "float": quant.float(5, 11)}[kind])
    words = oc.BitpackedFields(max_num_bits=16)
    words.place(q)
    oc.root.dense(oc.i, 3).place(words)
    x, loss = oc.field(oc.f32, shape=3, needs_grad=True), oc.field(oc.f32, shape=(), needs_grad=True)

    @oc.func
    def put(i, value):
        q[i] = value

    @oc.kernel
    def store():
        for i in x:
            put(i, 2.0 * x[i])
            loss[None] += x[i]

    @oc.kernel
    def add():
        for i in x:
            q[i] += x[i]

    @oc.kernel
    def read():
        for i in x:
            loss[None] += q[i] * x[i]
            q[i] = 0.5

    for lost, line in ((store, r"q\[i\] = value"), (add, r"q\[i\] \+= x\[i\]")):
        with (
            pytest.raises(oc.OctantsRuntimeError, match=rf"\[OC1102\].*quantised field(.|\n)*{line}"),
            oc.ad.Tape(loss),
        ):
            lost()
    q.fill(1.5)
    with oc.ad.Tape(loss):
        oc.ad.no_grad(add)()
        read()
    np.testing.assert_array_equal(x.grad.to_numpy(), 1.5)


def test_integers_of_a_quantised_field_stop_gradients(arch):
    q = oc.field(oc.types.quant.int(8))
    words = oc.BitpackedFields(max_num_bits=8)
    words.place(q)
    oc.root.dense(oc.i, 3).place(words)
    x, loss = oc.field(oc.f32, shape=3, needs_grad=True), oc.field(oc.f32, shape=(), needs_grad=True)

    @oc.kernel
    def count():
        for i in x:
            q[i] = oc.cast(x[i], oc.i32)
            loss[None] += x[i] * q[i]

    x.from_numpy(np.array([1.5, 2.5, 3.5], dtype=np.float32))
    with oc.ad.Tape(loss):
        count()
    np.testing.assert_array_equal(x.grad.to_numpy(), [1.0, 2.0, 3.0])
