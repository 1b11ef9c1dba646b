"""Every name that the specification of the language has for what threads do together, and which of them take vectors and structs."""

import numpy as np
import pytest

import octants as oc
from octants.simt import block, grid, subgroup, warp

SCANNED = "add mul min max and or xor".split()
REDUCED = "add min max".split()
REDUCTIONS = [f"{kind}_{op}" for kind in ("reduce", "reduce_all", "segmented_reduce") for op in REDUCED]
SCANS = [f"{kind}_{op}" for kind in ("inclusive", "exclusive") for op in SCANNED]
TILED = ["all_true", "any_true", "all_equal", *REDUCTIONS, *SCANS, "bitonic_sort_kv"]

NAMES = {
    block: [
        *"sync sync_all_nonzero sync_any_nonzero sync_count_nonzero mem_fence mem_sync thread_idx global_thread_idx SharedArray".split(),
        *(f"{kind}_{op}" for kind in ("reduce", "reduce_all", "inclusive", "exclusive") for op in REDUCED),
        *"reduce reduce_all inclusive_scan exclusive_scan radix_rank_match_atomic_or".split(),
    ],
    subgroup: [
        *"shuffle shuffle_down shuffle_up shuffle_xor broadcast broadcast_first invocation_id group_size log2_group_size".split(),
        *"elect sync mem_fence barrier memory_barrier ballot_full_subgroup ballot_first_n ballot".split(),
        *(f"lanemask_{kind}" for kind in "lt le eq gt ge".split()),
        *TILED,
        *(f"{name}_tiled" for name in TILED),
    ],
    warp: "all_nonzero any_nonzero unique ballot shfl_sync_i32 shfl_sync_f32 shfl_up_i32 shfl_up_f32 shfl_down_i32 shfl_down_f32 "
    "shfl_xor_i32 match_any match_all active_mask sync".split(),
    grid: ["mem_fence", "memfence"],
    oc.simt: ["block", "subgroup", "warp", "grid", "Tile16x16", "Tile32x32"],
    oc: ["block_local", "cache_read_only", "assume_in_range", "global_thread_idx", "outer"],
}


@pytest.mark.no_device
def test_names():
    for module, names in NAMES.items():
        missing = [name for name in names if not hasattr(module, name)]
        assert not missing, (module.__name__, missing)
        listed = getattr(module, "__all__", names)
        assert [name for name in names if name not in listed] == []
    assert (subgroup.group_size(), subgroup.log2_group_size()) == (32, 5)


Pair = oc.types.struct(at=oc.types.vector(2, oc.f32), kind=oc.i32)


def test_values_that_are_broadcast_may_be_structs(arch):
    @oc.kernel
    def go(y: oc.types.NDArray[oc.f32, 2]):
        oc.loop_config(block_dim=32)
        for i in range(64):
            p = Pair(at=oc.Vector([i, 2.0 * i]), kind=3 * i)
            q, r = subgroup.broadcast(p, 5), subgroup.broadcast_first(p)
            y[i, 0], y[i, 1], y[i, 2], y[i, 3] = q.at.x, q.kind, r.at.y, r.kind

    y = np.zeros((64, 4), np.float32)
    go(y)
    first = np.arange(64) // 32 * 32
    assert (y == np.stack([first + 5, 3 * first + 15, 2 * first, 3 * first], axis=1)).all()


@pytest.mark.parametrize("kind", ["subgroup", "tiled", "block"])
def test_vectors_are_combined_entry_by_entry(arch, kind):
    vec = oc.types.vector(3, oc.i32)

    @oc.kernel
    def go(x: oc.types.NDArray[vec, 1], y: oc.types.NDArray[vec, 2]):
        oc.loop_config(block_dim=64)
        for i in range(64):
            v = x[i]
            if oc.static(kind == "subgroup"):
                y[0, i], y[1, i] = subgroup.reduce_all_add(v), subgroup.inclusive_add(v)
                y[2, i], y[3, i] = subgroup.exclusive_add(v), subgroup.reduce_all_max(v)
            elif oc.static(kind == "tiled"):
                y[0, i], y[1, i] = subgroup.reduce_all_add_tiled(v, 3), subgroup.inclusive_add_tiled(v, 3)
                y[2, i], y[3, i] = subgroup.exclusive_add_tiled(v, 3), subgroup.reduce_all_max_tiled(v, 3)
            else:
                y[0, i], y[1, i] = block.reduce_all_add(v, 64, vec), block.inclusive_add(v, 64, vec)
                y[2, i], y[3, i] = block.exclusive_add(v, 64, vec), block.reduce_all_max(v, 64, vec)

    x = np.random.default_rng(0).integers(-99, 99, (64, 3)).astype(np.int32)
    y = np.zeros((4, 64, 3), np.int32)
    go(x, y)
    size = {"subgroup": 32, "tiled": 8, "block": 64}[kind]
    runs = x.reshape(-1, size, 3)
    sums = np.cumsum(runs, axis=1)
    wanted = np.stack([np.broadcast_to(runs.sum(1, keepdims=True), runs.shape), sums, sums - runs])
    assert (y[:3] == wanted.reshape(3, 64, 3)).all()
    assert (y[3] == np.broadcast_to(runs.max(1, keepdims=True), runs.shape).reshape(64, 3)).all()
