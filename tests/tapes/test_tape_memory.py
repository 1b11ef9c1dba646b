"""Memory for what derivatives keep: limits, batches of iterations, and what is said of them."""

import threading
import time

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


# ---- what is said of it ---------------------------------------------------------------------------------------------------


@oc.kernel
def nest(x: VEC, y: VEC, n: oc.i32):
    for i in x:
        v = x[i]
        for k in range(n):
            for l in range(n):
                v = oc.sin(v) * 0.9 + 0.1
        y[i] = v


@oc.kernel
def gated(x: VEC, y: VEC, active: INTS):
    for i in x:
        if active[i] != 0:
            v = x[i]
            for k in range(active[i]):
                v = oc.sin(v) * 0.9 + 0.1
            y[i] = v


@oc.kernel
def linear(x: VEC, y: VEC, n: INTS):
    for i in x:
        v = x[i]
        for k in range(n[i]):
            v = v * 0.5 + k
        y[i] = v


@pytest.mark.host_access
def test_the_plan_says_how_much_is_kept(arch):
    x, y = made(X), made(np.zeros(4))
    plan = steps.grad_plan(x, y, integers([3, 0, 8, 5]))
    assert plan["derived"] == ["x", "y"]
    assert plan["read_again"] == ["x", "n"]
    (one,) = plan["kept"]
    assert one["values"] == ["f64"]
    assert one["bytes_per_iteration"] == 8
    (loop,) = plan["parallel_loops"]
    # The entries that the longest iteration needs, and no more.
    assert loop["iterations"] == 4
    assert loop["bytes_per_iteration"] == 8 * 8
    assert 1 <= loop["at_once"] <= 4
    assert plan["tape_bytes"] == loop["at_once"] * 8 * 8
    # It follows the bound both ways, and a launch whose loops run zero times keeps nothing.
    for most in (100, 7, 0, 512):
        assert steps.grad_plan(x, y, integers([0, most, 0, 0]))["parallel_loops"][0]["bytes_per_iteration"] == 8 * most
    assert steps.grad_plan(x, y, integers([0, 0, 0, 0]))["tape_bytes"] == 0
    assert linear.grad_plan(x, y, integers([9, 9, 9, 9]))["sized"] == "nothing is kept"
    assert linear.grad_plan(x, y, integers([9, 9, 9, 9]))["tape_bytes"] == 0


@pytest.mark.host_access
def test_a_nest_keeps_the_sum_and_not_the_product(arch):
    plan = nest.grad_plan(made(X), made(np.zeros(4)), 64)
    # Quadrants' stack of the inner loop has 64 * 64 slots of a value and its adjoint for each thread.
    assert plan["parallel_loops"][0]["bytes_per_iteration"] == 2 * 64 * 8
    assert 10 * plan["parallel_loops"][0]["bytes_per_iteration"] <= 64 * 64 * 16


@pytest.mark.host_access
def test_iterations_behind_a_gate_keep_nothing(arch):
    x, y = made(X), made(np.zeros(4))
    assert gated.grad_plan(x, y, integers([0, 0, 0, 0]))["tape_bytes"] == 0
    assert gated.grad_plan(x, y, integers([0, 5, 0, 0]))["parallel_loops"][0]["bytes_per_iteration"] == 5 * 8


@pytest.mark.host_access
@pytest.mark.parametrize("passing", [0, 1, 10, 4000])
def test_a_gate_costs_memory_for_those_that_pass(arch, passing):
    """Where memory is provided by the launch: those behind the gate take a column each, wherever they lie."""
    oc.init(arch=getattr(oc, arch), tape_memory_limit=2**24, log_level="error")
    active = np.zeros(4000, np.int32)
    active[np.random.default_rng(5).permutation(4000)[:passing]] = 16
    values = np.linspace(0.1, 1.0, 4000)
    x, y, gates = made(values), made(np.zeros(4000)), integers(active)
    plan = gated.grad_plan(x, y, gates)
    assert plan["tape_bytes"] == 16 * 8 * passing
    y.grad.fill(1.0)
    gated.grad(x, y, gates)
    expected, v = np.ones(4000), values
    for _ in range(16):
        expected, v = expected * 0.9 * np.cos(v), np.sin(v) * 0.9 + 0.1
    np.testing.assert_allclose(x.grad.to_numpy(), np.where(active > 0, expected, 0.0), rtol=1e-6)


@pytest.mark.no_device
def test_a_bound_that_is_written_meanwhile_is_an_error_or_has_no_effect():
    """Sized by what a bound holds, then run: what another thread writes between must not reach memory outside the tapes."""
    oc.init(arch=oc.cpu, tape_memory_limit=2**24, log_level="error")
    bounds = np.full(64, 3, np.int32)
    x, y = made(np.linspace(0.1, 1.0, 64)), made(np.zeros(64))
    done = threading.Event()

    def write():
        while not done.is_set():
            bounds[:] = 5_000
            bounds[:] = 3
            time.sleep(0)

    writer = threading.Thread(target=write)
    writer.start()
    try:
        for _ in range(20):
            try:
                steps.grad(x, y, bounds)
            except oc.OctantsRuntimeError as error:
                assert "OC1105" in str(error) or "OC1110" in str(error)  # noqa: PT017
    finally:
        done.set()
        writer.join()


@pytest.mark.host_access
def test_limits_are_kept(arch):
    x, y, n = made(X), made(np.zeros(4)), [3, 0, 8, 5]
    oc.init(arch=getattr(oc, arch), tape_memory_limit=130, log_level="error")
    x, y = made(X), made(np.zeros(4))
    plan = steps.grad_plan(x, y, integers(n))
    assert plan["parallel_loops"][0]["at_once"] == 2
    assert plan["tape_bytes"] == 128
    assert plan["sized"] == "a kernel computes it before the launch"


@pytest.mark.device_memory
def test_one_long_row_among_many_does_not_multiply():
    oc.init(arch=oc.cfg.arch, tape_memory_limit=1 << 20, log_level="error")
    count = 2000
    rows = [1] * count
    rows[7] = 10_000
    x, y = made(np.full(count, 0.3)), made(np.zeros(count))
    plan = steps.grad_plan(x, y, integers(rows))
    assert plan["parallel_loops"][0]["at_once"] == (1 << 20) // 80_000
    assert plan["tape_bytes"] <= 1 << 20


@pytest.mark.device_memory
def test_the_host_sizes_what_follows_from_arguments():
    oc.init(arch=oc.cfg.arch, kernel_profiler=True, log_level="error")
    x, y, n = made(X), made(np.zeros(4)), integers([3, 0, 8, 5])
    assert nest.grad_plan(x, y, 5)["sized"] == "the host computes it from the arguments"
    assert steps.grad_plan(x, y, n)["sized"] == "a kernel computes it before the launch"
    oc.profiler.clear_kernel_profiler_info()
    y.grad.fill(1.0)
    nest.grad(x, y, 5)
    steps.grad(x, y, n)
    oc.sync()
    launched = {
        name: oc.profiler.query_kernel_profiler_info(name).counter
        for name in ("nest_grad", "nest_grad_sizes", "steps_grad", "steps_grad_sizes")
    }
    assert launched == {"nest_grad": 1, "nest_grad_sizes": 0, "steps_grad": 1, "steps_grad_sizes": 1}
    # Beyond what the host computes in passing, the device does.
    assert nest.grad_plan(x, y, 3000)["sized"] == "a kernel computes it before the launch"
    assert nest.grad_plan(x, y, 3000)["parallel_loops"][0]["bytes_per_iteration"] == 2 * 3000 * 8


# ---- checks of debug mode -------------------------------------------------------------------------------------------------


@pytest.mark.host_access
def test_indices_of_gradients_are_checked_in_debug_mode(arch):
    oc.init(arch=getattr(oc, arch), debug=True, log_level="error")

    @oc.kernel
    def gathered(x: VEC, y: VEC, rows: INTS):
        for i in y:
            v = x[rows[i]]
            for k in range(3):
                v = oc.sin(v) * x[rows[i]]
            y[i] = v

    x, y, rows = made(X), made(np.zeros(4)), integers([0, 3, 2, 1])
    gathered(x, y, rows)
    gathered.grad(x, y, rows)
    # The rows are others when the gradient is computed.
    rows.from_numpy(np.array([0, 1, 77, 1], dtype=np.int32))
    with pytest.raises(oc.OctantsAssertionError, match=r"(?s)77.*out of bounds.*gathered"):
        gathered.grad(x, y, rows)


# ---- streams --------------------------------------------------------------------------------------------------------------


@pytest.mark.host_access
def test_gradients_in_streams_keep_their_own(arch):
    counts = (8, 32, 3, 17)
    expected = [gradient(steps, X, [n, 0, n // 2, 1]) for n in counts]
    streams = [oc.create_stream() for _ in counts]
    for _ in range(5):
        made_of = []
        for n, stream in zip(counts, streams, strict=True):
            x, y, rows = made(X), made(np.zeros(4)), integers([n, 0, n // 2, 1])
            y.grad.from_numpy(np.arange(1.0, 5.0))
            steps(x, y, rows, qd_stream=stream)
            steps.grad(x, y, rows, qd_stream=stream)
            made_of.append(x)
        for stream in streams:
            stream.synchronize()
        for x, values in zip(made_of, expected, strict=True):
            np.testing.assert_allclose(x.grad.to_numpy(), values, rtol=1e-12)


@pytest.mark.host_access
@pytest.mark.parametrize("limit", [None, 700])
def test_branches_have_tapes_of_their_own(arch, limit):
    @oc.kernel
    def apart(x: VEC, y: VEC, a: INTS, b: INTS):
        with oc.stream_parallel():
            for i in range(4):
                v = x[i]
                for k in range(a[i]):
                    v = oc.sin(v) + x[i] * 0.5
                y[i] = v
        with oc.stream_parallel():
            for i in range(4):
                w = x[i]
                for k in range(b[i]):
                    w = oc.cos(w) * x[3 - i]
                y[4 + i] = w

    @oc.kernel
    def in_order(x: VEC, y: VEC, a: INTS, b: INTS):
        for i in range(4):
            v = x[i]
            for k in range(a[i]):
                v = oc.sin(v) + x[i] * 0.5
            y[i] = v
        for i in range(4):
            w = x[i]
            for k in range(b[i]):
                w = oc.cos(w) * x[3 - i]
            y[4 + i] = w

    oc.init(arch=getattr(oc, arch), tape_memory_limit=limit, log_level="error") if limit else None
    found = []
    for kernel in (apart, in_order):
        for _ in range(3):
            x, y, a, b = made(X), made(np.zeros(8)), integers([8, 0, 3, 1]), integers([32, 2, 9, 0])
            kernel(x, y, a, b)
            y.grad.from_numpy(np.arange(1.0, 9.0))
            kernel.grad(x, y, a, b)
            found.append(x.grad.to_numpy())
    for values in found[1:]:
        np.testing.assert_allclose(values, found[0], rtol=1e-12)
    plan = apart.grad_plan(x, y, a, b)
    assert sorted(loop["bytes_per_iteration"] for loop in plan["parallel_loops"]) == [8 * 8, 32 * 8]
