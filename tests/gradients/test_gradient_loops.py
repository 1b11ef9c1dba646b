"""Situations of loops and bounds that derivatives must be right in, each against differences, or refused."""

import numpy as np
import pytest
from gradient_values import INTS, VEC, X, differences, integers, made

import octants as oc

I2 = oc.types.ndarray(dtype=oc.i32, ndim=2)


def derived(kernel, bounds):
    """The derivatives of a weighted sum of the results."""
    x, y, rest = made(X), made(np.zeros(4)), [integers(one) for one in bounds]
    kernel(x, y, *rest)
    y.grad.from_numpy(np.arange(1.0, 5.0))
    kernel.grad(x, y, *rest)
    return x.grad.to_numpy()


def expected(kernel, bounds):
    """The same by differences."""

    def value(x):
        y = made(np.zeros(4))
        kernel(made(x), y, *(integers(one) for one in bounds))
        return y.to_numpy() @ np.arange(1, 5)

    return differences(value, X)


@oc.kernel
def bound_at_a_carried_index(x: VEC, y: VEC, n: INTS):
    for i in x:
        v = x[i]
        c = 0
        for a in range(3):
            c = (c * 2 + 1) % 4
            for b in range(n[c]):
                v = oc.sin(v) + x[i]
        y[i] = v


@oc.kernel
def running_position_selects_bounds(x: VEC, y: VEC, n: INTS):
    for i in x:
        v = x[i]
        k = 0
        for a in range(2):
            for b in range(n[k]):
                k += 1
                for c in range(n[k]):
                    v = oc.sin(v) * x[i] + 0.1
        y[i] = v


@oc.kernel
def bounds_of_enclosing_indices(x: VEC, y: VEC):
    for i in x:
        v = x[i]
        for j in range(i):
            for l in range(j + 1):
                v = v * x[l] + oc.cos(v)
        y[i] = v


@oc.kernel
def bounds_of_an_array_of_two_axes(x: VEC, y: VEC, n: I2):
    for i in x:
        v = x[i]
        for j in range(n.shape[1]):
            for l in range(n[i, j]):
                v = oc.sin(v) + x[j % 4]
        y[i] = v


@oc.kernel
def negative_starts(x: VEC, y: VEC, a: INTS, b: INTS):
    for i in x:
        v = x[i]
        for l in range(b[i], a[i]):
            v = oc.sin(v) + l * 0.1
        y[i] = v


@oc.kernel
def arithmetic_on_bounds(x: VEC, y: VEC, a: INTS, b: INTS):
    for i in x:
        v = x[i]
        for l in range(oc.min(a[i] * b[i], 7) // 2 + abs(b[i]) % 3 + (1 << a[i])):
            v = oc.sin(v) + 0.1
        y[i] = v


@oc.kernel
def bound_from_a_real(x: VEC, y: VEC):
    for i in x:
        v = x[i]
        for l in range(int(x[i] * 10.05)):
            v = oc.sin(v) + 0.1
        y[i] = v


@oc.kernel
def bound_written_before_the_loop(x: VEC, y: VEC, n: INTS):
    for i in x:
        n[i] = i + 2
        v = x[i]
        for l in range(n[i]):
            v = oc.sin(v) + 0.1
        y[i] = v


@oc.kernel
def bound_increased_before_the_loop(x: VEC, y: VEC, n: INTS):
    for i in x:
        n[i] += 1
        v = x[i]
        for l in range(n[i]):
            v = oc.sin(v) + 0.1
        y[i] = v


@oc.kernel
def bound_overwritten_by_a_later_task(x: VEC, y: VEC, n: INTS):
    for i in x:
        n[i] = i
    for i in x:
        v = x[i]
        for l in range(n[i]):
            v = oc.sin(v) + 0.1
        y[i] = v
    for i in x:
        n[i] = 9


@oc.kernel
def bound_from_an_atomic(x: VEC, y: VEC, n: INTS):
    for i in x:
        c = oc.atomic_add(n[0], 1)
        v = x[i]
        for l in range(c):
            v = oc.sin(v) + 0.1
        y[i] = v


@oc.kernel
def nest_with_bounds_of_an_array(x: VEC, y: VEC, n: INTS):
    for i in x:
        v, w = x[i], 0.3 * x[i]
        for _ in range(n[i]):
            for k in range(-1, n[(i + 1) % 4]):
                a = oc.sin(x[(k + 4) % 4])
                for l in range(1, n[(i + 2) % 4]):
                    v = oc.sin(v) * 0.9 + a * w
                    w = oc.cos(v * w) + 0.01 * k * l
        y[i] = v + w


@oc.kernel
def nest_whose_results_are_needed(x: VEC, y: VEC, n: INTS):
    for i in x:
        v, w = x[i], 0.3 * x[i]
        c = 0
        for _ in range(n[0]):
            for _ in range(n[1]):
                for _ in range(n[2]):
                    for _ in range(n[3]):
                        v = oc.exp(0.1 * oc.sin(v)) * w
                        w = oc.cos(v) + 0.1 * c
                        c += 1
        y[i] = v * w + oc.sin(v) * c


@oc.kernel
def nest_in_a_loop_between_others(x: VEC, y: VEC, n: INTS):
    for i in x:
        v, w = x[i], 0.3 * x[i]
        for _ in range(n[1]):
            for _ in range(n[0]):
                for _ in range(n[2]):
                    for _ in range(n[3]):
                        v = oc.sin(v) * oc.cos(w)
                        w = oc.exp(0.1 * v) * w
            for _ in range(n[2]):
                v = oc.sin(v) * w
            w = w * v
        y[i] = v


@oc.kernel
def continue_in_a_task(x: VEC, y: VEC):
    for i in x:
        v = x[i]
        if x[i] > 1.0:
            v = v * v
            y[i] = v
            continue
        y[i] = oc.sin(v)


@oc.kernel
def carried_minimum(x: VEC, y: VEC):
    for i in x:
        v = x[i]
        for l in range(4):
            v = oc.min(v * 1.3, x[l] + 0.2)
        y[i] = v


@oc.kernel
def atomic_minimum_and_maximum(x: VEC, y: VEC):
    for i in x:
        oc.atomic_max(y[0], x[i])
        oc.atomic_min(y[1], -x[i])


@oc.kernel
def element_stored_and_read_again(x: VEC, y: VEC):
    for i in x:
        y[i] = x[i]
        y[i] = y[i] * y[i]


@oc.kernel
def element_read_and_overwritten(x: VEC, y: VEC):
    for i in x:
        if x[i] > 0.0:
            y[i] = x[i]
        y[i] = y[i] * y[i]


RIGHT = [
    (bound_at_a_carried_index, ([1, 2, 0, 3],)),
    (running_position_selects_bounds, ([2, 1, 3, 0, 2, 2, 1, 1],)),
    (bounds_of_enclosing_indices, ()),
    (bounds_of_an_array_of_two_axes, (np.arange(12).reshape(4, 3) % 5,)),
    (
        negative_starts,
        (
            [1, 2, 3, -5],
            [-3, -1, 2, 0],
        ),
    ),
    (
        arithmetic_on_bounds,
        (
            [1, 2, 3, 1],
            [3, 1, 2, 0],
        ),
    ),
    (nest_with_bounds_of_an_array, ([2, 3, 2, 3],)),
    (nest_with_bounds_of_an_array, ([0, 2, 4, 1],)),
    (nest_with_bounds_of_an_array, ([3, -1, 2, 2],)),
    (nest_whose_results_are_needed, ([2, 3, 2, 2],)),
    (nest_whose_results_are_needed, ([2, 3, 0, 2],)),
    (nest_in_a_loop_between_others, ([2, 3, 2, 2],)),
    (nest_in_a_loop_between_others, ([0, 2, 2, 1],)),
    (bound_from_a_real, ()),
    (bound_written_before_the_loop, ([0] * 4,)),
    (bound_increased_before_the_loop, ([0, 1, 2, 3],)),
    (continue_in_a_task, ()),
    (carried_minimum, ()),
    (atomic_minimum_and_maximum, ()),
    (element_stored_and_read_again, ()),
]
REFUSED = [
    (*(bound_overwritten_by_a_later_task, ([0] * 4,)), "OC1101"),
    (*(bound_from_an_atomic, ([0] * 4,)), "OC1103"),
    (*(element_read_and_overwritten, ()), "OC1101"),
]


@pytest.mark.parametrize(("kernel", "bounds"), RIGHT, ids=lambda one: getattr(one, "__name__", ""))
def test_derivative_is_right(arch, kernel, bounds):
    np.testing.assert_allclose(derived(kernel, bounds), expected(kernel, bounds), rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize(("kernel", "bounds", "code"), REFUSED, ids=lambda one: getattr(one, "__name__", ""))
def test_derivative_is_refused(arch, kernel, bounds, code):
    with pytest.raises(oc.OctantsCompilationError, match=rf"\[{code}\]"):
        derived(kernel, bounds)


def test_the_body_of_a_nest_is_not_copied_for_each_level(arch):
    """Its three loops stand once in the forward sweep that runs again, and once in the backward sweep; GPUs have one more for the sizes of tapes. Copies for each level would be nine."""
    x, y, n = made(X), made(np.zeros(4)), integers([2, 3, 2, 3])
    nest_with_bounds_of_an_array(x, y, n)
    nest_with_bounds_of_an_array.grad(x, y, n)
    text = nest_with_bounds_of_an_array.dump("ir", grad=True)
    assert nest_with_bounds_of_an_array.dump("ir").count(" for ") == 3
    assert 6 <= text.count(" for ") <= 7


@oc.kernel
def counted(x: VEC, y: VEC, n: oc.i32):
    for i in x:
        v = x[i]
        for _ in range(n):
            v = oc.sin(v) * 0.5 + 0.5 * x[i]
        y[i] = v


def test_counts_of_one_kernel_in_any_order():
    for n in (1, 31, 32, 33, 255, 256, 257, 510, 514, 20, 0, 3):
        x, y = made(X), made(np.zeros(4))
        counted(x, y, n)
        y.grad.fill(1.0)
        counted.grad(x, y, n)
        begin = np.array(X)
        value, slope = begin, np.ones(4)
        for _ in range(n):
            slope = np.cos(value) * 0.5 * slope + 0.5
            value = np.sin(value) * 0.5 + 0.5 * begin
        np.testing.assert_allclose(x.grad.to_numpy(), slope, rtol=1e-12)
