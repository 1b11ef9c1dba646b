"""Kernels that overwrite what their derivatives need, and kernels that store where no gradients are."""

import re

import numpy as np
import pytest
from gradient_values import INTS, SCALAR, VEC, X, differences, integers, made

import octants as oc

Y = [0.5, 1.5, 0.8, 1.2]


@oc.kernel
def weighted(x: VEC, loss: SCALAR):
    for i in x:
        loss[None] += x[i] * (i + 1)


@oc.kernel
def scaled(x: VEC, y: VEC, n: INTS):
    for i in x:
        x[i] = x[i] * 2.0


@oc.kernel
def squared(x: VEC, y: VEC, n: INTS):
    for i in x:
        x[i] = x[i] * x[i] * y[i]


@oc.kernel
def steps_in_place(x: VEC, y: VEC, n: INTS):
    for i in x:
        for k in range(n[i]):
            x[i] = oc.sin(x[i]) * y[i] + y[(i + k) % 4]


@oc.kernel
def added_after_a_read(x: VEC, y: VEC, n: INTS):
    for i in x:
        v = oc.sin(x[i])
        x[i] += v * y[i]


@oc.kernel
def overwritten_by_a_later_loop(x: VEC, y: VEC, n: INTS):
    for i in x:
        y[i] = x[i] * x[i]
    for i in x:
        x[i] = y[i] * y[i]


@oc.kernel
def handed_along_a_serial_loop(x: VEC, y: VEC, n: INTS):
    oc.loop_config(serialize=True)
    for i in range(3):
        x[i + 1] = x[i] * x[i + 1] + y[i]


@oc.kernel
def nested_loops_in_place(x: VEC, y: VEC, n: INTS):
    for i in x:
        for a in range(2):
            y[i] *= 0.5 + x[i]
            for b in range(n[i] + a):
                if b % 2 == 0:
                    x[i] = x[i] * y[i]
                else:
                    x[i] = oc.exp(-x[i]) + y[i]


@oc.kernel
def statements_outside_of_loops(x: VEC, y: VEC, n: INTS):
    x[0] = x[0] * x[1]
    x[1] = oc.sin(x[0]) * x[1]
    for i in y:
        y[i] = y[i] * x[0] * y[i]
    x[0] = y[2] * x[0]


@oc.kernel
def bound_increased_after_the_loop(x: VEC, y: VEC, n: INTS):
    for i in x:
        v = x[i]
        for _ in range(n[i]):
            v = oc.sin(v) * y[i]
        y[i] = v
        n[i] += 1


@oc.kernel
def bound_overwritten_by_a_later_task(x: VEC, y: VEC, n: INTS):
    for i in x:
        v = x[i]
        for _ in range(n[i]):
            v = oc.sin(v) + 0.1
        y[i] = v * y[i]
    for i in x:
        n[i] = 9


@oc.kernel
def in_place_by_a_list(x: VEC, y: VEC, n: INTS):
    for i in x:
        x[n[i]] = x[n[i]] * x[n[i]]
        y[i] = x[n[i]] * y[i]


@oc.kernel
def loops_in_place_in_one_iteration(x: VEC, y: VEC, n: INTS):
    for _ in range(1):
        for i in range(1, 4):
            x[i] = x[i - 1] * x[i]
        for i in range(4):
            y[i] = y[i] * x[i] * x[3 - i]


KEPT = [
    (squared, 8 * 4),
    (steps_in_place, 3 * 8 * 4),
    (added_after_a_read, 8 * 4),
    (overwritten_by_a_later_loop, 8 * 4),
    (handed_along_a_serial_loop, 8 * 3),
    (nested_loops_in_place, None),
    (statements_outside_of_loops, None),
    (bound_increased_after_the_loop, None),
    (bound_overwritten_by_a_later_task, None),
    (in_place_by_a_list, 2 * 8 * 4),
    (loops_in_place_in_one_iteration, None),
]
COUNTS = [0, 1, 3, 2]


def loss_of(kernel, x, y):
    a, b, loss = made(x), made(y), made(0.0)
    kernel(a, b, integers(COUNTS))
    weighted(a, loss)
    weighted(b, loss)
    return float(loss.to_numpy())


@pytest.mark.parametrize(("kernel", "kept"), [(scaled, 0), *KEPT], ids=lambda one: getattr(one, "__name__", ""))
def test_a_tape_keeps_what_is_overwritten(arch, kernel, kept):
    x, y, loss = made(X), made(Y), made(0.0)
    with oc.ad.Tape(loss) as tape:
        kernel(x, y, integers(COUNTS))
        weighted(x, loss)
        weighted(y, loss)
    found = np.concatenate([x.grad.to_numpy(), y.grad.to_numpy()])
    expected = differences(lambda both: loss_of(kernel, both[:4], both[4:]), X + Y)
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-7)
    if kept is not None:
        assert tape.kept_bytes == kept


@pytest.mark.parametrize("kernel", [kernel for kernel, _ in KEPT], ids=lambda one: one.__name__)
def test_without_a_tape_it_is_refused(kernel):
    with pytest.raises(oc.OctantsCompilationError, match=r"\[OC1101\](.|\n)*overwritten here(.|\n)*oc\.ad\.Tape"):
        kernel.grad(made(X), made(Y), integers(COUNTS))


def test_what_is_overwritten_behind_random_conditions_is_kept(arch):
    x, start = made([0.3, 0.9, 0.5, 1.1] * 8), np.array([0.3, 0.9, 0.5, 1.1] * 8)
    drawn, sides, loss = oc.ndarray(oc.f64, 32), oc.ndarray(oc.i32, (32, 3)), made(0.0)

    @oc.kernel
    def shaken(x: VEC, drawn: VEC, sides: oc.types.ndarray(oc.i32, 2)):
        for i in x:
            for k in range(3):
                r = oc.random(oc.f64)
                if r < 0.4:
                    x[i] = x[i] * x[i]
                    sides[i, k] = 1
                elif r < 0.8:
                    drawn[i] = r
                    x[i] = oc.sin(x[i]) * r
                    x[i] = x[i] * x[i] + 0.125
                    sides[i, k] = 2

    with oc.ad.Tape(loss):
        shaken(x, drawn, sides)
        weighted(x, loss)
    chosen, r = sides.to_numpy(), drawn.to_numpy()
    assert {0, 1, 2} == set(chosen.ravel())
    checked = 0
    for i, taken in enumerate(chosen):
        # What was drawn is known where the second side was taken once.
        if (taken == 2).sum() > 1:
            continue
        value, slope = start[i], 1.0
        for side in taken:
            if side == 1:
                value, slope = value * value, slope * 2 * value
            elif side == 2:
                inner = np.sin(value) * r[i]
                value, slope = inner * inner + 0.125, slope * 2 * inner * np.cos(value) * r[i]
        np.testing.assert_allclose([x[i], x.grad[i]], [value, slope * (i + 1)], rtol=1e-12)
        checked += 1
    assert checked > 5


def test_random_numbers_and_results_of_atomics_are_kept(arch):
    @oc.kernel
    def f(x: VEC, y: VEC, n: INTS):
        for i in x:
            at = oc.atomic_add(n[0], 1)
            r = oc.random(oc.f64)
            y[at] = x[i] * x[i] * r

    x, y, loss = made(X), made(np.zeros(4)), made(0.0)
    with oc.ad.Tape(loss):
        f(x, y, integers([0]))
        weighted(y, loss)
    # What is weighted with k + 1 lies at y[k], wherever it comes from.
    np.testing.assert_allclose(x.grad.to_numpy() @ np.array(X), 2 * y.to_numpy() @ np.arange(1, 5), rtol=1e-12)


def test_values_in_the_same_place_in_fields_and_streams(arch):
    x = oc.Vector.field(2, oc.f64, shape=(2, 3), needs_grad=True)
    loss = oc.field(oc.f64, shape=(), needs_grad=True)
    stream = oc.create_stream()

    @oc.kernel
    def f() -> oc.f64:
        for i, j in x:
            x[i, j] = x[i, j] * x[i, j].norm_sqr()
        return x[0, 0][0]

    @oc.kernel
    def total():
        for i, j in x:
            loss[None] += x[i, j].sum()

    values = np.arange(12.0).reshape(2, 3, 2) / 10 + 0.1
    x.from_numpy(values)
    with oc.ad.Tape(loss):
        assert f(qd_stream=stream) == pytest.approx((values[0, 0] * (values[0, 0] ** 2).sum())[0])
        total(qd_stream=stream)
    squares, sums = (values**2).sum(-1, keepdims=True), values.sum(-1, keepdims=True)
    np.testing.assert_allclose(x.grad.to_numpy(), squares + 2 * values * sums, rtol=1e-12)


def test_what_cannot_be_kept_is_refused():
    @oc.kernel
    def shifted(x: VEC):
        for i in range(3):
            x[i] = x[i + 1] * 2.0

    @oc.kernel
    def gathered_in_place(x: VEC, n: INTS):
        for i in x:
            x[i] = x[n[i]] * x[n[i]]

    x, loss = made(X), made(0.0)
    # A tape would not help, and the message does not say so.
    with pytest.raises(oc.OctantsCompilationError, match=r"\[OC1101\]") as told, oc.ad.Tape(loss):
        gathered_in_place(x, integers([1, 2, 3, 0]))
    assert "oc.ad.Tape" not in str(told.value)
    with pytest.raises(oc.OctantsCompilationError, match=r"\[OC1103\].*written by other iterations"):
        shifted.grad(x)
    with pytest.raises(oc.OctantsRuntimeError, match=r"\[OC1104\].*`x` and `y` share memory"), oc.ad.Tape(loss):
        squared(x, x, integers(COUNTS))


def test_members_are_called_as_the_program_writes_them():
    @oc.data_oriented
    class Model:
        def __init__(self):
            self.u = oc.field(oc.f64, 4, needs_grad=True)
            self.pairs = oc.Vector.field(2, oc.f64, 4, needs_grad=True, layout=oc.Layout.SOA)
            self.parts = [oc.field(oc.f64, 4, needs_grad=True)]
            self.bodies = oc.Struct.field({"mass": oc.f64, "size": oc.f64}, shape=4, needs_grad=True)

        @oc.kernel
        def square(self):
            for i in self.u:
                self.u[i] = self.u[i] * self.u[i]
                self.pairs[i] = self.pairs[i] * self.pairs[i]
                self.parts[0][i] = self.parts[0][i] * self.parts[0][i]
                self.bodies[i].size = self.bodies[i].size * self.bodies[i].size

    with pytest.raises(oc.OctantsCompilationError) as told:
        Model().square.grad()
    names = re.findall(r"the value of `(.*?)` that is read", str(told.value))
    assert list(dict.fromkeys(names)) == ["self.u", "self.pairs", "self.parts[0]", "self.bodies.size"]


@oc.kernel
def around_a_ring(x: VEC, n: oc.i32):
    for i in x:
        x[i] = x[i] * 2 + x[(i + 1) % x.shape[0]]


@oc.kernel
def around_a_ring_of_a_given_length(x: VEC, n: oc.i32):
    for i in range(n):
        x[i] += x[i + 1 if i + 1 < n else 0] * 0.5


@oc.kernel
def mirrored(x: VEC, n: oc.i32):
    for i in range(n):
        x[i] = x[i] + x[n - 1 - i]


@oc.kernel
def neighbours_by_a_loop(x: VEC, n: oc.i32):
    for i in range(1, n - 1):
        total = oc.f64(0.0)
        for d in range(3):
            total += x[i + d - 1]
        x[i] = total / 3


@pytest.mark.parametrize("kernel", [around_a_ring, around_a_ring_of_a_given_length, mirrored, neighbours_by_a_loop])
def test_what_iterations_surely_hand_each_other_has_no_derivative(kernel):
    x, loss = made(X), made(0.0)
    with pytest.raises(oc.OctantsCompilationError, match=r"\[OC1103\].*written by other iterations"):
        kernel.grad(x, len(X))
    with pytest.raises(oc.OctantsCompilationError, match=r"\[OC1103\].*written by other iterations"), oc.ad.Tape(loss):
        kernel(x, len(X))


def test_iterations_that_take_turns_read_their_neighbours():
    @oc.kernel
    def relax(x: VEC, colour: oc.i32):
        for i in range(1, x.shape[0] - 1):
            if i % 2 == colour:
                x[i] = 0.25 * x[i - 1] + 0.5 * x[i] + 0.25 * x[i + 1]

    @oc.kernel
    def halves(x: VEC):
        for i in range(x.shape[0] // 2):
            x[i] = x[i] + 3.0 * x[i + x.shape[0] // 2]

    values = np.arange(8.0)
    jacobian = np.eye(8)
    for step in (relax, relax, halves):
        rows = np.eye(8)
        if step is halves:
            rows[np.arange(4), np.arange(4) + 4] = 3
        else:
            colour = 0 if (jacobian == np.eye(8)).all() else 1
            for i in range(1, 7):
                if i % 2 == colour:
                    rows[i, i - 1 : i + 2] = 0.25, 0.5, 0.25
        jacobian = rows @ jacobian
    x = made(values)
    relax(x, 0)
    relax(x, 1)
    halves(x)
    np.testing.assert_allclose(x.to_numpy(), jacobian @ values, rtol=1e-6)
    seed = np.linspace(1, 2, 8).astype(x.to_numpy().dtype)
    x.grad.from_numpy(seed)
    halves.grad(x)
    relax.grad(x, 1)
    relax.grad(x, 0)
    np.testing.assert_allclose(x.grad.to_numpy(), jacobian.T @ seed, rtol=1e-6)


# ---- arrays without gradients ---------------------------------------------------------------------------------------------


@oc.kernel
def noted(x: VEC, note: VEC, loss: SCALAR):
    for i in x:
        note[i] = x[i] * x[i]
        loss[None] += note[i] * x[i]


@oc.kernel
def noted_and_read_by_another_loop(x: VEC, note: VEC, loss: SCALAR):
    for i in x:
        note[i] = x[i] * x[i]
    for i in x:
        loss[None] += note[i] * x[i]


def test_a_store_to_an_array_without_gradients_stops_nothing(arch):
    x, note, loss = made(X), made(np.zeros(4), needs_grad=False), made(0.0)
    with oc.ad.Tape(loss):
        noted(x, note, loss)
    np.testing.assert_allclose(x.grad.to_numpy(), 3 * np.array(X) ** 2)


def test_what_would_be_lost_in_an_array_without_gradients_is_refused():
    x, note, loss = made(X), made(np.zeros(4), needs_grad=False), made(0.0)
    with pytest.raises(oc.OctantsRuntimeError, match=r"\[OC1102\].*`note`"), oc.ad.Tape(loss):
        noted_and_read_by_another_loop(x, note, loss)
    text = r"\[OC1102\].*`note`.*`noted` stored there .*`weighted` reads of it as `x`"
    with pytest.raises(oc.OctantsRuntimeError, match=text), oc.ad.Tape(loss):
        noted(x, note, loss)
        weighted(note, loss)
    with oc.ad.Tape(loss):
        weighted(note, loss)
        noted(x, note, loss)
    np.testing.assert_allclose(x.grad.to_numpy(), 3 * np.array(X) ** 2)


def test_a_field_without_gradients_is_a_constant_with_a_warning(arch):
    x = oc.field(oc.f64, shape=4, needs_grad=True)
    area, loss = oc.field(oc.f64, shape=4), oc.field(oc.f64, shape=(), needs_grad=True)

    @oc.kernel
    def f():
        for i in x:
            area[i] = x[i] * x[i]
        for i in x:
            loss[None] += area[i] * x[i]

    @oc.kernel
    def g():
        for i in x:
            area[i] = x[i] * x[i]

    @oc.kernel
    def h():
        for i in x:
            loss[None] += area[i] * x[i]
            area[i] = 2.0 * x[i]

    x.from_numpy(np.array(X))
    with pytest.warns(UserWarning, match=r"\[OC1009\].*`area`"), oc.ad.Tape(loss):
        f()
    np.testing.assert_allclose(x.grad.to_numpy(), np.array(X) ** 2)
    with pytest.raises(oc.OctantsRuntimeError, match=r"\[OC1102\].*`area`"), oc.ad.Tape(loss):
        g()
    with pytest.warns(UserWarning, match=r"\[OC1009\].*`area` .*`h` stored"), oc.ad.Tape(loss):
        h()
        h()
