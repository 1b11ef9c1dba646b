"""Kernels that read and write elements of one array, which only bounds, strides or the arguments of a launch tell apart.

Law: a gradient is right or refused, and refused only where elements of different iterations may be one.
"""

import numpy as np
import pytest
from gradient_values import SCALAR, VEC, made

import octants as oc

GRID = oc.types.ndarray(dtype=oc.f64, ndim=2)


@oc.kernel
def weighted(x: VEC, loss: SCALAR):
    for i in x:
        loss[None] += x[i] * (i + 1)


@oc.kernel
def weighted_grid(x: GRID, loss: SCALAR):
    for i, j in x:
        loss[None] += x[i, j] * (7 * i + j * j + 1)


@oc.kernel
def row_from_row(x: GRID, a: oc.i32, b: oc.i32):
    for i in range(x.shape[1] - 1):
        x[b, i] = oc.sin(x[a, i + 1]) * x[a, i]


@oc.kernel
def row_doubled(x: GRID, a: oc.i32, b: oc.i32):
    for i in range(x.shape[1] - 1):
        x[b, i] = 2.0 * x[a, i + 1]


@oc.kernel
def odd_from_even(x: VEC):
    for i in range(x.shape[0] // 2 - 1):
        x[2 * i + 1] = oc.sin(x[2 * i] * x[2 * i + 2])


@oc.kernel
def even_from_odd(x: VEC):
    for i in range(1, x.shape[0] // 2):
        x[2 * i] = oc.sin(x[2 * i + 1]) * x[2 * i] * x[2 * i - 1]


@oc.kernel
def coloured(x: VEC, colour: oc.i32):
    for i in range(1, x.shape[0] - 1):
        if i % 2 == colour:
            x[i] = oc.sin(x[i - 1]) * x[i + 1]


@oc.kernel
def coloured_grid(x: GRID, colour: oc.i32):
    for i, j in oc.ndrange((1, x.shape[0] - 1), (1, x.shape[1] - 1)):
        if (i + j) % 2 == colour:
            x[i, j] = oc.sin(x[i - 1, j]) * x[i + 1, j] + x[i, j - 1] * x[i, j + 1]


@oc.kernel
def reversed_in_place(x: VEC):
    for i in range(x.shape[0] // 2):
        last = x.shape[0] - 1 - i
        first = x[i]
        x[i] = oc.sin(x[last])
        x[last] = first * first


@oc.kernel
def transposed_by_a_condition(x: GRID):
    for i, j in oc.ndrange(x.shape[0], x.shape[1]):
        if i < j:
            above = x[i, j]
            x[i, j] = oc.sin(x[j, i])
            x[j, i] = above * above


@oc.kernel
def transposed_by_a_loop(x: GRID):
    for i in range(x.shape[0]):
        for j in range(i):
            below = x[i, j]
            x[i, j] = oc.sin(x[j, i])
            x[j, i] = below * below


@oc.kernel
def butterfly(x: VEC, h: oc.i32):
    for k in range(x.shape[0] // 2):
        at = k // h * (2 * h) + k % h
        a = x[at]
        b = x[at + h]
        x[at] = a * b
        x[at + h] = oc.sin(a) - b


@oc.kernel
def butterfly_of_bits(x: VEC, h: oc.i32):
    for i in range(x.shape[0]):
        if i & h == 0:
            a = x[i]
            b = x[i ^ h]
            x[i] = a * b
            x[i ^ h] = oc.sin(a) - b


@oc.kernel
def moved(x: VEC, to: oc.i32, n: oc.i32):
    for i in range(n):
        x[to + i] = oc.sin(x[i]) * x[i]


@oc.kernel
def moved_and_scaled(x: VEC, to: oc.i32, n: oc.i32):
    for i in range(n):
        x[to + i] = 3.0 * x[i]


@oc.kernel
def strided(x: VEC, stride: oc.i32, offset: oc.i32):
    for i in range(5):
        x[stride * i] = oc.sin(x[offset + i])


@oc.kernel
def strided_and_scaled(x: VEC, stride: oc.i32, offset: oc.i32):
    for i in range(5):
        x[stride * i] = 3 * x[offset + i]


@oc.kernel
def assigned_twice(x: VEC, a: oc.i32, b: oc.i32, n: oc.i32):
    for i in range(n):
        x[a + i] = 2.0 * x[12 + i]
        x[b + i] = 0.5 * x[12 + i]


@oc.data_oriented
class Steps:
    def __init__(self, x):
        self.x = x
        self.t = 0

    @oc.kernel
    def step(self):
        for i in range(self.x.shape[1] - 1):
            self.x[self.t + 1, i] = oc.sin(self.x[self.t, i + 1]) * self.x[self.t, i]


def stepped(x):
    steps = Steps(x)
    for t in range(4):
        steps.t = t
        steps.step()


def values(*shape):
    return np.random.default_rng(5).uniform(0.3, 1.2, shape)


def loss_of(program, x):
    loss = made(0.0)
    program(x)
    (weighted if len(x.shape) == 1 else weighted_grid)(x, loss)
    return loss


def check(program, start):
    x = made(start)
    loss = made(0.0)
    with oc.ad.Tape(loss) as tape:
        program(x)
        (weighted if start.ndim == 1 else weighted_grid)(x, loss)
    found = x.grad.to_numpy()
    expected = np.zeros_like(start)
    for at in np.ndindex(*start.shape):
        step = np.zeros_like(start)
        step[at] = 1e-6
        up, down = (float(loss_of(program, made(start + way * step)).to_numpy()) for way in (1, -1))
        expected[at] = (up - down) / 2e-6
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-7)
    return tape.kept_bytes


PROGRAMS = {
    "a row from another": (lambda x: row_from_row(x, 0, 1), (3, 6)),
    "a row from the next one": (lambda x: row_from_row(x, 2, 0), (3, 6)),
    "rows one after the other": (lambda x: [row_from_row(x, t, t + 1) for t in range(3)], (4, 6)),
    "a row, doubled": (lambda x: row_doubled(x, 0, 1), (3, 6)),
    "the time in a member": (stepped, (5, 6)),
    "odd elements from even ones": (odd_from_even, (10,)),
    "red and black in turns": (lambda x: [odd_from_even(x), even_from_odd(x), odd_from_even(x)], (10,)),
    "colours in turns": (lambda x: [coloured(x, k % 2) for k in range(3)], (9,)),
    "colours of a grid": (lambda x: [coloured_grid(x, k % 2) for k in range(3)], (5, 6)),
    "reversed": (reversed_in_place, (9,)),
    "transposed by a condition": (transposed_by_a_condition, (4, 4)),
    "transposed by a loop": (transposed_by_a_loop, (4, 4)),
    "butterflies": (lambda x: [butterfly(x, h) for h in (1, 2, 4)], (8,)),
    "butterflies of bits": (lambda x: [butterfly_of_bits(x, h) for h in (1, 2, 4, 0)], (8,)),
    "butterflies of two bits": (lambda x: [butterfly_of_bits(x, h) for h in (3, 5)], (8,)),
    "moved away": (lambda x: moved(x, 5, 5), (12,)),
    "moved nowhere": (lambda x: moved(x, 0, 5), (12,)),
    "strided": (lambda x: [strided(x, 1, 0), strided(x, 1, 5), strided(x, 3, 13)], (18,)),
    "strided, scaled": (lambda x: [strided_and_scaled(x, 1, 0), strided_and_scaled(x, 3, 13)], (18,)),
    "assigned twice": (lambda x: [assigned_twice(x, 0, 6, 5), assigned_twice(x, 3, 3, 5)], (18,)),
    "moved nowhere, on, and away": (
        lambda x: [moved(x, 0, 5), moved_and_scaled(x, 3, 3), moved(x, 6, 5)],
        (12,),
    ),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_gradient_where_elements_are_apart(arch, name):
    program, shape = PROGRAMS[name]
    check(program, values(*shape))


def test_rows_that_are_apart_are_not_kept(arch):
    assert check(lambda x: [row_from_row(x, t, t + 1) for t in range(3)], values(4, 6)) == 0
    assert check(lambda x: moved(x, 5, 5), values(12)) == 0
    # What lies between overwritten elements may be overwritten next.
    assert check(lambda x: coloured(x, 1), values(9)) > 0


def test_a_gradient_without_a_tape(arch):
    x = made(values(3, 6))
    start = x.to_numpy()
    row_from_row(x, 0, 1)
    x.grad[1, 0] = 1.0
    row_from_row.grad(x, 0, 1)
    expected = np.zeros((3, 6))
    expected[0, :2] = np.sin(start[0, 1]), np.cos(start[0, 1]) * start[0, 0]
    np.testing.assert_allclose(x.grad.to_numpy(), expected, rtol=1e-12)


REFUSED = {
    "equal rows": (lambda x: row_from_row(x, 1, 1), (3, 6), "OC1103"),
    "equal rows, doubled": (lambda x: row_doubled(x, 1, 1), (3, 6), "OC1103"),
    "onto each other": (lambda x: moved(x, 2, 5), (12,), "OC1103"),
    "strided onto each other": (lambda x: strided(x, 1, 1), (18,), "OC1103"),
    "strided onto others": (lambda x: strided(x, 2, 0), (18,), "OC1103"),
    "strided onto others, scaled": (lambda x: strided_and_scaled(x, 3, 2), (18,), "OC1103"),
    "onto each other, scaled": (lambda x: moved_and_scaled(x, 2, 5), (12,), "OC1103"),
}


def test_launches_whose_iterations_assign_to_one_element_are_refused(arch):
    x, loss = made(values(18)), made(0.0)
    pattern = r"\[OC1103\].*overwrite each other's value of `x`"
    with pytest.raises(oc.OctantsCompilationError, match=pattern), oc.ad.Tape(loss):
        assigned_twice(x, 0, 2, 5)


@pytest.mark.parametrize("name", REFUSED)
def test_a_launch_whose_iterations_meet_is_refused_with_the_line(arch, name):
    program, shape, code = REFUSED[name]
    x, loss = made(values(*shape)), made(0.0)
    pattern = rf"\[{code}\].*`x` that is read here(.|\n)*test_gradient_order\.py"
    with pytest.raises(oc.OctantsCompilationError, match=pattern), oc.ad.Tape(loss):
        program(x)


def test_each_launch_decides_for_itself(arch):
    x, loss = made(values(4, 6)), made(0.0)
    for kernel in (row_from_row, row_doubled):
        kernel.grad(x, 0, 1)
        with pytest.raises(oc.OctantsCompilationError, match=r"\[OC1103\]"):
            kernel.grad(x, 1, 1)
        with pytest.raises(oc.OctantsCompilationError, match=r"\[OC1103\]"), oc.ad.Tape(loss):
            kernel(x, 2, 2)
        kernel.grad(x, 1, 0)
    check(lambda x: [row_from_row(x, 2, 1), row_doubled(x, 1, 0)], values(3, 6))


def test_a_row_that_is_written_next_is_told_as_another_array_is():
    x, loss = made(values(3, 6)), made(0.0)
    with pytest.raises(oc.OctantsRuntimeError, match=r"\[OC1105\].*`x`"), oc.ad.Tape(loss):
        row_from_row(x, 0, 1)
        row_from_row(x, 1, 0)


@oc.kernel
def greatest_of_thirds(x: VEC, loss: SCALAR):
    v = oc.Vector([0.0, -1.0, 0.5], oc.f64)
    for i in x:
        oc.atomic_max(v[i % 3], x[i] * x[i])
    loss[None] += v[0] * v[1] + v[2]


@oc.kernel
def least_and_greatest(x: VEC, loss: SCALAR):
    v = oc.Vector([0.1, 2.0, 0.5], oc.f64)
    w = oc.Vector([9.0, 9.0, 9.0], oc.f64)
    for i in x:
        for k in range(3):
            oc.atomic_max(v[k], x[i] * (k + 1))
            oc.atomic_min(w[2 - k], x[i] * (k + 2))
    loss[None] += v[0] * v[1] + v[2] * w[0] + w[1] * w[2]


@pytest.mark.parametrize("kernel", [greatest_of_thirds, least_and_greatest])
def test_extremes_in_a_vector_that_iterations_share(arch, kernel):
    start = values(7)
    x, loss = made(start), made(0.0)
    with oc.ad.Tape(loss):
        kernel(x, loss)

    def value(at):
        total = made(0.0)
        kernel(made(at), total)
        return float(total.to_numpy())

    steps = 1e-6 * np.eye(7)
    expected = [(value(start + step) - value(start - step)) / 2e-6 for step in steps]
    np.testing.assert_allclose(x.grad.to_numpy(), expected, rtol=1e-5, atol=1e-7)


@oc.kernel
def divided_in_two_types(x: GRID, base: oc.i32, d: oc.i32, n: oc.i32):
    oc.loop_config(serialize=True)
    for k in range(n):
        wide = (oc.cast(k + base, oc.i64) * 4) // 3
        narrow = ((k + base) * 4) // 3
        zero = oc.cast(oc.min(wide - 715827882, oc.cast(0, oc.i64)), oc.i32)
        x[zero, narrow + d] = oc.sin(x[0, k + 2]) * 1.25


def test_a_sum_that_wraps_has_another_quotient_than_in_a_wider_type(arch):
    x = oc.ndarray(oc.f64, (1, 48), needs_grad=True)
    x.fill(0.5)
    # Elements 2 and more are both read and written.
    with pytest.raises(oc.OctantsCompilationError, match="OC1101"):
        divided_in_two_types(x, 1 << 29, 715827884, 12)
        divided_in_two_types.grad(x, 1 << 29, 715827884, 12)
