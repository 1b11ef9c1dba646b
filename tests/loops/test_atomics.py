"""Atomic operations: every type, old values, contention, vectors, and sums that each thread gathers on its own."""

import numpy as np
import pytest

import octants as oc

NUMPY = {
    oc.i8: np.int8,
    oc.i16: np.int16,
    oc.i32: np.int32,
    oc.i64: np.int64,
    oc.u8: np.uint8,
    oc.u16: np.uint16,
    oc.u32: np.uint32,
    oc.u64: np.uint64,
    oc.f16: np.float16,
    oc.f32: np.float32,
    oc.f64: np.float64,
}
INTEGERS = [t for t in NUMPY if not oc.types.is_real(t)]
REALS = [t for t in NUMPY if oc.types.is_real(t)]

ARITHMETIC = {
    "add": (oc.atomic_add, lambda x, y: x + y),
    "sub": (oc.atomic_sub, lambda x, y: x - y),
    "mul": (oc.atomic_mul, lambda x, y: x * y),
    "min": (oc.atomic_min, min),
    "max": (oc.atomic_max, max),
    "exchange": (oc.atomic_exchange, lambda x, y: y),
}
BITWISE = {
    "and": (oc.atomic_and, lambda x, y: x & y),
    "or": (oc.atomic_or, lambda x, y: x | y),
    "xor": (oc.atomic_xor, lambda x, y: x ^ y),
}


def array(dtype):
    return oc.types.ndarray(dtype=dtype, ndim=1)


@pytest.mark.sanitizer_core
@pytest.mark.parametrize(
    ("name", "dtype"),
    [(name, dtype) for name in ARITHMETIC for dtype in NUMPY]
    + [(name, dtype) for name in BITWISE for dtype in INTEGERS],
    ids=str,
)
def test_one_after_another(arch, name, dtype):
    atomic, exact = {**ARITHMETIC, **BITWISE}[name]

    @oc.kernel
    def k(x: array(dtype), y: array(dtype), old: array(dtype)):
        for _ in range(1):
            for i in range(y.shape[0]):
                old[i] = atomic(x[0], y[i])

    real = NUMPY[dtype]
    y = np.array([3, 1, 7, 5, 2, 100, 90, 4], dtype=real)
    x, old = np.array([6], dtype=real), np.zeros_like(y)
    value, expected = x[0], []
    with np.errstate(over="ignore"):
        for step in y:
            expected.append(value)
            value = real(exact(value, step))
    k(x, y, old)
    assert old.tolist() == np.array(expected, dtype=real).tolist()
    assert x[0] == value


@pytest.mark.sanitizer_core
@pytest.mark.parametrize("dtype", NUMPY, ids=str)
def test_every_addition_of_many_threads_counts(dtype):
    n = 200_000
    real = NUMPY[dtype]
    # 64 slots, so that a sum stays exact in f16 (2048) and wraps, or not, in the integers.
    per_slot = 2000 if dtype == oc.f16 else n // 64

    @oc.kernel
    def k(x: array(dtype), n: oc.i32):
        for i in range(n):
            x[i % 64] += oc.cast(1, dtype)

    x = np.zeros(64, dtype=real)
    k(x, per_slot * 64)
    assert x.tolist() == [np.array(per_slot).astype(real)] * 64


@pytest.mark.parametrize("dtype", [oc.i32, oc.u32, oc.i64, oc.u64, oc.f32, oc.f64], ids=str)
def test_old_values_of_many_threads_are_all_different(dtype):
    n = 100_000

    @oc.kernel
    def k(count: array(dtype), ticket: array(dtype)):
        for i in range(ticket.shape[0]):
            ticket[i] = oc.atomic_add(count[0], 1)

    count, ticket = np.zeros(1, dtype=NUMPY[dtype]), np.zeros(n, dtype=NUMPY[dtype])
    k(count, ticket)
    assert count[0] == n
    assert np.array_equal(np.sort(ticket), np.arange(n))


def test_exchange_hands_every_value_on_once():
    n = 50_000

    @oc.kernel
    def k(slot: array(oc.i32), got: array(oc.i32)):
        for i in range(got.shape[0]):
            got[i] = oc.atomic_exchange(slot[0], i + 1)

    slot, got = np.zeros(1, dtype=np.int32), np.zeros(n, dtype=np.int32)
    k(slot, got)
    assert np.array_equal(np.sort(np.append(got, slot[0])), np.arange(n + 1))


@pytest.mark.parametrize("dtype", [oc.i32, oc.u32, oc.i64, oc.u64], ids=str)
def test_compare_and_swap(arch, dtype):
    @oc.kernel
    def k(x: array(dtype), old: array(dtype)):
        for _ in range(1):
            for i in range(6):
                old[i] = oc.atomic_cas(x[0], oc.cast(i, dtype), oc.cast(i + 2, dtype))

    x, old = np.array([1], dtype=NUMPY[dtype]), np.zeros(6, dtype=NUMPY[dtype])
    k(x, old)
    assert old.tolist() == [1, 1, 3, 3, 5, 5]
    assert x[0] == 7


@pytest.mark.parametrize("dtype", [oc.i32, oc.u64], ids=str)
def test_a_lock_free_maximum_built_on_compare_and_swap(dtype):
    @oc.kernel
    def k(x: array(dtype), values: array(dtype)):
        for i in range(values.shape[0]):
            seen = oc.volatile_load(x[0])
            while seen < values[i]:
                before = oc.atomic_cas(x[0], seen, values[i])
                if before == seen:
                    break
                seen = before

    values = np.random.default_rng(1).integers(0, 2**31 - 1, 50_000).astype(NUMPY[dtype])
    x = np.zeros(1, dtype=NUMPY[dtype])
    k(x, values)
    assert x[0] == values.max()


@pytest.mark.parametrize("dtype", REALS, ids=str)
def test_nan_loses_against_numbers(arch, dtype):
    oc.init(arch=getattr(oc, arch), fast_math=False, log_level="error")

    @oc.kernel
    def k(x: array(dtype), y: array(dtype)):
        for _ in range(1):
            oc.atomic_min(x[0], y[0])
            oc.atomic_max(x[1], y[0])
            oc.atomic_min(x[2], y[1])
            oc.atomic_max(x[3], y[1])

    x = np.array([2, 2, np.nan, np.nan], dtype=NUMPY[dtype])
    k(x, np.array([np.nan, 1], dtype=NUMPY[dtype]))
    assert x.tolist() == [2, 2, 1, 1]


@pytest.mark.sanitizer_core
@pytest.mark.parametrize("dtype", [oc.f32, oc.f64, oc.i32], ids=str)
def test_vectors_component_by_component(arch, dtype):
    vector = oc.types.vector(3, dtype)

    @oc.kernel
    def k(x: oc.types.ndarray(dtype=vector, ndim=1), n: oc.i32):
        for i in range(n):
            x[0] += oc.Vector([1, 2, 3])
            oc.atomic_max(x[1], oc.Vector([i, -i, 7]))
            x[2].y -= 1

    x = oc.Vector.ndarray(3, dtype, 3)
    k(x, 5000)
    assert x.to_numpy().tolist() == [[5000, 10000, 15000], [4999, 0, 7], [0, -5000, 0]]


def test_vectors_return_old_values(arch):
    @oc.kernel
    def k(x: oc.types.ndarray(dtype=oc.types.vector(2, oc.i32), ndim=1), out: array(oc.i32)):
        for _ in range(1):
            old = oc.atomic_add(x[0], oc.Vector([10, 20]))
            out[0], out[1] = old[0], old[1]
            old = oc.atomic_add(x[0], 1)
            out[2], out[3] = old[0], old[1]

    x, out = oc.Vector.ndarray(2, oc.i32, 1), np.zeros(4, dtype=np.int32)
    k(x, out)
    assert out.tolist() == [0, 0, 10, 20]
    assert x.to_numpy().tolist() == [[11, 21]]


def test_local_variables(arch):
    @oc.kernel
    def k(out: array(oc.i32)):
        for i in range(4):
            x = i
            v = oc.Vector([i, 2 * i])
            out[4 * i] = oc.atomic_add(x, 5)
            out[4 * i + 1] = x
            out[4 * i + 2] = oc.atomic_max(v[1], 3)
            out[4 * i + 3] = v[1]

    out = np.zeros(16, dtype=np.int32)
    k(out)
    assert out.tolist() == [n for i in range(4) for n in (i, i + 5, 2 * i, max(2 * i, 3))]


@pytest.mark.sanitizer_core
@pytest.mark.parametrize("dtype", NUMPY, ids=str)
def test_reductions_of_a_loop(arch, dtype):
    real = NUMPY[dtype]

    @oc.kernel
    def k(x: array(dtype), out: array(dtype)):
        for i in x:
            out[0] += x[i]
            oc.atomic_min(out[1], x[i])
            oc.atomic_max(out[2], x[i])
            out[3] -= x[i]

    random = np.random.default_rng(2)
    n = 1000 if dtype == oc.f16 else 20_000
    x = (random.integers(-1, 2, n) if dtype in REALS else random.integers(0, 100, n)).astype(real)
    out = np.array([1, 50, 3, 0], dtype=real)
    k(x, out)
    with np.errstate(over="ignore"):
        total = x.astype(np.int64).sum()
        expected = [
            real(np.array(1 + total).astype(real)),
            min(50, x.min()),
            max(3, x.max()),
            real(np.array(-total).astype(real)),
        ]
    assert out.tolist() == np.array(expected, dtype=real).tolist()


@pytest.mark.sanitizer_core
@pytest.mark.parametrize("dtype", INTEGERS, ids=str)
def test_bit_reductions_of_a_loop(arch, dtype):
    real = NUMPY[dtype]

    @oc.kernel
    def k(x: array(dtype), out: array(dtype)):
        for i in x:
            out[0] &= x[i]
            out[1] |= x[i]
            out[2] ^= x[i]

    info = np.iinfo(real)
    x = np.random.default_rng(3).integers(info.min, info.max, 20_001, dtype=real, endpoint=True) | real(4)
    out = np.array([-1, 0, 0]).astype(real)
    k(x, out)
    assert out.tolist() == [np.bitwise_and.reduce(x), np.bitwise_or.reduce(x), np.bitwise_xor.reduce(x)]


@pytest.mark.sanitizer_core
def test_reductions_into_kernel_variables_flow_to_later_loops(arch):
    @oc.kernel
    def k(x: array(oc.f64), out: array(oc.f64)) -> oc.f64:
        total = oc.f64(0.0)
        least = oc.f64(1e300)
        for i in x:
            total += x[i]
            oc.atomic_min(least, x[i])
        for i in x:
            out[i] = x[i] - least
        return total

    x = np.random.default_rng(4).integers(-1000, 1000, 30_000).astype(np.float64)
    out = np.zeros_like(x)
    assert k(x, out) == x.sum()
    assert np.array_equal(out, x - x.min())


def test_sums_of_reals_keep_their_accuracy():
    """Each thread's share is added up before it meets the others', so a long f32 sum loses little."""
    n = 1_000_000

    @oc.kernel
    def k(x: array(oc.f32), out: array(oc.f32)):
        for i in x:
            out[0] += x[i]

    x = np.random.default_rng(5).uniform(0, 1, n).astype(np.float32)
    out = np.zeros(1, dtype=np.float32)
    k(x, out)
    assert out[0] == pytest.approx(x.astype(np.float64).sum(), rel=1e-4)


def test_a_target_that_moves_is_not_gathered(arch):
    @oc.kernel
    def k(x: array(oc.i32), where: array(oc.i32)):
        for i in range(3000):
            x[where[0]] += 1
            if i == -1:
                where[0] = 2

    x = np.zeros(3, dtype=np.int32)
    k(x, np.array([1], dtype=np.int32))
    assert x.tolist() == [0, 3000, 0]


def test_reading_the_target_in_the_loop_sees_the_sum_grow(arch):
    @oc.kernel
    def k(x: array(oc.i32), seen: array(oc.i32)):
        oc.loop_config(serialize=True)
        for i in range(10):
            x[0] += 1
            seen[i] = x[0]

    x, seen = np.zeros(1, dtype=np.int32), np.zeros(10, dtype=np.int32)
    k(x, seen)
    assert seen.tolist() == list(range(1, 11))


SUMMANDS = [oc.i32, oc.u32, oc.i64, oc.u64, oc.f32, oc.f64]


@pytest.mark.sanitizer_core
@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("dtype", SUMMANDS, ids=str)
def test_histograms_of_few_and_of_many_bins(dtype, threads):
    oc.init(arch=oc.cfg.arch, log_level="error", cpu_max_num_threads=threads)

    @oc.kernel
    def count(x: array(oc.i32), bins: array(dtype), other: array(dtype)):
        for i in range(x.shape[0]):
            bins[x[i]] += 2
            if x[i] % 2 == 1:
                other[x[i]] -= 1

    rng = np.random.default_rng(5)
    # Few bins are gathered by each thread, many are not; and back to few, with other bins than before.
    for samples, size in [(50_000, 301), (2_000, 100_001), (40_000, 64), (300, 5), (0, 8)]:
        x = rng.integers(0, size, samples).astype(np.int32)
        bins, other = np.full(size, 3, NUMPY[dtype]), np.full(size, 90_000, NUMPY[dtype])
        count(x, bins, other)
        counts = np.bincount(x, minlength=size)
        assert np.array_equal(bins, (3 + 2 * counts).astype(NUMPY[dtype]))
        assert np.array_equal(other, (90_000 - counts * (np.arange(size) % 2)).astype(NUMPY[dtype]))


@pytest.mark.sanitizer_core
def test_sums_of_vectors_and_matrices_by_index():
    vectors, matrices = oc.types.vector(3, oc.f32), oc.types.matrix(2, 2, oc.f64)

    @oc.kernel
    def scatter(
        x: array(oc.i32), v: oc.types.ndarray(dtype=vectors, ndim=2), m: oc.types.ndarray(dtype=matrices, ndim=1)
    ):
        for i in range(x.shape[0]):
            for j in range(2):
                v[x[i], j] += oc.Vector([1.0, 2.0, j])
            m[x[i]] -= oc.Matrix([[1.0, 0.0], [0.0, -1.0]])

    x = np.random.default_rng(6).integers(0, 9, 30_000).astype(np.int32)
    v, m = oc.Vector.ndarray(3, oc.f32, (9, 2)), oc.Matrix.ndarray(2, 2, oc.f64, (9,))
    scatter(x, v, m)
    counts = np.bincount(x, minlength=9)
    assert np.array_equal(v.to_numpy(), counts[:, None, None] * np.array([[1, 2, 0], [1, 2, 1]]))
    assert np.array_equal(m.to_numpy(), counts[:, None, None] * np.array([[-1, 0], [0, 1]]))


@pytest.mark.sanitizer_core
def test_sums_into_fields_of_every_layout():
    # Members of one cell, entries side by side and apart, blocks, and indices that begin below zero.
    a, b, c = oc.field(oc.f32), oc.field(oc.f64), oc.field(oc.i32)
    oc.root.dense(oc.i, 64).place(a, b, c)
    v = oc.Vector.field(2, oc.f32, shape=64)
    s = oc.Vector.field(3, oc.f32, shape=64, layout=oc.Layout.SOA)
    blocks = oc.field(oc.f32)
    oc.root.dense(oc.ij, (4, 4)).dense(oc.ij, (4, 4)).place(blocks)
    below = oc.field(oc.f32, shape=64, offset=-32)

    @oc.kernel
    def scatter(x: array(oc.i32)):
        for i in range(x.shape[0]):
            a[x[i]] += 1.0
            b[x[i]] -= 2.0
            c[x[i]] += 3
            v[x[i]] += oc.Vector([1.0, 2.0])
            s[x[i]] += oc.Vector([1.0, 2.0, 3.0])
            blocks[x[i] // 16 + x[i] % 3, x[i] % 13] += 1.0
            below[x[i] - 32] += 1.0

    for samples in (20_000, 10):
        for field, value in [(a, 1), (b, 1), (c, 1), (v, 0), (s, 0), (blocks, 0), (below, 0)]:
            field.fill(value)
        x = np.random.default_rng(1).integers(0, 64, samples).astype(np.int32)
        scatter(x)
        counts = np.bincount(x, minlength=64)
        assert np.array_equal(a.to_numpy(), 1 + counts)
        assert np.array_equal(b.to_numpy(), 1 - 2 * counts)
        assert np.array_equal(c.to_numpy(), 1 + 3 * counts)
        assert np.array_equal(v.to_numpy(), counts[:, None] * [1, 2])
        assert np.array_equal(s.to_numpy(), counts[:, None] * [1, 2, 3])
        expected = np.zeros((16, 16))
        np.add.at(expected, (x // 16 + x % 3, x % 13), 1)
        assert np.array_equal(blocks.to_numpy(), expected)
        assert np.array_equal(below.to_numpy(), counts)


def test_what_a_loop_reads_it_adds_to_in_place(arch):
    @oc.kernel
    def k(bins: array(oc.i32), seen: array(oc.i32)):
        oc.loop_config(serialize=True)
        for i in range(1000):
            bins[i % 7] += 1
            seen[i] = bins[i % 7]

    bins, seen = np.zeros(7, np.int32), np.zeros(1000, np.int32)
    k(bins, seen)
    assert np.array_equal(seen, np.arange(1000) // 7 + 1)

    @oc.kernel
    def parallel(bins: array(oc.i32), seen: array(oc.i32)):
        for i in range(5000):
            bins[i % 7] += 1
            seen[i] = bins[i % 7]

    bins, seen = np.zeros(7, np.int32), np.zeros(5000, np.int32)
    parallel(bins, seen)
    assert seen.min() >= 1 and bins.sum() == 5000


def test_launches_at_the_same_time_add_to_one_array():
    from concurrent.futures import ThreadPoolExecutor

    @oc.kernel
    def count(bins: oc.types.ndarray(dtype=oc.f32, ndim=1), n: oc.i32):
        for i in range(n):
            bins[i % 50] += 1.0

    bins = oc.ndarray(oc.f32, (50,))
    count(bins, 10_000)
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda _: count(bins, 10_000), range(40)))
    assert np.array_equal(bins.to_numpy(), np.full(50, 41 * 200, np.float32))


@pytest.mark.host_devices("one thread runs the iterations in order")
def test_a_failing_loop_leaves_what_it_added():
    oc.init(arch=oc.cpu, log_level="error", debug=True, cpu_max_num_threads=1)

    @oc.kernel
    def count(bins: array(oc.i32)):
        for i in range(10_000):
            assert i < 9_999
            bins[i % 10] += 1

    bins = np.zeros(10, np.int32)
    with pytest.raises(oc.OctantsAssertionError):
        count(bins)
    assert bins.sum() == 9_999
    with pytest.raises(oc.OctantsAssertionError):
        count(bins)
    assert bins.sum() == 2 * 9_999


def test_bit_operations_need_integers(arch):
    @oc.kernel
    def k(x: array(oc.f32)):
        oc.atomic_and(x[0], 1)

    with pytest.raises(oc.OctantsTypeError):
        k(np.zeros(1, dtype=np.float32))


def test_compare_and_swap_needs_integers(arch):
    @oc.kernel
    def k(x: array(oc.f32)):
        oc.atomic_cas(x[0], 1.0, 2.0)

    with pytest.raises(oc.OctantsTypeError):
        k(np.zeros(1, dtype=np.float32))


def test_the_target_must_be_writable(arch):
    @oc.kernel
    def k(x: array(oc.i32)):
        oc.atomic_add(x[0] + 1, 2)

    with pytest.raises(oc.OctantsCompilationError, match="atomic_add"):
        k(np.zeros(1, dtype=np.int32))


@pytest.mark.sanitizer_core
@pytest.mark.parametrize("layout", ["neighbour_first", "neighbour_last", "wide", "odd"])
def test_sums_leave_neighbouring_members_alone(arch, layout):
    """Bits beside a sum that any addition of reals would change: signalling NaNs."""
    oc.init(arch=getattr(oc, arch), cpu_max_num_threads=4, log_level="error")
    real, members = {
        "neighbour_first": (oc.f32, {"rgba": oc.u32, "w": oc.f32}),
        "neighbour_last": (oc.f32, {"w": oc.f32, "rgba": oc.u32}),
        "wide": (oc.f64, {"a": oc.u32, "w": oc.f64, "rgba": oc.u32}),
        "odd": (oc.f32, {"a": oc.u8, "w": oc.f32, "v": oc.types.vector(3, oc.f32), "rgba": oc.u32}),
    }[layout]
    field = oc.Struct.field(members, shape=37)
    signalling = np.uint32(0x7FA01234)

    @oc.kernel
    def poison(bits: oc.u32):
        for i in field:
            field[i].rgba = bits

    @oc.kernel
    def add(n: oc.i32):
        for i in range(n):
            field[i % 37].w += oc.cast(1.0, real)

    poison(signalling)
    add(37 * 400)
    assert np.array_equal(field.w.to_numpy(), np.full(37, 400.0))
    assert np.array_equal(field.rgba.to_numpy(), np.full(37, signalling))
    if layout == "odd":
        assert not field.v.to_numpy().any()
