"""Blocks: shared memory, barriers, reductions, scans, ranks of keys; against numpy."""

import lanes
import numpy as np
import pytest
from lanes import TYPES

import octants as oc
from octants.simt import block, subgroup

SIZES = (32, 64, 96, 128, 256)


def over_blocks(name, block_dim, threads, body):
    """What ``body(value, block_dim, dtype)`` gives on each thread."""
    dtype, numpy_type = lanes.types(name)

    @oc.kernel
    def go(x: oc.types.NDArray[dtype, 1], y: oc.types.NDArray[dtype, 1]):
        oc.loop_config(block_dim=block_dim)
        for i in range(threads):
            y[i] = body(x[i], block_dim, dtype)

    x, y = lanes.values(name, threads), np.zeros(threads, numpy_type)
    go(x, y)
    return x, y


@pytest.mark.parametrize("block_dim", SIZES)
@pytest.mark.parametrize("op", ["add", "min", "max"])
def test_reductions(arch, op, block_dim):
    for name in TYPES:
        x, y = over_blocks(name, block_dim, 3 * block_dim, getattr(block, f"reduce_{op}"))
        lanes.assert_close(y[::block_dim], lanes.reduced(op, x, block_dim), name)
        x, y = over_blocks(name, block_dim, 3 * block_dim, getattr(block, f"reduce_all_{op}"))
        tiles = lanes.tiles(y, block_dim).view(f"u{y.itemsize}")
        assert (tiles == tiles[:, :1]).all(), "the same bits on all threads"
        lanes.assert_close(y[::block_dim], lanes.reduced(op, x, block_dim), name)


@pytest.mark.parametrize("kind", ["inclusive", "exclusive"])
@pytest.mark.parametrize("block_dim", SIZES)
@pytest.mark.parametrize("op", ["add", "min", "max"])
def test_scans(arch, op, block_dim, kind):
    for name in TYPES:
        x, y = over_blocks(name, block_dim, 2 * block_dim, getattr(block, f"{kind}_{op}"))
        lanes.assert_close(y, getattr(lanes, kind)(op, x, block_dim), name)


@pytest.mark.parametrize("block_dim", [32, 160])
def test_operators_of_a_program(arch, block_dim):
    """Products of matrices do not commute; and these, of shears and turns, are exact."""
    mat = oc.types.matrix(2, 2, oc.i64)

    @oc.func
    def times(a, b):
        return a @ b

    @oc.kernel
    def go(x: oc.types.NDArray[mat, 1], y: oc.types.NDArray[mat, 2]):
        oc.loop_config(block_dim=block_dim)
        for i in range(2 * block_dim):
            y[0, i] = block.inclusive_scan(x[i], block_dim, times, mat)
            y[1, i] = block.exclusive_scan(x[i], block_dim, times, oc.Matrix([[1, 0], [0, 1]], dt=oc.i64), mat)
            y[2, i] = block.reduce(x[i], block_dim, times, mat)
            y[3, i] = block.reduce_all(x[i], block_dim, times, mat)

    random = np.random.default_rng(2)
    choices = np.array([[[1, 1], [0, 1]], [[1, 0], [1, 1]], [[0, -1], [1, 0]], [[1, -1], [0, 1]]])
    x = choices[random.integers(0, 4, 2 * block_dim)].astype(np.int64)
    y = np.zeros((4, 2 * block_dim, 2, 2), np.int64)
    go(x, y)
    for first in (0, block_dim):
        running = np.eye(2, dtype=np.int64)
        for i in range(first, first + block_dim):
            assert (y[1, i] == running).all()
            running = running @ x[i]
            assert (y[0, i] == running).all()
        assert (y[2, first] == running).all()
        assert (y[3, first : first + block_dim] == running).all()


def test_reductions_in_a_loop_share_memory_safely(arch):
    @oc.kernel
    def go(x: oc.types.NDArray[oc.i32, 1], y: oc.types.NDArray[oc.i32, 2]):
        oc.loop_config(block_dim=64)
        for i in range(128):
            v = x[i]
            for turn in range(4):
                total = block.reduce_all_add(v, 64, oc.i32)
                before = block.exclusive_add(v + turn, 64, oc.i32)
                y[turn, i] = total + before
                v = v ^ (total & 7)

    x = lanes.values("i32", 128)
    y = np.zeros((4, 128), np.int32)
    go(x, y)
    v = x.copy()
    for turn in range(4):
        total = lanes.reduced("add", v, 64).repeat(64)
        assert (y[turn] == total + lanes.exclusive("add", v + np.int32(turn), 64)).all()
        v = v ^ (total & 7)


@pytest.mark.parametrize("block_dim", [32, 48, 256])
def test_barriers_that_vote(arch, block_dim):
    @oc.kernel
    def go(x: oc.types.NDArray[oc.i32, 1], y: oc.types.NDArray[oc.i32, 2]):
        oc.loop_config(block_dim=block_dim)
        for i in range(4 * block_dim):
            y[0, i] = block.sync_all_nonzero(x[i])
            y[1, i] = block.sync_any_nonzero(x[i])
            y[2, i] = block.sync_count_nonzero(x[i])
            y[3, i] = block.sync_count_nonzero(x[i] > 2)

    x = np.random.default_rng(4).integers(0, 5, 4 * block_dim).astype(np.int32)
    x[:block_dim], x[block_dim : 2 * block_dim] = 0, -3
    y = np.zeros((4, 4 * block_dim), np.int32)
    go(x, y)
    t = lanes.tiles(x, block_dim)
    wanted = [(t != 0).all(1), (t != 0).any(1), (t != 0).sum(1), (t > 2).sum(1)]
    assert (y == np.stack(wanted).repeat(block_dim, axis=1)).all()


@pytest.mark.parametrize("bits,bit_start,num_bits", [(5, 0, 5), (6, 3, 4), (8, 24, 8), (8, 0, 0)])
def test_ranks_of_keys_are_stable(arch, bits, bit_start, num_bits):
    size = 1 << bits

    @oc.kernel
    def go(x: oc.types.NDArray[oc.u32, 1], y: oc.types.NDArray[oc.i32, 2]):
        oc.loop_config(block_dim=size)
        for i in range(2 * size):
            bins = block.SharedArray((size,), oc.i32)
            before = block.SharedArray((size,), oc.i32)
            y[0, i] = block.radix_rank_match_atomic_or(x[i], size, bits, bit_start, num_bits, bins, before)
            y[1, i] = bins[size - 1 - block.thread_idx()]
            y[2, i] = before[size - 1 - block.thread_idx()]

    x = lanes.bits("u32", 2 * size)
    y = np.zeros((3, 2 * size), np.int32)
    go(x, y)
    digits = (x >> bit_start) & ((1 << num_bits) - 1)
    for first in (0, size):
        at = slice(first, first + size)
        counts = np.bincount(digits[at], minlength=size)
        rank = np.empty(size, int)
        rank[np.argsort(digits[at], kind="stable")] = np.arange(size)
        assert (y[0, at] == rank).all() and (y[1, at][::-1] == counts).all()
        assert (y[2, at][::-1] == np.cumsum(counts) - counts).all()


# ---- shared memory -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", [*TYPES, "i8", "u8", "i16", "u16", "f16"])
def test_shared_arrays_of_every_type_and_rank(arch, name):
    dtype, numpy_type = lanes.types(name)

    @oc.kernel
    def go(x: oc.types.NDArray[dtype, 1], y: oc.types.NDArray[dtype, 2]):
        oc.loop_config(block_dim=64)
        for i in range(128):
            tid = block.thread_idx()
            line = block.SharedArray(64, dtype)
            plane = block.SharedArray((8, 9), dtype)
            space = block.SharedArray([4, 4, 4], dtype)
            line[tid] = x[i]
            plane[tid // 8, tid % 8] = x[i]
            space[tid // 16, tid // 4 % 4, tid % 4] = x[i]
            block.sync()
            other = 63 - tid
            y[0, i] = line[other]
            y[1, i] = plane[tid % 8, tid // 8]
            y[2, i] = space[other // 16, other // 4 % 4, other % 4]

    x, y = lanes.values(name, 128), np.zeros((3, 128), numpy_type)
    go(x, y)
    t = lanes.tiles(x, 64)
    assert (y[0] == t[:, ::-1].ravel()).all() and (y[2] == y[0]).all()
    assert (y[1] == t.reshape(2, 8, 8).transpose(0, 2, 1).ravel()).all()


def test_shared_arrays_of_vectors_and_matrices(arch):
    vec, mat = oc.types.vector(3, oc.f32), oc.types.matrix(2, 2, oc.i32)

    @oc.kernel
    def go(y: oc.types.NDArray[oc.f32, 2]):
        oc.loop_config(block_dim=32)
        for i in range(64):
            tid = block.thread_idx()
            vectors = block.SharedArray((32,), vec)
            matrices = block.SharedArray(32, mat)
            vectors[tid] = [i, i + 1, i + 2]
            matrices[tid] = oc.Matrix([[i, 1], [2, 3]])
            block.sync()
            v = vectors[31 - tid] + vectors[tid][1]
            m = matrices[tid ^ 1] @ matrices[tid]
            y[0, i], y[1, i], y[2, i] = v[0], v[2], m[0, 0]

    y = np.zeros((3, 64), np.float32)
    go(y)
    i = np.arange(64)
    other = i // 32 * 32 + 31 - i % 32
    assert (y == np.stack([other + i + 1, other + 2 + i + 1, (i ^ 1) * i + 2])).all()


def test_atomics_on_shared_memory_give_what_was_there(arch):
    @oc.kernel
    def go(x: oc.types.NDArray[oc.i32, 1], counts: oc.types.NDArray[oc.i32, 2], order: oc.types.NDArray[oc.i32, 1]):
        oc.loop_config(block_dim=128)
        for i in range(256):
            tid = block.thread_idx()
            bins = block.SharedArray(8, oc.i32)
            greatest = block.SharedArray(1, oc.i32)
            if tid < 8:
                bins[tid] = 0
                if tid == 0:
                    greatest[0] = -1
            block.sync()
            order[i] = oc.atomic_add(bins[x[i]], 1)
            oc.atomic_max(greatest[0], i)
            block.sync()
            if tid < 8:
                counts[i // 128, tid] = bins[tid]
                counts[i // 128, 8] = greatest[0]

    x = np.random.default_rng(1).integers(0, 8, 256).astype(np.int32)
    counts, order = np.zeros((2, 9), np.int32), np.zeros(256, np.int32)
    go(x, counts, order)
    for b in range(2):
        at = slice(128 * b, 128 * b + 128)
        assert (counts[b, :8] == np.bincount(x[at], minlength=8)).all() and counts[b, 8] == 128 * b + 127
        for digit in range(8):
            assert sorted(order[at][x[at] == digit]) == list(range(counts[b, digit]))


def test_funcs_take_shared_arrays_and_declare_their_own(arch):
    @oc.func
    def reverse(sh, tid, size: oc.template()):
        mine = sh[tid]
        block.sync()
        sh[size - 1 - tid] = mine
        block.sync()

    @oc.func
    def neighbour(value, tid):
        own = block.SharedArray((64,), oc.f32)
        own[tid] = value
        block.sync()
        got = own[(tid + 1) % 64]
        block.sync()
        return got

    @oc.kernel
    def go(x: oc.types.NDArray[oc.f32, 1]):
        oc.loop_config(block_dim=64)
        for i in range(128):
            tid = i % 64
            sh = block.SharedArray((64,), oc.f32)
            sh[tid] = x[i]
            block.sync()
            reverse(sh, tid, 64)
            x[i] = neighbour(neighbour(sh[tid], tid), tid)

    x = lanes.values("f32", 128)
    y = x.copy()
    go(y)
    assert (lanes.tiles(y, 64) == np.roll(lanes.tiles(x, 64)[:, ::-1], -2, axis=1)).all()


def test_arrays_in_ifs_and_inner_loops(arch):
    @oc.kernel
    def go(x: oc.types.NDArray[oc.i32, 1], y: oc.types.NDArray[oc.i32, 1], wide: oc.i32):
        oc.loop_config(block_dim=32)
        for i in range(96):
            tid = i % 32
            total = 0
            if wide != 0:
                a = block.SharedArray(64, oc.i32)
                a[tid] = x[i]
                a[tid + 32] = 2 * x[i]
                block.sync()
                total += a[63 - tid]
                block.sync()
            else:
                b = block.SharedArray(32, oc.i32)
                b[tid] = x[i]
                block.sync()
                total -= b[31 - tid]
                block.sync()
            for turn in range(3):
                c = block.SharedArray((1,), oc.i32)
                if tid == turn:
                    c[0] = x[i]
                block.sync()
                total += c[0]
                block.sync()
            y[i] = total

    x, y = lanes.values("i32", 96), np.zeros(96, np.int32)
    t = lanes.tiles(x, 32)
    for wide in (0, 1):
        go(x, y, wide)
        wanted = (2 if wide else -1) * t[:, ::-1] + t[:, :3].sum(1, keepdims=True)
        assert (y == wanted.ravel()).all()


def test_neighbours_of_an_ndrange_are_neighbours_in_a_block(arch):
    @oc.kernel
    def go(y: oc.types.NDArray[oc.i32, 4]):
        oc.loop_config(block_dim=16)
        for a, b, c in oc.ndrange(3, (2, 6), 8):
            tile = block.SharedArray((16,), oc.i32)
            tid = block.thread_idx()
            tile[tid] = a * 100 + b * 10 + c
            block.sync()
            y[a, b - 2, c, 0] = tile[15 - tid]
            y[a, b - 2, c, 1] = block.global_thread_idx()
            y[a, b - 2, c, 2] = oc.global_thread_idx() % 16 - tid
            y[a, b - 2, c, 3] = subgroup.invocation_id()

    y = np.zeros((3, 4, 8, 4), np.int32)
    go(y)
    a, b, c = np.indices((3, 4, 8))
    value = (a * 100 + (b + 2) * 10 + c).reshape(-1, 16)
    number = np.arange(96)
    assert (y[..., 0].reshape(-1, 16) == value[:, ::-1]).all() and (y[..., 1].ravel() == number).all()
    assert (y[..., 2] == 0).all() and (y[..., 3].ravel() == number % 16).all()


def test_a_block_leaves_as_a_whole(arch):
    @oc.kernel
    def go(x: oc.types.NDArray[oc.i32, 1], items: oc.i32):
        oc.loop_config(block_dim=32)
        for i in range(4 * 32):
            if i // 32 < items:
                sh = block.SharedArray(32, oc.i32)
                sh[i % 32] = i
                block.sync()
                x[i] = sh[31 - i % 32]

    x = np.full(128, -1, np.int32)
    go(x, 3)
    assert (x[:96].reshape(3, 32)[:, ::-1].ravel() == np.arange(96)).all() and (x[96:] == -1).all()


def test_blocks_that_claim_work_from_a_counter(arch):
    @oc.kernel
    def go(counter: oc.types.NDArray[oc.i32, 1], done: oc.types.NDArray[oc.i32, 2], items: oc.i32):
        oc.loop_config(block_dim=64)
        for i in range(2 * 64):
            tid = i % 64
            claimed = block.SharedArray(1, oc.i32)
            while True:
                if tid == 0:
                    claimed[0] = oc.atomic_add(counter[0], 1)
                block.sync()
                item = claimed[0]
                block.sync()
                if item >= items:
                    break
                done[item, tid] += item + tid

    counter, done = np.zeros(1, np.int32), np.zeros((9, 64), np.int32)
    go(counter, done, 9)
    assert counter[0] == 9 + 2 and (done == np.add.outer(np.arange(9), np.arange(64))).all()


def test_fences(arch):
    @oc.kernel
    def go(x: oc.types.NDArray[oc.i32, 1]):
        oc.loop_config(block_dim=32)
        for i in range(64):
            x[i] = i
            block.mem_fence()
            if i % 2 == 0:
                oc.simt.grid.mem_fence()
                x[i] += 1

    x = np.zeros(64, np.int32)
    go(x)
    assert (x == np.arange(64) + (np.arange(64) % 2 == 0)).all()


@pytest.mark.parametrize("size", [16, 32])
def test_block_dim_is_none_or_known_while_compiling(arch, size):
    @oc.kernel
    def go(x: oc.types.NDArray[oc.i32, 1], together: oc.template()):
        oc.loop_config(block_dim=oc.static(size if together else None))
        for i in range(64):
            if oc.static(together):
                x[i] = block.sync_count_nonzero(1)
            else:
                x[i] = -1

    x = np.zeros(64, np.int32)
    go(x, True)
    assert (x == size).all()
    go(x, False)
    assert (x == -1).all()


def test_ranks_of_keys_in_a_loop(arch):
    """The next call writes to what the threads still read of the one before, unless they wait."""
    n, rounds = 64, 3

    @oc.kernel
    def go(x: oc.types.NDArray[oc.u32, 2], y: oc.types.NDArray[oc.i32, 2], turns: oc.i32):
        oc.loop_config(block_dim=n)
        for i in range(n):
            bins, before = block.SharedArray(n, oc.i32), block.SharedArray(n, oc.i32)
            for turn in range(turns):
                y[turn, i] = block.radix_rank_match_atomic_or(x[turn, i], n, 6, 0, 6, bins, before)

    x = np.random.default_rng(3).integers(0, 64, (rounds, n)).astype(np.uint32)
    y = np.zeros((rounds, n), np.int32)
    go(x, y, rounds)
    for keys, ranks in zip(x, y):
        assert (keys[np.argsort(ranks)] == np.sort(keys)).all() and (np.sort(ranks) == np.arange(n)).all()


@pytest.mark.parametrize("threads", [32, 128])
def test_values_become_what_is_reduced_and_scanned(arch, threads):
    """`dtype` says as what values are combined, with any number of subgroups."""

    @oc.kernel
    def go(y: oc.types.NDArray[oc.i32, 2]):
        oc.loop_config(block_dim=threads)
        for i in range(threads):
            half = oc.cast(i, oc.f32) + 0.5
            y[0, i] = block.reduce_all_add(half, threads, oc.i32)
            y[1, i] = block.inclusive_add(half, threads, oc.i32)
            y[2, i] = block.exclusive_max(half, threads, oc.i32)

    y = np.zeros((3, threads), np.int32)
    go(y)
    i = np.arange(threads)
    assert (y[:2] == [np.full(threads, i.sum()), np.cumsum(i)]).all()
    assert y[2, 0] == np.iinfo(np.int32).min and (y[2, 1:] == i[:-1]).all()
