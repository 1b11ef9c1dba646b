"""Several lanes of a block at once, on CPUs: what lanes count of their numbers, and control flow that lanes decide, with blocks of any size; against numpy."""

import numpy as np
import pytest

import octants as oc
from octants.simt import block, subgroup

SIZES = (2, 3, 16, 33, 48, 64, 256)
BLOCKS = 3


def threads_of(size):
    """Numbers of threads, and of lanes in their blocks."""
    threads = np.arange(BLOCKS * size)
    return threads, threads % size


# ---- what lanes count ----------------------------------------------------------------------------------------------------


def quotient(t, n):
    return t // 16 + t // 3


def remainder(t, n):
    return t % 16 * 4 + t % 7


def masked(t, n):
    return (t & 12) + (t & -16) + (t | 5) + (t >> 2) + (t << 3)


def flipped(t, n):
    return (t ^ 1) + (t ^ 16) * 2


def beside(t, n):
    return (t + 1) % 32 + (t - 1) // 8 + 1


def backwards(t, n):
    return n - 1 - t + (n - t) // 4


def products(t, n):
    return t * 12 // 8 + t * 3 % 16 + (t * 4 + 2) // 4


def digits(t, n):
    return t // 4 % 4 * 64 + t % 4 * 16 + t // 16


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize(
    "number", [quotient, remainder, masked, flipped, beside, backwards, products, digits], ids=lambda f: f.__name__
)
def test_numbers_that_lanes_count(arch, number, size):
    oc.init(arch=getattr(oc, arch), log_level="error")
    of = oc.func(number)

    @oc.kernel
    def go(x: oc.types.NDArray[oc.i32, 1], y: oc.types.NDArray[oc.i32, 1], z: oc.types.NDArray[oc.i32, 1]):
        oc.loop_config(block_dim=size)
        for i in range(BLOCKS * size):
            s = block.SharedArray((size,), oc.i32)
            t = i % size
            s[t] = x[i]
            block.sync()
            y[i] = of(t, size)
            z[i] = s[of(t, size) % size]

    threads, t = threads_of(size)
    x = (threads * 7).astype(np.int32)
    y, z = np.zeros_like(x), np.zeros_like(x)
    go(x, y, z)
    assert (y == number(t, size)).all()
    assert (z == x[threads - t + number(t, size) % size]).all()


@pytest.mark.parametrize("first", [-40, 0, 5])
def test_loops_that_do_not_begin_at_zero(arch, first):
    """Quotients and remainders of negative numbers are rounded down."""
    oc.init(arch=getattr(oc, arch), log_level="error")

    @oc.kernel
    def go(y: oc.types.NDArray[oc.i32, 2]):
        oc.loop_config(block_dim=32)
        for i in range(first, first + 96):
            block.sync()
            y[i - first, 0] = i // 8
            y[i - first, 1] = i % 8
            y[i - first, 2] = i // 16 * 100 + (i & 7)

    y = np.zeros((96, 3), np.int32)
    go(y)
    i = np.arange(first, first + 96)
    assert (y == np.stack([i // 8, i % 8, i // 16 * 100 + (i & 7)], axis=1)).all()


@pytest.mark.parametrize("name", ["u1", "i8", "u8", "i16", "f16", "f32", "i64", "u64", "f64"])
@pytest.mark.parametrize("size", [3, 48, 128])
def test_values_of_any_type_outlive_a_barrier(arch, name, size):
    oc.init(arch=getattr(oc, arch), log_level="error")
    dtype = getattr(oc, name)

    @oc.kernel
    def go(x: oc.types.NDArray[oc.i32, 1], y: oc.types.NDArray[oc.f64, 1]):
        oc.loop_config(block_dim=size)
        for i in range(BLOCKS * size):
            s = block.SharedArray((size,), dtype)
            t = i % size
            own = oc.cast(x[i], dtype)
            s[size - 1 - t] = own
            block.sync()
            other = s[t]
            block.sync()
            s[t] = own
            block.sync()
            beside = s[t ^ 1 if (t ^ 1) < size else t]
            y[i] = oc.cast(own, oc.f64) + 256 * oc.cast(other, oc.f64) + 65536 * oc.cast(beside, oc.f64)

    threads, t = threads_of(size)
    x = np.random.default_rng(1).integers(0, 2 if name == "u1" else 100, len(threads)).astype(np.int32)
    y = np.zeros(len(threads))
    go(x, y)
    first = threads - t
    flip = np.where((t ^ 1) < size, t ^ 1, t)
    assert (y == x + 256.0 * x[first + size - 1 - t] + 65536.0 * x[first + flip]).all()


@pytest.mark.parametrize("name", ["u8", "u16"])
def test_narrow_numbers_that_wrap_between_lanes(arch, name):
    """An index of 8 bits starts again at 0 in the midst of the lanes of a vector."""
    oc.init(arch=getattr(oc, arch), log_level="error")
    dtype, size = getattr(oc, name), 256

    @oc.kernel
    def go(x: oc.types.NDArray[oc.f32, 1], y: oc.types.NDArray[oc.f32, 2]):
        oc.loop_config(block_dim=size)
        for i in range(BLOCKS * size):
            own = block.SharedArray((size,), oc.f32)
            t = i % size
            own[t] = x[i]
            block.sync()
            n = oc.cast(t, dtype) + oc.cast(65380, dtype)
            y[i, 0] = own[n % oc.cast(size, oc.i32)]
            y[i, 1] = own[oc.cast(n, oc.u8)] * 2.0 + 1.0
            y[i, 2] = own[oc.cast(n * oc.cast(3, dtype), oc.u8)] * 2.0 + 1.0

    threads, t = threads_of(size)
    x = np.random.default_rng(1).random(len(threads), np.float32)
    y = np.zeros((len(threads), 3), np.float32)
    go(x, y)
    n = (t + 65380) % (1 << int(name[1:]))
    first = threads - t
    assert (y[:, 0] == x[first + n % size]).all()
    assert (y[:, 1] == x[first + n % 256] * 2 + 1).all()
    assert (y[:, 2] == x[first + 3 * n % 256] * 2 + 1).all()


# ---- control flow --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", SIZES)
def test_lanes_that_decide_otherwise(arch, size):
    """Branches, loops that lanes leave at other times, and lanes that do nothing more."""
    oc.init(arch=getattr(oc, arch), log_level="error")

    @oc.kernel
    def go(x: oc.types.NDArray[oc.i32, 1], y: oc.types.NDArray[oc.i32, 1]):
        oc.loop_config(block_dim=size)
        for i in range(BLOCKS * size):
            s = block.SharedArray((size,), oc.i32)
            t = i % size
            s[t] = x[i]
            block.sync()
            total = 0
            if x[i] % 3 == 0:
                for k in range(t):
                    total += s[k]
                    if total > 900:
                        break
            elif x[i] % 3 == 1:
                k = t
                while k < size and s[k] % 5 != 0:
                    if s[k] % 2 == 0:
                        k += 1
                        continue
                    total += s[k]
                    k += 1
            else:
                for k in range(size):
                    total ^= s[(t + k) % size] * k
            block.sync()
            s[t] = total
            block.sync()
            if t % 4 == 3:
                continue
            y[i] = s[t] + s[size - 1 - t]

    threads, _ = threads_of(size)
    x = np.random.default_rng(size).integers(0, 100, len(threads)).astype(np.int32)
    y = np.zeros_like(x)
    go(x, y)
    wanted = np.zeros_like(x)
    for first in range(0, len(x), size):
        s = [int(v) for v in x[first : first + size]]
        totals = []
        for t in range(size):
            total = 0
            if s[t] % 3 == 0:
                for k in range(t):
                    total += s[k]
                    if total > 900:
                        break
            elif s[t] % 3 == 1:
                for k in range(t, size):
                    if s[k] % 5 == 0:
                        break
                    total += s[k] if s[k] % 2 else 0
            else:
                for k in range(size):
                    total ^= s[(t + k) % size] * k
            totals.append(total)
        for t in range(size):
            if t % 4 != 3:
                wanted[first + t] = totals[t] + totals[size - 1 - t]
    assert (y == wanted).all()


@pytest.mark.parametrize("size", [3, 32, 48, 64])
def test_what_loops_with_barriers_carry(arch, size):
    """Exchanged with each other, used behind the barrier, by other lanes, and yielded twice."""
    oc.init(arch=getattr(oc, arch), log_level="error")

    @oc.kernel
    def go(x: oc.types.NDArray[oc.i32, 1], y: oc.types.NDArray[oc.i32, 2], rounds: oc.i32):
        oc.loop_config(block_dim=size)
        for i in range(BLOCKS * size):
            s = block.SharedArray((size,), oc.i32)
            t = i % size
            a, b, c, d, e = x[i], t, 1, 0, t
            for k in range(rounds):
                s[t] = a
                block.sync()
                last = e
                e = a + k
                d = e
                a, b = b, a + s[size - 1 - t]
                c = c * 3 + last
                block.sync()
                if k % 2 == 0:
                    c += last
                    block.sync()
                    d = c - last
            for column, value in oc.static(enumerate((a, b, c, d, e))):
                y[i, column] = value

    threads, t = threads_of(size)
    x = np.random.default_rng(size).integers(0, 100, len(threads)).astype(np.int32)
    for rounds in (0, 1, 6):
        y = np.zeros((len(threads), 5), np.int32)
        go(x, y, rounds)
        a, b, c, d, e = x.copy(), t.astype(np.int32), np.ones_like(x), np.zeros_like(x), t.astype(np.int32)
        for k in range(rounds):
            s, last = a, e
            e = a + np.int32(k)
            d = e
            a, b = b, a + s[threads - t + size - 1 - t]
            c = c * np.int32(3) + last
            if k % 2 == 0:
                c = c + last
                d = c - last
        assert (y == np.stack([a, b, c, d, e], axis=1)).all()


@pytest.mark.parametrize("name", ["f32", "i64"])
def test_what_lanes_exchange_round_after_round(arch, name):
    """A lane asks for what another one had before this round, though that one has what it carries on already."""
    oc.init(arch=getattr(oc, arch), log_level="error")
    dtype, numpy_type = getattr(oc, name), np.dtype(name.replace("f", "float").replace("i", "int"))

    @oc.kernel
    def go(x: oc.types.NDArray[dtype, 1], y: oc.types.NDArray[dtype, 1], rounds: oc.i32):
        oc.loop_config(block_dim=64)
        for i in range(128):
            value = x[i]
            for k in range(rounds):
                value = value + 2 * subgroup.shuffle(value, (i + 1 + k) % 32)
            y[i] = value

    x = np.random.default_rng(2).integers(0, 9, 128).astype(numpy_type)
    y = np.zeros_like(x)
    go(x, y, 5)
    i, value = np.arange(128), x
    for k in range(5):
        value = value + 2 * value[i // 32 * 32 + (i + 1 + k) % 32]
    assert (y == value).all()


@pytest.mark.parametrize("size", [3, 32, 33, 64])
def test_lanes_read_nothing_where_they_do_not_run(arch, size):
    """A lane that does not run may name an element outside: here of a page that is not there."""
    oc.init(arch=getattr(oc, arch), log_level="error")

    @oc.kernel
    def go(x: oc.types.NDArray[oc.i32, 1], y: oc.types.NDArray[oc.i32, 1]):
        oc.loop_config(block_dim=size)
        for i in range(BLOCKS * size):
            block.sync()
            t = i % size
            if t % 2 == 0:
                y[i] = x[t // 2 * 3]
            else:
                y[i] = -1
            if t < 2:
                y[i] += x[t * 2000000 % 7]

    _, t = threads_of(size)
    x = np.arange(size // 2 * 3 + 8, dtype=np.int32)
    y = np.zeros(BLOCKS * size, np.int32)
    go(x, y)
    assert (y == np.where(t % 2 == 0, t // 2 * 3, -1) + np.where(t < 2, t * 2000000 % 7, 0)).all()


# ---- shared words --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", SIZES)
def test_lanes_that_write_the_same_word(arch, size):
    """All may write the same; and what they add, all of them do."""
    oc.init(arch=getattr(oc, arch), log_level="error")

    @oc.kernel
    def go(x: oc.types.NDArray[oc.i32, 1], y: oc.types.NDArray[oc.i32, 2]):
        oc.loop_config(block_dim=size)
        for i in range(BLOCKS * size):
            s = block.SharedArray((8,), oc.i32)
            t = i % size
            if t < 2:
                for k in range(4):
                    s[4 * t + k] = 0
            block.sync()
            s[0] = 5
            if x[i] > 0:
                s[1] = 7
            oc.atomic_add(s[2], x[i])
            oc.atomic_max(s[3 + t % 2], x[i])
            s[5 + t // size] = 9
            block.sync()
            for k in range(6):
                y[i, k] = s[k]

    x = np.random.default_rng(size).integers(1, 50, BLOCKS * size).astype(np.int32)
    y = np.zeros((BLOCKS * size, 6), np.int32)
    go(x, y)
    for first in range(0, len(x), size):
        own = x[first : first + size]
        wanted = [5, 7, own.sum(), own[::2].max(), own[1::2].max(), 9]
        assert (y[first : first + size] == wanted).all()


# ---- exchanges -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [16, 32, 48, 64, 96, 256])
@pytest.mark.parametrize("name", ["i8", "f16", "i32", "f64"])
def test_exchanges_with_a_lane_near_by(arch, name, size):
    oc.init(arch=getattr(oc, arch), log_level="error")
    dtype = getattr(oc, name)

    @oc.kernel
    def go(x: oc.types.NDArray[oc.i32, 1], y: oc.types.NDArray[oc.i32, 2]):
        oc.loop_config(block_dim=size)
        for i in range(BLOCKS * size):
            own = oc.cast(x[i], dtype)
            y[i, 0] = oc.cast(subgroup.shuffle_xor(own, 1), oc.i32)
            y[i, 1] = oc.cast(subgroup.shuffle_xor(own, 8), oc.i32)
            y[i, 2] = oc.cast(subgroup.shuffle(own, 5), oc.i32)
            y[i, 3] = oc.cast(subgroup.shuffle(own, (i * 3 + 1) % 16), oc.i32)
            y[i, 4] = oc.cast(subgroup.shuffle_up(own, 2), oc.i32)
            # All lanes that are asked run.
            if oc.static(size % 32 == 0):
                y[i, 5] = oc.cast(subgroup.shuffle_down(own, 3), oc.i32)

    threads, t = threads_of(size)
    x = np.random.default_rng(size).integers(0, 100, len(threads)).astype(np.int32)
    y = np.zeros((len(threads), 6), np.int32)
    go(x, y)
    lane = t % 32
    sources = [lane ^ 1, lane ^ 8, 0 * lane + 5, (threads * 3 + 1) % 16, lane - 2, lane + 3]
    for column, source in enumerate(sources[: 6 if size % 32 == 0 else 5]):
        known = (source >= 0) & (source < 32)
        wanted = x[np.where(known, threads - lane + source, 0)]
        assert (y[known, column] == wanted[known]).all(), column
