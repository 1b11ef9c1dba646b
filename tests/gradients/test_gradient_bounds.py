"""What loops keep for their derivatives, in bytes, on every device; and bounds at the ends of what there is: huge, deep, far from their arrays' ends, changed
between launches. Values of the same kernels are tested beside them."""

import re
from pathlib import Path

import numpy as np
import pytest
from gradient_values import INTS, VEC, X, integers, made
from test_gradient_loops import (
    arithmetic_on_bounds,
    bound_at_a_carried_index,
    bound_from_a_real,
    bound_increased_before_the_loop,
    bound_written_before_the_loop,
    bounds_of_an_array_of_two_axes,
    bounds_of_enclosing_indices,
    counted,
    negative_starts,
    running_position_selects_bounds,
)
from test_gradient_situations import (
    assigned_several_times,
    bound_of_a_shape,
    bound_of_a_thousand,
    difference_of_arrays_of_other_lengths,
    handed_on_unchanged,
    index_kept_in_a_variable,
    loops_over_two_arrays,
    product_domain,
    rows_some_of_them_backward,
    siblings,
    triple_nest,
)

import octants as oc

REAL = 8

#: By the number of the situation in docs/reference/gradients.md: a kernel, its bounds, and what an iteration of each of its parallel loops keeps at most, the
#: last loop first.
KEPT = {
    1: (bound_of_a_thousand, ([1000],), [1000 * REAL]),
    2: (triple_nest, ([2, 3, 2],), [(2 + 3 + 2) * REAL]),
    3: (product_domain, ([3, 4],), [3 * REAL]),
    4: (bound_at_a_carried_index, ([1, 2, 0, 3],), [3 * (REAL + 4) + 3 * REAL]),
    5: (running_position_selects_bounds, ([2, 1, 3, 0, 2, 2, 1, 1],), [2 * (REAL + 4) + 3 * (REAL + 4) + 2 * REAL]),
    6: (bounds_of_enclosing_indices, (), [(3 + 3) * REAL]),
    7: (index_kept_in_a_variable, ([2, 0, 1, 3],), [(3 + 3) * REAL]),
    8: (bound_of_a_shape, (np.zeros((2, 5)),), [(2 + 5) * REAL]),
    9: (bounds_of_an_array_of_two_axes, (np.arange(12).reshape(4, 3),), [(3 + 11) * REAL]),
    10: (rows_some_of_them_backward, ([0, 3, 1, 4, 4],), [3 * REAL]),
    11: (negative_starts, ([1, 2, 3, -5], [-3, -1, 2, 0]), [4 * REAL]),
    12: (difference_of_arrays_of_other_lengths, ([3, 4, 7, 9], [1, 2]), [2 * REAL]),
    13: (loops_over_two_arrays, ([1, 0, 2, 1, 1, 9], [2, 1]), [2 * REAL, 9 * REAL]),
    15: (arithmetic_on_bounds, ([1, 2, 3, 1], [3, 1, 2, 0]), [(3 + 2 + 8) * REAL]),
    16: (bound_from_a_real, (), [11 * REAL]),
    17: (siblings, ([0, 1, 2, 3],), [(3 + 2) * REAL]),
    19: (assigned_several_times, ([0, 1, 2, 5],), [5 * REAL]),
    20: (handed_on_unchanged, ([0, 1, 2, 3],), [(3 + 3) * REAL]),
    39: (bound_written_before_the_loop, ([0] * 4,), [5 * REAL]),
    40: (bound_increased_before_the_loop, ([0, 1, 2, 3],), [4 * REAL]),
}


def kept(kernel, *arguments):
    """What an iteration of each parallel loop keeps, in bytes."""
    return [one["bytes_per_iteration"] for one in kernel.grad_plan(*arguments)["parallel_loops"]]


@pytest.mark.host_access
@pytest.mark.parametrize("number", KEPT)
def test_tape_bytes(arch, number):
    kernel, bounds, wanted = KEPT[number]
    given = [made(X), made(np.zeros(4)), *(integers(one) for one in bounds)]
    kernel(*given)
    assert kept(kernel, *given) == wanted


def gradient(kernel, x, *rest):
    """By `kernel.grad`, for weights 1, 2, …"""
    x, y = made(x), made(np.zeros(len(x)))
    kernel(x, y, *rest)
    y.grad.from_numpy(np.arange(1.0, len(x.to_numpy()) + 1))
    kernel.grad(x, y, *rest)
    return x.grad.to_numpy()


def steps(x, n):
    """What `gradient` is for the kernels of this file that take so many steps for each element."""
    slopes = np.ones(len(x))
    for i, count in enumerate(n):
        v = x[i]
        for _ in range(count):
            slopes[i] *= np.cos(v)
            v = np.sin(v) + 0.125
    return slopes * np.arange(1.0, len(x) + 1)


@oc.kernel
def given_by_a_view(x: VEC, y: VEC, n: oc.BufferView):
    for i in x:
        v = x[i]
        for _ in range(n[i]):
            v = oc.sin(v) + 0.125
        y[i] = v


@oc.kernel
def given_by_two_views(x: VEC, y: VEC, a: oc.BufferView, b: oc.BufferView):
    for i in x:
        v = x[i]
        if i < a.shape[0] and i < b.shape[0]:
            for _ in range(a[i] - b[i]):
                v = oc.sin(v) + 0.125
        y[i] = v


@oc.kernel
def given_by_a_tensor(x: VEC, y: VEC, n: oc.Tensor):
    for i in x:
        v = x[i]
        for j in range(n.shape[1]):
            for _ in range(n[i, j]):
                v = oc.sin(v) + 0.125
        y[i] = v


def poisoned(values):
    """A view between numbers that would make loops run for a billion steps, and arrays be read far outside."""
    whole = integers([10**9] * 5 + list(values) + [10**9] * 5)
    return whole[5 : 5 + len(values)]


@pytest.mark.host_access
def test_bounds_in_views_between_other_numbers(arch):
    n = [3, 0, 7, 2]
    np.testing.assert_allclose(gradient(given_by_a_view, X, poisoned(n)), steps(X, n), rtol=1e-12)
    assert kept(given_by_a_view, made(X), made(np.zeros(4)), poisoned(n)) == [7 * REAL]
    # The longer one first, and last; its peak before and after the shorter one's end.
    for a, b in (([9, 4, 8, 30], [1, 2]), ([9, 4], [1, 2, 0, -40]), ([1, 2, 12, 3], [0, 0, 1]), ([5], [-2, 1, 0, 0])):
        trips = [max(0, p - q) for p, q in zip(a, b, strict=False)] + [0] * (4 - min(len(a), len(b)))
        given = poisoned(a), poisoned(b)
        np.testing.assert_allclose(gradient(given_by_two_views, X, *given), steps(X, trips), rtol=1e-12)
        assert kept(given_by_two_views, made(X), made(np.zeros(4)), *given) == [max(trips) * REAL]


@pytest.mark.host_access
@pytest.mark.parametrize("layout", [(0, 1), (1, 0)])
def test_bounds_in_tensors_of_any_layout(arch, layout):
    numbers = np.arange(12, dtype=np.int32).reshape(4, 3)
    for backend in (oc.Backend.NDARRAY, oc.Backend.FIELD):
        n = oc.tensor(oc.i32, (4, 3), backend=backend, layout=layout)
        n.from_numpy(numbers)
        np.testing.assert_allclose(gradient(given_by_a_tensor, X, n), steps(X, numbers.sum(1)), rtol=1e-12)
        assert kept(given_by_a_tensor, made(X), made(np.zeros(4)), n) == [(3 + 11) * REAL]


# ---- sizes ----------------------------------------------------------------------------------------------------------------


def test_more_iterations_than_a_single_counts_exactly():
    """2²⁴ is where the peer stops."""
    count = (1 << 24) + 37
    A = oc.types.ndarray(dtype=oc.f32, ndim=1)

    @oc.kernel
    def f(x: A, y: A, n: INTS):
        for i in x:
            v = x[i]
            for _ in range(n[i % 3]):
                v = v * v
            y[i] = v

    x, y = (oc.ndarray(oc.f32, count, needs_grad=True) for _ in range(2))
    n = integers([0, 1, 2])
    x.fill(1.5)
    y.grad.fill(1.0)
    plan = f.grad_plan(x, y, n)["parallel_loops"]
    assert [(one["iterations"], one["bytes_per_iteration"]) for one in plan] == [(count, 2 * 4)]
    f(x, y, n)
    f.grad(x, y, n)
    found = x.grad.to_numpy()
    for rest, slope in enumerate((1.0, 3.0, 4 * 1.5**3)):
        assert (found[rest::3] == np.float32(slope)).all()


@oc.kernel
def twelve_levels(x: VEC, y: VEC, n: INTS):
    for i in x:
        v = x[i]
        for _ in range(n[0]):
            for _ in range(n[1]):
                for _ in range(n[2]):
                    for _ in range(n[3]):
                        for _ in range(n[4]):
                            for _ in range(n[5]):
                                for _ in range(n[6]):
                                    for _ in range(n[7]):
                                        for _ in range(n[8]):
                                            for _ in range(n[9]):
                                                for _ in range(n[10]):
                                                    for _ in range(n[11]):
                                                        v = oc.sin(v) + 0.125
        y[i] = v


@oc.kernel
def bound_of_a_hundred_reads(x: VEC, y: VEC, n: INTS):
    for i in x:
        v = x[i]
        total = i
        for k in oc.static(range(100)):
            total += n[k]
        for _ in range(total):
            v = oc.sin(v) + 0.125
        y[i] = v


@pytest.mark.host_access
def test_deep_nests_and_long_bounds(arch):
    levels = [1, 2, 1, 1, 2, 1, 2, 1, 1, 2, 1, 1]
    np.testing.assert_allclose(gradient(twelve_levels, X, integers(levels)), steps(X, [16] * 4), rtol=1e-12)
    # One more for what runs now.
    assert kept(twelve_levels, made(X), made(np.zeros(4)), integers(levels)) == [(sum(levels) + 1) * REAL]
    oc.init(arch=getattr(oc, arch), unrolling_limit=0, log_level="error")
    reads = [k % 3 - 1 for k in range(100)]
    assert sum(reads) == -1
    np.testing.assert_allclose(
        gradient(bound_of_a_hundred_reads, X, integers(reads)), steps(X, [0, 0, 1, 2]), rtol=1e-12
    )
    assert kept(bound_of_a_hundred_reads, made(X), made(np.zeros(4)), integers(reads)) == [2 * REAL]


@pytest.mark.host_access
def test_demands_beyond_32_bits_are_counted_and_refused(arch):
    steps_of_one = (1 << 31) - 1
    oc.init(arch=getattr(oc, arch), tape_memory_limit=1 << 20, log_level="error")
    x, y = made(X), made(np.zeros(4))
    for refused in (counted.grad, counted.grad_plan):
        with pytest.raises(oc.OctantsRuntimeError, match=rf"\[OC1110\].*{steps_of_one * REAL} bytes"):
            refused(x, y, steps_of_one)
    y.grad.fill(1.0)
    counted.grad(x, y, 3)
    assert np.abs(x.grad.to_numpy()).min() > 0


# ---- what changes nothing -----------------------------------------------------------------------------------------------


@pytest.mark.host_access
def test_threads_levels_and_the_options_of_stacks_change_nothing(arch):
    def found(**options):
        oc.init(arch=getattr(oc, arch), log_level="error", **options)
        n = integers([2, 3, 2])
        return gradient(triple_nest, X, n), kept(triple_nest, made(X), made(np.zeros(4)), n)

    values, size = found()
    for options in (
        {"cpu_max_num_threads": 1}, {"cpu_max_num_threads": 3}, {"opt_level": 0}, {"advanced_optimization": False, "cfg_optimization": False},
        {"ad_stack_size": 2}, {"default_ad_stack_size": 2}, {"ad_stack_experimental_enabled": True}, {"ad_stack_experimental_enabled": False},
    ):  # fmt: skip
        others = found(**options)
        np.testing.assert_allclose(others[0], values, rtol=1e-13, err_msg=str(options))
        assert others[1] == size, options
    assert oc.is_extension_enabled(oc.extension.adstack)


# ---- bounds that change ---------------------------------------------------------------------------------------------------


@oc.kernel
def set_bounds(n: INTS, first: oc.i32):
    for i in n:
        n[i] = first + i


@oc.kernel
def given_by_an_array(x: VEC, y: VEC, n: INTS):
    for i in x:
        v = x[i]
        for _ in range(n[i]):
            v = oc.sin(v) + 0.125
        y[i] = v


@pytest.mark.host_access
def test_bounds_that_another_kernel_writes(arch):
    """Sizes are computed after it, in the same stream, and nobody waits in between."""
    stream = oc.create_stream()
    x, y, n = made(X), made(np.zeros(4)), integers([0] * 4)
    for first in (3, 40, 0, 7):
        x.grad.fill(0)
        y.grad.from_numpy(np.arange(1.0, 5.0))
        set_bounds(n, first, qd_stream=stream)
        given_by_an_array(x, y, n, qd_stream=stream)
        given_by_an_array.grad(x, y, n, qd_stream=stream)
        stream.synchronize()
        np.testing.assert_allclose(x.grad.to_numpy(), steps(X, range(first, first + 4)), rtol=1e-12)
        assert kept(given_by_an_array, x, y, n) == [(first + 3) * REAL]


@pytest.mark.host_access
def test_bounds_in_arrays_of_numpy(arch):
    n = np.array([2, 0, 5, 1], dtype=np.int32)
    for first in (0, 3, 1):
        np.testing.assert_allclose(gradient(given_by_an_array, X, n + first), steps(X, n + first), rtol=1e-12)
    np.testing.assert_array_equal(n, [2, 0, 5, 1])
    assert kept(given_by_an_array, made(X), made(np.zeros(4)), n) == [5 * REAL]


@pytest.mark.host_devices("numpy sees this memory itself")
def test_bounds_that_are_written_through_another_name():
    n = integers([0] * 4)
    alias = n.to_numpy(copy=False)
    for numbers in ([1, 2, 3, 4], [60, 0, 1, 0], [0, 0, 0, 0]):
        alias[:] = numbers
        np.testing.assert_allclose(gradient(given_by_an_array, X, n), steps(X, numbers), rtol=1e-12)
        assert kept(given_by_an_array, made(X), made(np.zeros(4)), n) == [max(numbers) * REAL]


# ---- what runs ------------------------------------------------------------------------------------------------------------


@oc.kernel
def keeps_nothing(x: VEC, y: VEC, n: INTS):
    for i in x:
        v = x[i]
        for _ in range(n[i]):
            v = 0.5 * v + x[i]
        y[i] = v


@pytest.mark.device_memory
def test_only_gradients_that_keep_something_are_sized():
    oc.init(arch=oc.cfg.arch, kernel_profiler=True, log_level="error")
    x, y, n = made(X), made(np.zeros(4)), integers([3, 0, 8, 5])
    oc.profiler.clear_kernel_profiler_info()
    for kernel in (keeps_nothing, given_by_an_array):
        kernel(x, y, n)
        kernel.grad(x, y, n)
    oc.sync()
    sized = [f"{kernel}_grad_sizes" for kernel in ("keeps_nothing", "given_by_an_array")]
    assert [oc.profiler.query_kernel_profiler_info(name).counter for name in sized] == [0, 1]


@pytest.mark.host_access
def test_loops_of_one_kernel_share_their_memory(arch):
    """As much as the most demanding of them takes, not the sum."""
    oc.init(arch=getattr(oc, arch), tape_memory_limit=1 << 20, log_level="error")
    given = made(X), made(np.zeros(4)), integers([1, 0, 2, 1, 1, 9]), integers([2, 1])
    plan = loops_over_two_arrays.grad_plan(*given)
    sizes = [one["at_once"] * one["bytes_per_iteration"] for one in plan["parallel_loops"]]
    assert len(sizes) == 2 and plan["tape_bytes"] == max(sizes)


def test_a_refusal_names_the_variable_and_both_lines():
    @oc.kernel
    def f(x: VEC, y: VEC, n: INTS):
        for i in x:
            v = x[i]
            for _ in range(n[i]):
                v = oc.sin(v)
            y[i] = v
        for i in x:
            n[i] = 0

    with pytest.raises(oc.OctantsCompilationError) as error:
        f.grad(made(X), made(np.zeros(4)), integers([1] * 4))
    text = str(error.value)
    assert "[OC1101]" in text and "`n`" in text and "range(n[i])" in text and "n[i] = 0" in text and "help" in text


@pytest.mark.no_device
def test_the_page_of_situations_names_tests_that_exist():
    folder = Path(__file__).resolve().parents[1]
    page = (folder.parent / "docs" / "reference" / "gradients.md").read_text()
    texts = "".join(path.read_text() for path in folder.rglob("*.py"))
    told = {path.stem for path in folder.rglob("*.py")} | {"remote", "atomic_max", "atomic_min"}
    rows = [line for line in page.split("## What is missing")[0].splitlines() if line.startswith("| ")]
    names = {name for row in rows for name in re.findall(r"`([a-z]+(?:_[a-z0-9]+)+)`", row.rsplit("|", 2)[1])}
    assert len(names) > 50
    assert [name for name in sorted(names - told) if f"def {name}(" not in texts] == []
    numbers = {int(number) for number in re.findall(r"^\| (\d+)", page, re.MULTILINE)}
    assert set(KEPT) <= numbers
