"""What lanes tell each other: shuffles, votes, ballots; and who they are."""

import warnings

import lanes
import numpy as np
import pytest
from lanes import THREADS, TYPES

import octants as oc
from octants.simt import subgroup, warp

LANE = np.arange(THREADS) % 32
FIRST = np.arange(THREADS) - LANE


@pytest.mark.parametrize("name", [*TYPES, "f16", "i16", "u8"])
def test_shuffles(arch, name):
    dtype, numpy_type = lanes.types(name)

    @oc.kernel
    def go(x: oc.types.NDArray[dtype, 1], y: oc.types.NDArray[dtype, 2]):
        oc.loop_config(block_dim=64)
        for i in range(THREADS):
            lane = subgroup.invocation_id()
            y[0, i] = subgroup.shuffle(x[i], oc.u32((lane * 7 + 3) % 32))
            y[1, i] = subgroup.shuffle_up(x[i], oc.u32(5))
            y[2, i] = subgroup.shuffle_down(x[i], 3)
            y[3, i] = subgroup.shuffle_xor(x[i], oc.u32(19))
            y[4, i] = subgroup.broadcast(x[i], oc.u32(9))
            y[5, i] = subgroup.broadcast_first(x[i])

    x = lanes.values(name)
    y = np.zeros((6, THREADS), numpy_type)
    go(x, y)
    assert (y[0] == x[FIRST + (LANE * 7 + 3) % 32]).all()
    assert (y[1] == x[FIRST + np.where(LANE >= 5, LANE - 5, LANE)]).all()
    assert (y[2] == x[FIRST + np.where(LANE < 29, LANE + 3, LANE)]).all()
    assert (y[3] == x[FIRST + (LANE ^ 19)]).all()
    assert (y[4] == x[FIRST + 9]).all() and (y[5] == x[FIRST]).all()


def test_vectors_matrices_and_structs_are_shuffled_entry_by_entry(arch):
    particle = oc.types.struct(at=oc.types.vector(2, oc.f64), mass=oc.f32, kind=oc.i32)
    mat = oc.types.matrix(2, 2, oc.f32)

    @oc.kernel
    def go(x: oc.types.NDArray[mat, 1], y: oc.types.NDArray[mat, 1], z: oc.types.NDArray[oc.f64, 2]):
        oc.loop_config(block_dim=32)
        for i in range(64):
            y[i] = subgroup.shuffle_xor(x[i], 1)
            p = particle(at=oc.Vector([i, 2 * i], dt=oc.f64), mass=0.5 * i, kind=i)
            q = subgroup.shuffle(p, 31 - subgroup.invocation_id())
            z[0, i], z[1, i], z[2, i], z[3, i] = q.at[0], q.at[1], q.mass, q.kind

    x = lanes.values("f32", 256).reshape(64, 2, 2)
    y, z = np.zeros((64, 2, 2), np.float32), np.zeros((4, 64))
    go(x, y, z)
    assert (y == x[np.arange(64) ^ 1]).all()
    other = np.arange(64) // 32 * 32 + 31 - np.arange(64) % 32
    assert (z == np.stack([other, 2 * other, 0.5 * other, other])).all()


def test_who_a_lane_is(arch):
    @oc.kernel
    def go(y: oc.types.NDArray[oc.i32, 2]):
        oc.loop_config(block_dim=96)
        for i in range(THREADS):
            y[0, i] = subgroup.invocation_id()
            y[1, i] = subgroup.elect()
            y[2, i] = subgroup.group_size()
            y[3, i] = 1 << subgroup.log2_group_size()

    y = np.zeros((4, THREADS), np.int32)
    go(y)
    assert (y == np.stack([LANE, LANE == 0, LANE * 0 + 32, LANE * 0 + 32])).all()
    assert subgroup.group_size() == 32 and subgroup.log2_group_size() == 5


@pytest.mark.parametrize("predicate", ["i32", "bool"])
def test_votes_of_tiles(arch, predicate):
    @oc.kernel
    def go(x: oc.types.NDArray[oc.i32, 1], y: oc.types.NDArray[oc.i32, 3]):
        oc.loop_config(block_dim=64)
        for i in range(THREADS):
            if oc.static(predicate == "bool"):
                for size in oc.static(range(6)):
                    y[0, size, i] = subgroup.all_true_tiled(x[i] != 0, size)
                    y[1, size, i] = subgroup.any_true_tiled(x[i] != 0, size)
                y[0, 6, i] = subgroup.all_true(x[i] != 0)
                y[1, 6, i] = subgroup.any_true(x[i] != 0)
            else:
                for size in oc.static(range(6)):
                    y[0, size, i] = subgroup.all_true_tiled(x[i], size)
                    y[1, size, i] = subgroup.any_true_tiled(x[i], size)
                y[0, 6, i] = subgroup.all_true(x[i])
                y[1, 6, i] = subgroup.any_true(x[i])

    random = np.random.default_rng(7)
    x = random.choice([0, 2, -3], THREADS).astype(np.int32)
    x[:32], x[32:64], x[64:80] = 5, 0, 1
    y = np.zeros((2, 7, THREADS), np.int32)
    go(x, y)
    for row, size in enumerate([1, 2, 4, 8, 16, 32, 32]):
        assert (y[0, row] == (lanes.tiles(x, size) != 0).all(1).repeat(size)).all()
        assert (y[1, row] == (lanes.tiles(x, size) != 0).any(1).repeat(size)).all()


@pytest.mark.parametrize("name", TYPES)
def test_whether_all_lanes_have_the_same(arch, name):
    dtype, numpy_type = lanes.types(name)

    @oc.kernel
    def go(x: oc.types.NDArray[dtype, 1], y: oc.types.NDArray[oc.i32, 2]):
        oc.loop_config(block_dim=64)
        for i in range(THREADS):
            for size in oc.static(range(6)):
                y[size, i] = subgroup.all_equal_tiled(x[i], size)
            y[6, i] = subgroup.all_equal(x[i])

    x = (np.arange(THREADS) // 8 % 3).astype(numpy_type)
    x[:64], x[40] = 7, 9
    y = np.zeros((7, THREADS), np.int32)
    go(x, y)
    for row, size in enumerate([1, 2, 4, 8, 16, 32, 32]):
        tiles = lanes.tiles(x, size)
        assert (y[row] == (tiles == tiles[:, :1]).all(1).repeat(size)).all()


def test_a_nan_is_equal_to_nothing_and_zeros_are_equal(arch):
    oc.init(arch=oc.cfg.arch, fast_math=False, log_level="error")

    @oc.kernel
    def go(x: oc.types.NDArray[oc.f32, 1], y: oc.types.NDArray[oc.i32, 1]):
        oc.loop_config(block_dim=64)
        for i in range(64):
            y[i] = subgroup.all_equal_tiled(x[i], 4)

    x = np.zeros(64, np.float32)
    x[0:16], x[17], x[40] = np.nan, -0.0, np.nan
    y = np.zeros(64, np.int32)
    go(x, y)
    assert y[::16].tolist() == [0, 1, 0, 1]


def test_ballots(arch):
    @oc.kernel
    def go(x: oc.types.NDArray[oc.i32, 1], y: oc.types.NDArray[oc.u64, 2], z: oc.types.NDArray[oc.u32, 2]):
        oc.loop_config(block_dim=64)
        for i in range(THREADS):
            y[0, i] = subgroup.ballot(x[i])
            y[1, i] = subgroup.ballot(oc.cast(x[i] > 1, oc.i32)) >> oc.u64(subgroup.invocation_id())
            for n in oc.static(range(1, 33)):
                z[n, i] = subgroup.ballot_first_n(x[i], n)

    x = np.random.default_rng(8).integers(-1, 3, THREADS).astype(np.int32)
    y, z = np.zeros((2, THREADS), np.uint64), np.zeros((33, THREADS), np.uint32)
    go(x, y, z)
    weights = np.uint64(1) << np.arange(32, dtype=np.uint64)
    ballot = ((lanes.tiles(x, 32) != 0) * weights).sum(1).repeat(32)
    assert (y[0] == ballot).all()
    above = ((lanes.tiles(x, 32) > 1) * weights).sum(1).repeat(32)
    assert (y[1] == above >> LANE.astype(np.uint64)).all()
    for n in range(1, 33):
        assert (z[n] == ballot & np.uint64((1 << n) - 1)).all()


def test_masks_of_lanes(arch):
    @oc.kernel
    def go(y: oc.types.NDArray[oc.u32, 2]):
        oc.loop_config(block_dim=32)
        for i in range(32):
            y[0, i] = subgroup.lanemask_lt(i)
            y[1, i] = subgroup.lanemask_le(i)
            y[2, i] = subgroup.lanemask_eq(oc.u32(i))
            y[3, i] = subgroup.lanemask_gt(i)
            y[4, i] = subgroup.lanemask_ge(subgroup.invocation_id())

    y = np.zeros((5, 32), np.uint32)
    go(y)
    for lane in range(32):
        below, own, all_lanes = (1 << lane) - 1, 1 << lane, (1 << 32) - 1
        assert y[:, lane].tolist() == [below, below | own, own, all_lanes ^ below ^ own, all_lanes ^ below]


def test_warps_by_the_names_of_cuda(arch):
    @oc.kernel
    def go(x: oc.types.NDArray[oc.i32, 1], y: oc.types.NDArray[oc.i32, 2], z: oc.types.NDArray[oc.u32, 2]):
        oc.loop_config(block_dim=64)
        for i in range(THREADS):
            mask, v = oc.u32(0xFFFFFFFF), x[i]
            y[0, i] = warp.all_nonzero(mask, v)
            y[1, i] = warp.any_nonzero(mask, v)
            y[2, i] = warp.unique(mask, v)
            y[3, i] = warp.all_nonzero(oc.u32(0b101), v)
            y[4, i] = warp.shfl_sync_i32(mask, v, 7)
            y[5, i] = warp.shfl_up_i32(mask, v, 2)
            y[6, i] = warp.shfl_down_i32(mask, v, 4)
            y[7, i] = warp.shfl_xor_i32(mask, v, 16)
            y[8, i] = oc.cast(warp.shfl_sync_f32(mask, 0.5 * v, 3) * 2, oc.i32)
            y[9, i] = oc.cast(warp.shfl_up_f32(mask, 0.5 * v, 1) * 2, oc.i32)
            y[10, i] = oc.cast(warp.shfl_down_f32(mask, 0.5 * v, 1) * 2, oc.i32)
            warp.sync(mask)
            z[0, i] = warp.ballot(v)
            z[1, i] = warp.active_mask()
            z[2, i] = warp.match_any(mask, v)
            z[3, i] = warp.match_all(mask, v)
            z[4, i] = warp.match_all(oc.u32(0b11), v)

    x = np.random.default_rng(9).integers(0, 3, THREADS).astype(np.int32)
    x[32:64], x[64:96], x[96:98] = 0, 2, 1
    y, z = np.zeros((11, THREADS), np.int32), np.zeros((5, THREADS), np.uint32)
    go(x, y, z)
    t = lanes.tiles(x, 32)
    assert (y[0] == (t != 0).all(1).repeat(32)).all() and (y[1] == (t != 0).any(1).repeat(32)).all()
    assert (y[2] == ((t != 0) == (t[:, :1] != 0)).all(1).repeat(32)).all()
    assert (y[3] == (t[:, [0, 2]] != 0).all(1).repeat(32)).all()
    up = lambda n: x[FIRST + np.where(n <= LANE, LANE - n, LANE)]  # noqa: E731
    down = lambda n: x[FIRST + np.where(LANE + n < 32, LANE + n, LANE)]  # noqa: E731
    assert (y[4] == x[FIRST + 7]).all() and (y[5] == up(2)).all() and (y[6] == down(4)).all()
    assert (y[7] == x[FIRST + (LANE ^ 16)]).all() and (y[8] == x[FIRST + 3]).all()
    assert (y[9] == up(1)).all() and (y[10] == down(1)).all()
    weights = np.uint64(1) << np.arange(32, dtype=np.uint64)
    assert (z[0] == ((t != 0) * weights).sum(1).repeat(32)).all() and (z[1] == 0xFFFFFFFF).all()
    assert (z[2] == ((t[:, None, :] == t[:, :, None]) * weights).sum(2).ravel()).all()
    assert (z[3] == np.where((t == t[:, :1]).all(1), 0xFFFFFFFF, 0).repeat(32)).all()
    assert (z[4] == np.where(t[:, 0] == t[:, 1], 3, 0).repeat(32)).all()


def test_lanes_see_each_others_writes_behind_a_barrier(arch):
    @oc.kernel
    def go(x: oc.types.NDArray[oc.i32, 1], y: oc.types.NDArray[oc.i32, 1]):
        oc.loop_config(block_dim=128)
        for i in range(256):
            x[i] = i * i
            subgroup.sync()
            y[i] = x[i ^ 31]
            subgroup.mem_fence()

    x, y = np.zeros(256, np.int32), np.zeros(256, np.int32)
    go(x, y)
    assert (y == (np.arange(256) ^ 31) ** 2).all()


def test_old_names_warn(arch):
    @oc.kernel
    def go(y: oc.types.NDArray[oc.u64, 1]):
        oc.loop_config(block_dim=32)
        for i in range(32):
            subgroup.barrier()
            subgroup.memory_barrier()
            y[i] = subgroup.ballot_full_subgroup(i % 2)
            oc.simt.block.mem_sync()
            oc.simt.grid.memfence()

    y = np.zeros(32, np.uint64)
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        go(y)
        first = len(told)
        go(y)
    # While compiling, and not at each launch; at the program's own lines.
    assert len(told) == first == 5
    assert (y == 0xAAAAAAAA).all()
    texts = [str(each.message) for each in told if each.category is DeprecationWarning]
    for old, new in [
        ("subgroup.barrier", "subgroup.sync"),
        ("subgroup.memory_barrier", "subgroup.mem_fence"),
        ("subgroup.ballot_full_subgroup", "subgroup.ballot"),
        ("block.mem_sync", "block.mem_fence"),
        ("grid.memfence", "grid.mem_fence"),
    ]:
        assert [
            f"simt.{old}() is deprecated: use simt.{new}()" in text and old in text.split("|")[2] for text in texts
        ].count(True) == 1
