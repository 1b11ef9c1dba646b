"""Loops that end by what they write to memory, inside of tapes: how much a run keeps is counted on copies before it."""

import numpy as np
import pytest
from gradient_values import INTS, SCALAR, VEC, X, differences, integers, made

import octants as oc

COUNTERS = oc.types.ndarray(dtype=oc.i32, ndim=2)
PAIR = oc.types.vector(2, oc.f64)


@oc.kernel
def grown(x: VEC, u: VEC, c: INTS, loss: SCALAR):
    for i in x:
        u[i] = x[i]
        while u[i] < 3.0:
            u[i] = u[i] * u[i] + 0.7
        loss[None] += u[i] * x[i]


@oc.kernel
def counted_in_memory(x: VEC, u: VEC, c: INTS, loss: SCALAR):
    for i in x:
        c[i] = 0
        while c[i] < 3 and u[i] < 2.0:
            u[i] = u[i] * u[i] + x[i]
            c[i] += 1
        loss[None] += u[i]


@oc.kernel
def bounds_of_an_earlier_loop(x: VEC, u: VEC, c: INTS, loss: SCALAR):
    for i in x:
        c[i] = oc.cast(x[i] * 4.0, oc.i32)
    for i in x:
        for _ in range(c[i]):
            u[i] = oc.sin(u[i] + x[i])
        loss[None] += u[i]


@oc.kernel
def relaxed_until_it_rests(x: VEC, u: VEC, c: INTS, loss: SCALAR):
    for _ in range(1):
        rest = oc.f64(1.0)
        while rest > 1e-2:
            rest = 0.0
            for i in range(1, 3):
                before = u[i]
                u[i] = 0.4 * (u[i - 1] + u[i + 1] * x[i])
                rest += oc.abs(u[i] - before)
    for i in u:
        loss[None] += u[i] * u[i] * x[i]


@oc.kernel
def two_arrays_that_need_each_other(x: VEC, u: VEC, c: INTS, loss: SCALAR):
    for i in x:
        u[i] = x[i]
        c[i] = 0
        while c[i] < 6:
            c[i] += 2 if u[i] > 0.5 else 1
            u[i] = oc.cos(u[i] * x[i]) * u[i]
        loss[None] += u[i]


@pytest.mark.parametrize(
    "kernel",
    [grown, counted_in_memory, bounds_of_an_earlier_loop, relaxed_until_it_rests, two_arrays_that_need_each_other],
)
def test_loops_that_end_by_what_they_write(arch, kernel):
    def run(x, loss):
        u, c = made([0.3, 0.5, 0.2, 0.6]), integers([9, 9, 9, 9])
        kernel(x, u, c, loss)
        return u.to_numpy(), c.to_numpy()

    def value(at):
        loss = made(0.0)
        run(made(at), loss)
        return loss[None]

    plain = run(made(X), made(0.0))
    x, loss = made(X), made(0.0)
    with oc.ad.Tape(loss):
        recorded = run(x, loss)
    # Counting leaves no trace in the arrays.
    for one, other in zip(recorded, plain, strict=True):
        np.testing.assert_allclose(one, other)
    np.testing.assert_allclose(x.grad.to_numpy(), differences(value, X), rtol=1e-6, atol=1e-6)


def test_a_walk_with_a_stack_in_memory(arch):
    @oc.kernel
    def walk(x: VEC, stack: COUNTERS, loss: SCALAR):
        for i in range(3):
            top = 1
            stack[i, 0] = 0
            s = x[i]
            while top > 0:
                top -= 1
                node = stack[i, top]
                s = oc.sin(s) + x[node % 4] * 0.5
                if node < 3 and s > 0.2:
                    stack[i, top] = 2 * node + 1
                    stack[i, top + 1] = 2 * node + 2
                    top += 2
            loss[None] += s

    def value(at):
        loss = made(0.0)
        walk(made(at), oc.ndarray(oc.i32, (3, 16)), loss)
        return loss[None]

    x, loss = made(X), made(0.0)
    with oc.ad.Tape(loss):
        walk(x, oc.ndarray(oc.i32, (3, 16)), loss)
    np.testing.assert_allclose(x.grad.to_numpy(), differences(value, X), rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("layout", [oc.Layout.AOS, oc.Layout.SOA])
def test_fields_of_vectors_as_the_state_of_a_loop(arch, layout):
    state = oc.Vector.field(2, oc.f64, 4, needs_grad=True, layout=layout)
    loss = oc.field(oc.f64, (), needs_grad=True)

    @oc.kernel
    def fall(x: VEC):
        for i in state:
            state[i] = PAIR([x[i], 0.5])
            while state[i].norm_sqr() < 3.0:
                state[i][0] = state[i][0] * state[i][1] + 0.7
                state[i][1] += 0.2 * state[i][0]
            loss[None] += state[i][0] * state[i][1]

    def value(at):
        loss[None] = 0
        fall(made(at))
        return loss[None]

    expected = differences(value, X)
    x = made(X)
    loss[None] = 0
    with oc.ad.Tape(loss):
        fall(x)
    np.testing.assert_allclose(x.grad.to_numpy(), expected, rtol=1e-6, atol=1e-6)


def test_what_nobody_can_count_is_refused():
    @oc.kernel
    def by_what_others_write(x: VEC, c: INTS, order: INTS):
        for i in x:
            while c[order[i]] < 3:
                x[i] = x[i] * x[i]
                c[i] += 1

    @oc.kernel
    def by_what_an_update_gave(x: VEC, c: INTS, order: INTS):
        for i in x:
            for _ in range(oc.atomic_add(c[0], 1)):
                x[i] = x[i] * x[i]

    @oc.kernel
    def by_chance(x: VEC, c: INTS, order: INTS):
        for i in x:
            while oc.random(oc.f64) < 0.5:
                x[i] = x[i] * x[i]

    x, loss = made(X), made(0.0)
    for kernel, words in (
        (by_what_others_write, r"\[OC1101\].*how many values.*`c`"),
        (by_what_an_update_gave, r"\[OC1103\].*atomic update"),
        (by_chance, r"\[OC1103\].*random"),
    ):
        with pytest.raises(oc.OctantsCompilationError, match=words), oc.ad.Tape(loss):
            kernel(x, integers([0, 0, 0, 0]), integers([1, 2, 3, 0]))
    np.testing.assert_array_equal(x.to_numpy(), X)


def test_numpy_arrays_as_the_state_of_a_loop(arch):
    counters = np.zeros((2, 4), dtype=np.int32)
    x, u, loss = made(X), made([0.3, 0.5, 0.2, 0.6]), made(0.0)
    with oc.ad.Tape(loss):
        # A view: its rows are counted on a copy of the row.
        counted_in_memory(x, u, counters[1], loss)
    expected, plain = made(X), integers([0, 0, 0, 0])
    loss.fill(0)
    with oc.ad.Tape(loss):
        counted_in_memory(expected, made([0.3, 0.5, 0.2, 0.6]), plain, loss)
    np.testing.assert_allclose(x.grad.to_numpy(), expected.grad.to_numpy())
    np.testing.assert_array_equal(counters, [[0, 0, 0, 0], plain.to_numpy()])


def test_indices_are_checked_while_it_is_counted():
    @oc.kernel
    def past_the_end(u: VEC):
        oc.loop_config(serialize=True)
        for i in range(4):
            at = i
            while u[i] < 3.0:
                at += 200_000
                u[at] = u[i] * u[i]

    oc.init(arch=oc.cfg.arch, debug=True, log_level="error")
    u, loss = made(X), made(0.0)
    with pytest.raises(AssertionError, match=r"index \(200000,\) is out of bounds of `u`"), oc.ad.Tape(loss):
        past_the_end(u)
    np.testing.assert_array_equal(u.to_numpy(), X)
