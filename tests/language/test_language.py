"""What kernels compute, on every device: expressions, control flow, scopes, funcs, compile-time values."""

import math

import numpy as np
import pytest
from devices import INTERPRETED

import octants as oc

F32 = oc.types.ndarray(dtype=oc.f32, ndim=1)
I32 = oc.types.ndarray(dtype=oc.i32, ndim=1)


def test_saxpy(arch):
    @oc.kernel
    def saxpy(a: oc.f32, x: F32, y: F32):
        for i in range(x.shape[0]):
            y[i] = a * x[i] + y[i]

    x = np.arange(1000, dtype=np.float32)
    y = np.ones(1000, dtype=np.float32)
    saxpy(2.0, x, y)
    np.testing.assert_array_equal(y, 2 * np.arange(1000) + 1)


@pytest.mark.parametrize("a", [-7, -1, 0, 1, 5, 2**31 - 1, -(2**31)])
@pytest.mark.parametrize("b", [-3, -1, 1, 2, 7])
def test_integer_operators_follow_python_and_wrap(arch, a, b):
    @oc.kernel
    def ops(a: oc.i32, b: oc.i32, out: I32):
        out[0] = a + b
        out[1] = a - b
        out[2] = a * b
        out[3] = a // b
        out[4] = a % b
        out[5] = a & b
        out[6] = a | b
        out[7] = a ^ b
        out[8] = ~a
        out[9] = -a
        out[10] = a << 3
        out[11] = a >> 2
        out[12] = min(a, b, 4)
        out[13] = max(a, b)
        out[14] = abs(a)
        out[15] = oc.raw_div(a, b)
        out[16] = oc.raw_mod(a, b)

    def wrapped(v):
        return (v + 2**31) % 2**32 - 2**31

    truncated = abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)
    expected = [
        a + b,
        a - b,
        a * b,
        a // b,
        a % b,
        a & b,
        a | b,
        a ^ b,
        ~a,
        -a,
        a << 3,
        a >> 2,
        min(a, b, 4),
        max(a, b),
        abs(a),
    ]
    expected += [truncated, a - truncated * b]
    out = np.zeros(17, dtype=np.int32)
    ops(a, b, out)
    assert out.tolist() == [wrapped(v) for v in expected]


def test_integer_division_by_zero_gives_zero_and_never_crashes(arch):
    @oc.kernel
    def divide(a: oc.i32, b: oc.i32, out: I32):
        out[0] = a // b
        out[1] = a % b
        out[2] = oc.raw_div(a, b)
        out[3] = oc.raw_mod(a, b)

    out = np.full(4, 9, dtype=np.int32)
    divide(5, 0, out)
    assert out.tolist() == [0, 0, 0, 0]
    divide(-(2**31), -1, out)
    assert out.tolist() == [-(2**31), 0, -(2**31), 0]


def test_real_operators_follow_python(arch):
    oc.init(arch=getattr(oc, arch), default_fp=oc.f64, fast_math=False, log_level="error")

    @oc.kernel
    def ops(a: oc.f64, b: oc.f64, out: oc.types.ndarray(dtype=oc.f64, ndim=1)):
        out[0] = a / b
        out[1] = a // b
        out[2] = a % b
        out[3] = a**2
        out[4] = a**-3
        out[5] = abs(a) ** 0.5
        out[6] = oc.sqrt(abs(a))
        out[7] = oc.rsqrt(abs(a))
        out[8] = oc.sin(a)
        out[9] = oc.cos(a)
        out[10] = oc.tan(a)
        out[11] = oc.tanh(a)
        out[12] = oc.exp(a)
        out[13] = oc.log(abs(a))
        out[14] = oc.atan2(a, b)
        out[15] = oc.floor(a)
        out[16] = oc.ceil(a)
        out[17] = oc.round(a)
        out[18] = oc.asin(a / 10)
        out[19] = oc.acos(a / 10)
        out[20] = oc.select(a > b, a, b)
        out[21] = oc.math.log2(abs(a))
        out[22] = oc.erf(a)

    out = np.zeros(23)
    for a, b in [(2.75, -1.5), (-3.5, 0.25), (0.5, 7.0), (-8.25, -2.0)]:
        ops(a, b, out)
        expected = [
            a / b,
            a // b,
            a % b,
            a**2,
            a**-3,
            abs(a) ** 0.5,
            abs(a) ** 0.5,
            abs(a) ** -0.5,
            math.sin(a),
            math.cos(a),
        ]
        expected += [
            math.tan(a),
            math.tanh(a),
            math.exp(a),
            math.log(abs(a)),
            math.atan2(a, b),
            math.floor(a),
            math.ceil(a),
        ]
        expected += [
            math.copysign(math.floor(abs(a) + 0.5), a),
            math.asin(a / 10),
            math.acos(a / 10),
            max(a, b),
            math.log2(abs(a)),
            math.erf(a),
        ]
        np.testing.assert_allclose(out, expected, rtol=4e-15)


@pytest.mark.parametrize("dtype", [oc.f16, oc.f32, oc.f64], ids=str)
def test_the_error_function_of_numbers_vectors_and_matrices(arch, dtype):
    oc.init(arch=getattr(oc, arch), log_level="error")
    values = [-3.0, -0.5, 0.0, 0.25, 1.0, 2.5]
    array = oc.types.ndarray(dtype=dtype, ndim=1)
    vector, matrix = oc.types.vector(3, dtype), oc.types.matrix(2, 3, dtype)

    @oc.kernel
    def numbers(x: array, out: array):
        for i in range(x.shape[0]):
            out[i] = oc.erf(x[i])

    @oc.kernel
    def tensors(v: vector, m: matrix, out: array):
        a, b = oc.math.erf(v), oc.erf(m)
        for i in oc.static(range(3)):
            out[i] = a[i]
            for j in oc.static(range(2)):
                out[3 + 3 * j + i] = b[j, i]

    @oc.kernel
    def constant() -> oc.f64:
        return oc.erf(oc.static(0.25))

    x, out = oc.ndarray(dtype, 6), oc.ndarray(dtype, 9)
    for i, value in enumerate(values):
        x[i] = value
    numbers(x, out)
    tolerance = {oc.f16: 1e-3, oc.f32: 3e-7, oc.f64: 1e-15}[dtype]
    expected = [math.erf(value) for value in values]
    np.testing.assert_allclose([out[i] for i in range(6)], expected, rtol=tolerance)
    tensors(vector(values[:3]), matrix([values[:3], values[3:]]), out)
    np.testing.assert_allclose([out[i] for i in range(9)], expected[:3] + expected, rtol=tolerance)
    assert constant() == pytest.approx(math.erf(0.25), rel=1e-7)
    # On the host.
    assert oc.erf(0.5) == math.erf(0.5)
    assert oc.erf(oc.Vector(values)).to_numpy() == pytest.approx(expected, rel=3e-7)
    assert oc.erf(np.float32(0.5)).dtype == np.float32


def test_the_error_function_takes_reals(arch):
    oc.init(arch=getattr(oc, arch), log_level="error")

    @oc.kernel
    def k(n: oc.i32) -> oc.f32:
        return oc.erf(n)

    with pytest.raises(oc.OctantsTypeError, match="erf"):
        k(1)


def test_promotion(arch):
    @oc.kernel
    def promoted(i: oc.i32, u: oc.u8, f: oc.f32, d: oc.f64, out: oc.types.ndarray(dtype=oc.f64, ndim=1)):
        out[0] = i / 2  # true division of integers is real
        out[1] = u + 1  # a literal is i32: no wrap at 255
        out[2] = f + d  # the wider real wins
        out[3] = i + f
        out[4] = oc.cast(f, oc.i32)
        out[5] = oc.u8(300 - i)  # a cast of a run-time value wraps
        out[6] = bool(f)
        out[7] = i > 1 or u < 3

    out = np.zeros(8)
    promoted(7, 255, 2.75, 0.125, out)
    assert out.tolist() == [3.5, 256, 2.875, 9.75, 2, (300 - 7) % 256, 1, 1]


def test_a_variable_keeps_the_type_of_its_first_assignment(arch):
    @oc.kernel
    def keep() -> oc.f32:
        x = 1
        x = 2.75
        y: oc.f32 = 1
        y = y + 0.5
        return x + y

    with pytest.warns(UserWarning):
        assert keep() == 3.5


def test_chained_comparisons_evaluate_the_middle_once(arch):
    @oc.func
    def counted(x: oc.template(), calls: oc.template()):
        calls[0] += 1
        return x

    @oc.kernel
    def between(a: int, b: int, c: int, calls: I32) -> oc.i32:
        result = 0
        if a < counted(b, calls) < c:
            result = 1
        return result

    calls = oc.ndarray(oc.i32, 1)
    assert [between(1, 2, 3, calls), between(1, 5, 3, calls), between(3, 2, 1, calls)] == [1, 0, 0]
    assert calls[0] == 3


def test_and_or_are_lazy(arch):
    @oc.kernel
    def lazy(x: I32, i: int) -> oc.i32:
        found = 0
        if i < x.shape[0] and x[i] == 7:
            found = 1
        if i >= x.shape[0] or x[i] == 8:
            found += 2
        return found

    x = np.array([7, 8], dtype=np.int32)
    assert [lazy(x, 0), lazy(x, 1), lazy(x, 2_000_000_000)] == [1, 2, 2]


def test_conditional_expression_is_lazy(arch):
    @oc.kernel
    def pick(x: I32, i: int) -> oc.i32:
        return x[i] if i < x.shape[0] else -1

    x = np.array([5, 6], dtype=np.int32)
    assert [pick(x, 1), pick(x, 2_000_000_000)] == [6, -1]


def collatz(n):
    steps = 0
    while n != 1:
        if n % 2 == 0:
            n //= 2
        else:
            n = 3 * n + 1
        steps += 1
    return steps


def test_while_loops(arch):
    @oc.kernel
    def lengths(out: I32):
        for i in range(1, out.shape[0]):
            n = i
            steps = 0
            while n != 1:
                if n % 2 == 0:
                    n //= 2
                else:
                    n = 3 * n + 1
                steps += 1
            out[i] = steps

    out = np.zeros(200, dtype=np.int32)
    lengths(out)
    assert out.tolist() == [0] + [collatz(n) for n in range(1, 200)]


def searched(n):
    found = []
    for i in range(n):
        total = 0
        for j in range(20):
            if j == i:
                continue
            if j > 2 * i + 3:
                break
            k = 0
            while True:
                k += 1
                if k > j:
                    break
                if k % 2:
                    continue
                total += k * j
        else_total = total
        found.append(else_total)
    return found


def test_break_and_continue_in_nested_loops(arch):
    @oc.kernel
    def search(out: I32):
        for i in range(out.shape[0]):
            total = 0
            for j in range(20):
                if j == i:
                    continue
                if j > 2 * i + 3:
                    break
                k = 0
                while True:
                    k += 1
                    if k > j:
                        break
                    if k % 2:
                        continue
                    total += k * j
            out[i] = total

    out = np.zeros(15, dtype=np.int32)
    search(out)
    assert out.tolist() == searched(15)


def test_continue_in_a_parallel_loop(arch):
    @oc.kernel
    def odd(out: I32):
        for i in out:
            if i % 2 == 0:
                continue
            out[i] = i

    out = np.full(9, -1, dtype=np.int32)
    odd(out)
    assert out.tolist() == [-1, 1, -1, 3, -1, 5, -1, 7, -1]


def test_ndrange_with_bounds_and_axes(arch):
    @oc.kernel
    def mark(out: oc.types.ndarray(dtype=oc.i32, ndim=2)):
        for i, j in oc.ndrange((1, 3), 4):
            out[i, j] += 10 * i + j
        for i, j in oc.ndrange(2, (2, 1), axes=(1, 0)):
            out[i, j] = -1  # an empty axis: never runs

    out = np.zeros((4, 5), dtype=np.int32)
    mark(out)
    expected = np.zeros((4, 5), dtype=np.int32)
    for i in range(1, 3):
        for j in range(4):
            expected[i, j] = 10 * i + j
    np.testing.assert_array_equal(out, expected)


def test_three_axes_cover_every_point_once(arch):
    @oc.kernel
    def count(out: oc.types.ndarray(dtype=oc.i32, ndim=3)):
        for i, j, k in oc.ndrange(out.shape[0], out.shape[1], out.shape[2]):
            out[i, j, k] += 1 + i * 100 + j * 10 + k

    out = np.zeros((7, 3, 5), dtype=np.int32)
    count(out)
    i, j, k = np.indices(out.shape)
    np.testing.assert_array_equal(out, 1 + i * 100 + j * 10 + k)


def test_zero_trip_loops_and_empty_arrays(arch):
    @oc.kernel
    def touch(x: F32, n: int) -> oc.i32:
        count = 0
        for i in range(n):
            count += 1
        for i in range(5, 2):
            count += 100
        for i in x:
            count += 1000
        return count

    assert touch(np.zeros(0, dtype=np.float32), 0) == 0
    assert touch(np.zeros(0, dtype=np.float32), -3) == 0
    assert touch(np.zeros(2, dtype=np.float32), 4) == 2004


def test_scalars_accumulate_across_parallel_loops(arch):
    @oc.kernel
    def statistics(x: oc.types.ndarray(dtype=oc.f64, ndim=1)) -> (oc.f64, oc.f64, oc.f64, oc.i32):
        total = oc.f64(0.0)
        low = oc.f64(1e30)
        high = oc.f64(-1e30)
        count = 0
        for i in x:
            total += x[i]
            oc.atomic_min(low, x[i])
            oc.atomic_max(high, x[i])
            if x[i] > 0.5:
                count += 1
        mean = total / x.shape[0]
        variance = oc.f64(0.0)
        for i in x:
            variance += (x[i] - mean) ** 2
        return variance / x.shape[0], low, high, count

    x = np.random.default_rng(3).random(10_000)
    variance, low, high, count = statistics(x)
    np.testing.assert_allclose(variance, x.var(), rtol=1e-9)
    assert (low, high, count) == (x.min(), x.max(), int((x > 0.5).sum()))


def test_augmented_assignment_on_arrays_is_atomic(arch):
    @oc.kernel
    def histogram(x: I32, bins: I32):
        for i in x:
            bins[x[i]] += 1

    x = np.random.default_rng(1).integers(0, 7, 500 if arch in INTERPRETED else 100_000).astype(np.int32)
    bins = np.zeros(7, dtype=np.int32)
    histogram(x, bins)
    np.testing.assert_array_equal(bins, np.bincount(x, minlength=7))


def test_atomics_return_the_old_value(arch):
    @oc.kernel
    def old(x: I32, out: I32):
        out[0] = oc.atomic_add(x[0], 5)
        out[1] = oc.atomic_sub(x[0], 1)
        out[2] = oc.atomic_max(x[0], 100)
        out[3] = oc.atomic_min(x[0], 50)
        out[4] = oc.atomic_and(x[0], 0b110110)
        out[5] = oc.atomic_or(x[0], 1)
        out[6] = oc.atomic_xor(x[0], 3)
        out[7] = oc.atomic_exchange(x[0], 9)
        out[8] = oc.atomic_cas(x[0], 9, 11)
        out[9] = oc.atomic_cas(x[0], 9, 12)
        out[10] = oc.atomic_mul(x[0], 3)
        out[11] = x[0]

    out = np.zeros(12, dtype=np.int32)
    old(np.array([10], dtype=np.int32), out)
    assert out.tolist() == [10, 15, 14, 100, 50, 50, 51, 48, 9, 11, 11, 33]


GRAVITY = 9.5
SIDES = [2, 3, 5]


def table(n):
    """Plain Python: runs while compiling."""
    return sum(range(n))


def polynomial(x):
    """Plain Python over a value of the kernel: its operators become part of the kernel."""
    result = 0.0
    for c in (1.0, -2.0, 3.0):
        result = result * x + c
    return result


def test_compile_time_values(arch):
    offset = 4

    @oc.kernel
    def captured(x: oc.f32) -> oc.f32:
        total = GRAVITY + offset + table(5)
        for side in oc.static(SIDES):
            total += side * x
        if oc.static(len(SIDES) == 3):
            total += 1000
        else:
            total = undefined_name_in_a_dead_branch  # noqa: F821
        return total + polynomial(x) + math.pi

    with pytest.warns(SyntaxWarning, match="polynomial|table"):
        result = captured(2.0)
    np.testing.assert_allclose(result, 9.5 + 4 + 10 + 20 + 1000 + polynomial(2.0) + math.pi, rtol=1e-6)


def test_funcs_take_arguments_by_value_and_templates_by_reference(arch):
    @oc.func
    def by_value(a: oc.f32, b=2):
        a = a * b
        return a

    @oc.func
    def bump(a: oc.template()):
        a += 1

    @oc.func
    def both(a, b):
        return a + b, a - b

    @oc.kernel
    def call() -> (oc.f32, oc.i32, oc.i32, oc.i32):
        x = 3
        y = by_value(x) + by_value(x, b=10)
        bump(x)
        s, d = both(x, 1)
        return y, x, s, d

    assert call() == (36.0, 4, 5, 3)


@pytest.mark.host_devices(
    "so few iterations run on one thread there; elsewhere the loop is a race, as the warning says"
)
def test_tuples_swap_and_unpack(arch):
    @oc.kernel
    def fib(n: int) -> oc.i32:
        a, b = 0, 1
        for _ in range(n):
            a, b = b, a + b
        return a

    assert fib(20) == 6765


def test_loop_config_serialize_allows_break(arch):
    @oc.kernel
    def first(x: I32) -> oc.i32:
        found = -1
        oc.loop_config(serialize=True)
        for i in range(x.shape[0]):
            if x[i] == 3:
                found = i
                break
        return found

    assert first(np.array([1, 2, 3, 3], dtype=np.int32)) == 2


@pytest.mark.parametrize("name", ["u1", "i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64", "f16", "f32", "f64"])
def test_every_type_goes_in_and_out(arch, name):
    dtype = getattr(oc, name)

    @oc.kernel
    def identity(v: dtype) -> dtype:
        return v

    @oc.kernel
    def copy(x: oc.types.ndarray(dtype=dtype, ndim=1), y: oc.types.ndarray(dtype=dtype, ndim=1)):
        for i in x:
            y[i] = x[i]

    values = {"u1": [True, False], "f16": [1.5, -0.25], "f32": [0.1, 3e38], "f64": [0.1, 1e300]}.get(name)
    if values is None:
        info = np.iinfo(oc.types.to_numpy_type(dtype))
        values = [int(info.min), int(info.max)]
    x = oc.ndarray(dtype, len(values))
    for i, v in enumerate(values):
        x[i] = v
    y = oc.ndarray(dtype, len(values))
    copy(x, y)
    as_numpy = np.array(values, dtype=oc.types.to_numpy_type(dtype))
    np.testing.assert_array_equal(y.to_numpy(), as_numpy)
    for i, v in enumerate(as_numpy.tolist()):
        assert identity(v) == v and x[i] == v


def test_isnan_and_isinf_hold_under_fast_math(arch):
    @oc.kernel
    def classify(x: F32, out: I32):
        for i in x:
            out[i] = oc.cast(oc.math.isnan(x[i]), oc.i32) + 2 * oc.cast(oc.math.isinf(x[i]), oc.i32)

    x = np.array([1.0, np.nan, np.inf, -np.inf, 0.0], dtype=np.float32)
    out = np.zeros(5, dtype=np.int32)
    classify(x, out)
    assert out.tolist() == [0, 1, 2, 2, 0]


def test_kernels_in_methods_of_modules_and_strings_as_annotations(arch, tmp_path):
    module = tmp_path / "late.py"
    module.write_text(
        "from __future__ import annotations\nimport octants as oc\n\n\n"
        "def make(step):\n    @oc.kernel\n    def add(x: oc.types.ndarray(dtype=oc.i32, ndim=1), n: int):\n"
        "        for i in x:\n            x[i] += step * n\n    return add\n"
    )
    import runpy

    add = runpy.run_path(str(module))["make"](5)
    x = np.zeros(3, dtype=np.int32)
    add(x, 2)
    assert x.tolist() == [10, 10, 10]


def test_clamped_arrays(arch):
    @oc.kernel
    def blur(x: oc.types.ndarray(dtype=oc.f32, ndim=1, boundary="clamp"), y: F32):
        for i in y:
            y[i] = x[i - 1] + x[i] + x[i + 1]

    x = np.array([1, 2, 4], dtype=np.float32)
    y = np.zeros(3, dtype=np.float32)
    blur(x, y)
    assert y.tolist() == [4, 7, 10]


def test_grouped_loops_index_with_a_vector(arch):
    @oc.kernel
    def double(x: oc.types.ndarray(dtype=oc.f32, ndim=2), y: oc.types.ndarray(dtype=oc.f32, ndim=2)):
        for I in oc.grouped(x):
            y[I] = 2 * x[I]

    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    y = np.zeros_like(x)
    double(x, y)
    np.testing.assert_array_equal(y, 2 * x)
