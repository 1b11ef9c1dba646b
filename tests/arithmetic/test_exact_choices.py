"""The least and the greatest of a parallel loop under ``fast_math``: what flows into them has the bits that it has without, and the rest of the kernel is fast.

A derivative computes each value again and looks for the one that was chosen. With other digits it would find none, and give zeros.
"""

import re

import numpy as np
import pytest
from devices import INTERPRETED

import octants as oc

REALS = oc.types.ndarray(dtype=oc.f32, ndim=1)
LARGEST = 72
COLUMNS = 9


@oc.kernel
def beside_a_sum(x: REALS, z: REALS, y: REALS, s: REALS, n: int):
    for i in range(n):
        oc.atomic_max(y[0], x[i] * z[i] * 1.3 + x[i] * 0.7 + x[i] * x[i] * x[i])
        s[0] += x[i] * z[i] + oc.sin(x[i]) * 0.3


@oc.kernel
def roots(x: REALS, z: REALS, y: REALS, s: REALS, n: int):
    for i in range(n):
        oc.atomic_min(y[0], x[i] / oc.sqrt(z[i]) - x[i] ** 2 * 0.3 + abs(z[i] - x[i] * 0.9) / z[0])
        s[0] += x[i] / oc.sqrt(z[i])


@oc.kernel
def carried(x: REALS, z: REALS, y: REALS, s: REALS, n: int):
    for i in range(n):
        total = 0.0
        for k in range(COLUMNS):
            total += x[(i * 5 + k * 3) % n] * z[k]
        oc.atomic_max(y[0], total)
        s[0] += total


@oc.kernel
def carried_by_while(x: REALS, z: REALS, y: REALS, s: REALS, n: int):
    for i in range(n):
        value = x[i]
        while value < 2.0:
            value = value * 1.7 + z[i] * 0.1
        oc.atomic_max(y[0], value)
        s[0] += value * z[i]


@oc.kernel
def in_a_branch(x: REALS, z: REALS, y: REALS, s: REALS, n: int):
    for i in range(n):
        if x[i] * z[i] + 0.1 * x[i] > 0.5:
            oc.atomic_max(y[0], x[i] * z[i] - x[i] * 0.25 if z[i] * 3.1 - x[i] > 0.3 else x[i] * 0.3 + z[i] * z[i])
        s[0] += x[i] * x[i] + z[i]


@oc.kernel
def at_an_index(x: REALS, z: REALS, y: REALS, s: REALS, n: int):
    for i in range(n):
        j = int((x[i] * 0.7 + z[i] * 0.1) * (n - 1)) % n
        oc.atomic_max(y[j % 3], z[j] * x[i] + x[i] * 0.3)
        s[0] += z[j] * x[i] + x[i]


@oc.kernel
def assigned(x: REALS, z: REALS, y: REALS, s: REALS, n: int):
    for i in range(n):
        y[0] = max(y[0], x[i] * z[i] * 1.3 + oc.sqrt(x[i]) * 0.7)
        s[0] += x[i] * z[i] * 1.3 + oc.sqrt(x[i]) * 0.7


@oc.kernel
def variable(x: REALS, z: REALS, y: REALS, s: REALS, n: int):
    greatest = -100.0
    for i in range(n):
        greatest = max(greatest, x[i] * z[i] * 1.3 - x[i] * 0.7)
        s[0] += x[i] * z[i] + 1.0
    y[0] = greatest * 2.0


@oc.kernel
def through_memory(x: REALS, z: REALS, y: REALS, s: REALS, n: int):
    for i in range(n):
        s[1 + i] = x[i] * z[i] * 1.3 + x[i] * 0.7
    for i in range(n):
        oc.atomic_max(y[0], s[1 + i] * x[0] + z[i])


@oc.kernel
def of_rows(x: REALS, z: REALS, y: REALS, s: REALS, n: int):
    for i, k in oc.ndrange(n // 8, 8):
        oc.atomic_max(y[i], x[8 * i + k] * z[k] + x[8 * i + k] * 0.3)
        s[0] += x[i] * z[i] + x[i]


@oc.kernel
def of_functions(x: REALS, z: REALS, y: REALS, s: REALS, n: int):
    for i in range(n):
        oc.atomic_max(y[0], oc.sin(x[i]) * z[i] + oc.exp(x[i]) / z[0])
        s[0] += x[i] * z[i] + x[i]


@oc.kernel
def of_totals(x: REALS, z: REALS, y: REALS, s: REALS, n: int):
    for i in range(n):
        s[i % 3] += x[i] * z[i] + x[i]
    for i in range(3):
        oc.atomic_max(y[0], s[i] * z[i] + s[i])


KERNELS = [
    beside_a_sum,
    roots,
    carried,
    carried_by_while,
    in_a_branch,
    at_an_index,
    assigned,
    variable,
    through_memory,
    of_rows,
]
# Something flows into their choices that is not followed: they are compiled without fast math as a whole.
WHOLE = [of_functions, of_totals]


def results(arch, kernel, fast, sizes):
    """Of each size: the chosen values, the gradients."""
    oc.init(arch=getattr(oc, arch), fast_math=fast, log_level="error")
    rng = np.random.default_rng(5)
    arrays = [oc.ndarray(oc.f32, LARGEST + 8, needs_grad=True) for _ in range(4)]
    x, z, y, s = arrays
    found = []
    for n in sizes:
        for array in (x, z):
            array.from_numpy(rng.uniform(0.3, 1.4, LARGEST + 8).astype(np.float32))
            array.grad.fill(0.0)
        y.fill(100.0 if kernel is roots else -100.0)
        s.fill(0.0)
        s.grad.fill(0.0)
        y.grad.fill(1.0)
        kernel(*arrays, n)
        chosen = y.to_numpy()
        kernel.grad(*arrays, n)
        found.append((chosen, x.grad.to_numpy(), z.grad.to_numpy()))
    return found


@pytest.mark.parametrize("kernel", KERNELS + WHOLE, ids=lambda kernel: kernel.__name__)
def test_what_is_chosen_is_found_again(arch, kernel):
    sizes = (8, 9, 17) if arch in INTERPRETED else range(8, LARGEST + 1)
    fast, plain = (results(arch, kernel, fast, sizes) for fast in (True, False))
    for n, (chosen, *gradients), (expected, *expected_gradients) in zip(sizes, fast, plain, strict=True):
        # A variable's greatest one is looked for by the derivative alone; sums are taken in any order.
        if kernel not in (variable, of_totals):
            np.testing.assert_array_equal(chosen, expected, err_msg=str(n))
        for gradient, other in zip(gradients, expected_gradients, strict=True):
            assert np.count_nonzero(other) > 0
            np.testing.assert_allclose(gradient, other, rtol=2e-5, atol=1e-6, err_msg=str(n))


def dumped(kernel):
    oc.init(arch=oc.cpu, fast_math=True, log_level="error")
    arrays = [oc.ndarray(oc.f32, LARGEST + 8) for _ in range(4)]
    for array in arrays:
        array.fill(1.0)
    kernel(*arrays, LARGEST)
    return kernel.dump("llvm")


@pytest.mark.parametrize("kernel", KERNELS[:-2] + KERNELS[-1:], ids=lambda kernel: kernel.__name__)
def test_a_sum_beside_a_greatest_one_is_fast(kernel):
    assert re.search(r"= f(add|mul) (reassoc )?nsz contract", dumped(kernel))


@pytest.mark.parametrize("kernel", WHOLE, ids=lambda kernel: kernel.__name__)
def test_what_is_not_followed_turns_fast_math_off(kernel):
    assert not re.search("contract|reassoc|afn", dumped(kernel))
