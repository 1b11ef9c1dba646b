"""Memory for what derivatives keep: limits, batches of iterations, and what is said of them."""

import numpy as np
import pytest
from gradient_values import INTS, VEC, X, integers, made

import octants as oc


@oc.kernel
def steps(x: VEC, y: VEC, n: INTS):
    for i in x:
        v = x[i]
        for k in range(n[i]):
            v = oc.sin(v) + x[i] * 0.5
        y[i] = v


@oc.kernel
def steps_in_two_axes(x: VEC, y: VEC, n: INTS):
    for i, j in oc.ndrange((1, 3), (2, 9)):
        v = x[i] * (j - 1)
        k = 0
        while k < n[i] + j and v < 3.0:
            v = oc.sin(v) + 0.5 * v
            k += 1
        y[j % 4] += v


@oc.kernel
def steps_into_one_sum(x: VEC, y: VEC, n: INTS):
    for i in x:
        v = x[i]
        for k in range(n[i]):
            v = oc.sin(v) * x[3]
        y[0] += v


@oc.kernel
def steps_in_order(x: VEC, y: VEC, n: INTS):
    oc.loop_config(serialize=True)
    for i in range(1, 4):
        v = x[i]
        for k in range(n[i]):
            v = oc.sin(v) + x[i] * 0.5
        y[i] = y[i - 1] + v


@oc.kernel
def steps_of_several_loops(x: VEC, y: VEC, n: INTS):
    for i in x:
        v = x[i]
        for k in range(n[i]):
            v = oc.sin(v) + x[i] * 0.5
        y[i] += v
    for i, j in oc.ndrange(2, 3):
        w = x[i]
        c = j
        for k in range(n[3]):
            c = (c + 1) % 4
            w = oc.cos(w) * x[c]
        y[j] += w


KERNELS = [steps, steps_in_two_axes, steps_into_one_sum, steps_in_order, steps_of_several_loops]


def gradient(kernel, x, n):
    x, y, n = made(x), made(np.zeros(len(x))), integers(n)
    kernel(x, y, n)
    y.grad.from_numpy(np.arange(1.0, len(x.to_numpy()) + 1))
    kernel.grad(x, y, n)
    return x.grad.to_numpy()


@pytest.mark.host_access
@pytest.mark.parametrize("kernel", KERNELS)
def test_batches_give_what_all_iterations_at_once_give(arch, kernel):
    n = [3, 0, 8, 5]
    whole = gradient(kernel, X, n)
    assert np.abs(whole).max() > 0
    # From memory for one iteration, at the most 88 bytes of reals and 44 of integers, to more than all need.
    for limit in (150, 200, 400, 10**6):
        oc.init(arch=getattr(oc, arch), tape_memory_limit=limit, log_level="error")
        np.testing.assert_allclose(gradient(kernel, X, n), whole, rtol=1e-13)


@pytest.mark.host_access
def test_many_iterations_in_few_slots(arch):
    count = 50 if arch in ("reference", "remote") else 20_011
    x, n = np.linspace(-1.0, 1.0, count), [i * 7 % 9 for i in range(count)]
    whole = gradient(steps, x, n)
    oc.init(arch=getattr(oc, arch), tape_memory_limit=37 * 8 * 8, log_level="error")
    np.testing.assert_allclose(gradient(steps, x, n), whole, rtol=1e-13)


@pytest.mark.host_access
def test_a_limit_below_one_iteration_says_what_is_needed(arch):
    oc.init(arch=getattr(oc, arch), tape_memory_limit=799, log_level="error")
    with pytest.raises(oc.OctantsRuntimeError, match=r"\[OC1110\].*keeps 800 bytes.*limit for all is 799"):
        gradient(steps, X, [1, 100, 2, 3])
    # The session is as usable as before.
    assert np.abs(gradient(steps, X, [1, 99, 2, 3])).max() > 0
    # What keeps nothing needs nothing.
    oc.init(arch=getattr(oc, arch), tape_memory_limit=0, log_level="error")
    np.testing.assert_array_equal(gradient(steps, X, [0, 0, 0, 0]), np.arange(1.0, 5.0))


@pytest.mark.host_access
def test_debug_mode_has_memory_for_tapes(arch):
    whole = gradient(steps, X, [3, 0, 8, 5])
    oc.init(arch=getattr(oc, arch), debug=True, log_level="error")
    np.testing.assert_allclose(gradient(steps, X, [3, 0, 8, 5]), whole, rtol=1e-12)


@pytest.mark.no_device
def test_wrong_limits():
    for wrong in (-1, "much", 1.5):
        with pytest.raises((TypeError, ValueError)):
            oc.init(arch=oc.cpu, tape_memory_limit=wrong)
