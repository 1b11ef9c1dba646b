"""Reductions, scans, segments and sorting over subgroups and their tiles, against numpy."""

import lanes
import numpy as np
import pytest
from lanes import THREADS, TYPES

import octants as oc
from octants.simt import subgroup

SIZES = range(6)


def over_tiles(op, name, x, block_dim=64):
    """What ``op(value, log2_size)`` gives on each thread, for each size of tiles."""
    dtype, numpy_type = lanes.types(name)

    @oc.kernel
    def go(x: oc.types.NDArray[dtype, 1], y: oc.types.NDArray[dtype, 2]):
        oc.loop_config(block_dim=block_dim)
        for i in range(THREADS):
            for size in oc.static(range(6)):
                y[size, i] = op(x[i], size)

    y = np.zeros((6, THREADS), numpy_type)
    go(x, y)
    return y


def over_subgroups(op, name, x):
    dtype, numpy_type = lanes.types(name)

    @oc.kernel
    def go(x: oc.types.NDArray[dtype, 1], y: oc.types.NDArray[dtype, 1]):
        oc.loop_config(block_dim=96)
        for i in range(THREADS):
            y[i] = op(x[i])

    y = np.zeros(THREADS, numpy_type)
    go(x, y)
    return y


@pytest.mark.parametrize("name", TYPES)
@pytest.mark.parametrize("op", ["add", "min", "max"])
def test_reductions_are_on_the_first_lane_of_a_tile(arch, op, name):
    x = lanes.values(name)
    y = over_tiles(getattr(subgroup, f"reduce_{op}_tiled"), name, x)
    for size in SIZES:
        lanes.assert_close(y[size, :: 1 << size], lanes.reduced(op, x, 1 << size), f"2**{size} lanes")
    whole = over_subgroups(getattr(subgroup, f"reduce_{op}"), name, x)
    lanes.assert_close(whole[::32], lanes.reduced(op, x, 32))


@pytest.mark.parametrize("name", TYPES)
@pytest.mark.parametrize("op", ["add", "min", "max"])
def test_reductions_to_all_have_the_same_bits_on_all_lanes(arch, op, name):
    x = lanes.values(name)
    y = over_tiles(getattr(subgroup, f"reduce_all_{op}_tiled"), name, x)
    for size in SIZES:
        tiles = lanes.tiles(y[size], 1 << size)
        assert (tiles.view(f"u{x.itemsize}") == tiles[:, :1].view(f"u{x.itemsize}")).all()
        lanes.assert_close(tiles[:, 0], lanes.reduced(op, x, 1 << size), f"2**{size} lanes")
    whole = over_subgroups(getattr(subgroup, f"reduce_all_{op}"), name, x)
    lanes.assert_close(whole, lanes.reduced(op, x, 32).repeat(32))


@pytest.mark.parametrize("name", ["f32", "f64"])
def test_a_sum_of_products_has_the_same_bits_on_all_lanes(arch, name):
    dtype, numpy_type = lanes.types(name)

    @oc.kernel
    def go(x: oc.types.NDArray[dtype, 1], y: oc.types.NDArray[dtype, 1]):
        oc.loop_config(block_dim=32)
        for i in range(THREADS):
            y[i] = subgroup.reduce_all_add_tiled(x[i] * x[THREADS - 1 - i], 5)

    x, y = lanes.values(name), np.zeros(THREADS, numpy_type)
    go(x, y)
    tiles = lanes.tiles(y, 32).view(f"u{x.itemsize}")
    assert (tiles == tiles[:, :1]).all()


def test_a_least_of_zeros_has_the_same_bits_on_all_lanes(arch):
    x = np.where(np.arange(THREADS) % 3 == 0, np.float32(-0.0), np.float32(0.0))
    for op in (subgroup.reduce_all_min, subgroup.reduce_all_max):
        tiles = lanes.tiles(over_subgroups(op, "f32", x), 32).view("u4")
        assert (tiles == tiles[:, :1]).all()


@pytest.mark.parametrize("kind", ["inclusive", "exclusive"])
@pytest.mark.parametrize("name", TYPES)
@pytest.mark.parametrize("op", ["add", "mul", "min", "max"])
def test_scans(arch, op, name, kind):
    x = lanes.values(name)
    if op == "mul":
        x = x % 3 + 1 if name[0] != "f" else 1 + x / 8
        x = x.astype(lanes.types(name)[1])
    with np.errstate(over="ignore"):
        y = over_tiles(getattr(subgroup, f"{kind}_{op}_tiled"), name, x)
        for size in SIZES:
            lanes.assert_close(y[size], getattr(lanes, kind)(op, x, 1 << size), f"2**{size} lanes")
        lanes.assert_close(over_subgroups(getattr(subgroup, f"{kind}_{op}"), name, x), getattr(lanes, kind)(op, x, 32))


@pytest.mark.parametrize("kind", ["inclusive", "exclusive"])
@pytest.mark.parametrize("name", ["i32", "u32", "i64", "u64"])
@pytest.mark.parametrize("op", ["and", "or", "xor"])
def test_scans_of_bits(arch, op, name, kind):
    x = lanes.bits(name)
    y = over_tiles(getattr(subgroup, f"{kind}_{op}_tiled"), name, x)
    for size in SIZES:
        assert (y[size] == getattr(lanes, kind)(op, x, 1 << size)).all()
    whole = over_subgroups(getattr(subgroup, f"{kind}_{op}"), name, x)
    assert (whole == getattr(lanes, kind)(op, x, 32)).all()


def segmented(op, x, heads, size):
    """What each lane has: from the last head of its tile, or its first lane, up to it."""
    out = np.empty_like(x)
    for i in range(len(x)):
        first = i - i % size
        for head in range(first, i + 1):
            if heads[head]:
                first = head
        out[i] = lanes.COMBINE[op].reduce(x[first : i + 1], dtype=x.dtype)
    return out


@pytest.mark.parametrize("name", TYPES)
@pytest.mark.parametrize("op", ["add", "min", "max"])
def test_segments_begin_at_heads_and_with_tiles(arch, op, name):
    dtype, numpy_type = lanes.types(name)
    tiled, whole = (getattr(subgroup, f"segmented_reduce_{op}{end}") for end in ("_tiled", ""))

    @oc.kernel
    def go(
        x: oc.types.NDArray[dtype, 1],
        heads: oc.types.NDArray[oc.i32, 1],
        y: oc.types.NDArray[dtype, 2],
    ):
        oc.loop_config(block_dim=64)
        for i in range(THREADS):
            for size in oc.static(range(6)):
                y[size, i] = tiled(x[i], heads[i], size)
            y[6, i] = whole(x[i], heads[i] != 0)

    x, y = lanes.values(name), np.zeros((7, THREADS), numpy_type)
    heads = np.random.default_rng(3).choice([0, 0, 0, 0, 7, -1], THREADS).astype(np.int32)
    go(x, heads, y)
    for size in SIZES:
        lanes.assert_close(y[size], segmented(op, x, heads, 1 << size), f"2**{size} lanes")
    lanes.assert_close(y[6], segmented(op, x, heads, 32))


@pytest.mark.parametrize("key,value", [("i32", "u32"), ("u32", "f32"), ("f32", "i32"), ("u64", "i32"), ("f64", "i64")])
def test_pairs_are_sorted_by_key_and_then_by_value(arch, key, value):
    (key_type, numpy_key), (value_type, numpy_value) = lanes.types(key), lanes.types(value)

    @oc.kernel
    def go(
        k: oc.types.NDArray[key_type, 1],
        v: oc.types.NDArray[value_type, 1],
        ks: oc.types.NDArray[key_type, 2],
        vs: oc.types.NDArray[value_type, 2],
    ):
        oc.loop_config(block_dim=64)
        for i in range(THREADS):
            for size in oc.static(range(6)):
                a, b = subgroup.bitonic_sort_kv_tiled(k[i], v[i], size)
                ks[size, i] = a
                vs[size, i] = b
            last, of_last = subgroup.bitonic_sort_kv(k[i], v[i])
            ks[6, i] = last
            vs[6, i] = of_last

    random = np.random.default_rng(5)
    k = random.integers(0, 9, THREADS).astype(numpy_key)
    v = random.integers(0, 1000, THREADS).astype(numpy_value)
    ks, vs = np.zeros((7, THREADS), numpy_key), np.zeros((7, THREADS), numpy_value)
    go(k, v, ks, vs)
    for row, size in enumerate([1, 2, 4, 8, 16, 32, 32]):
        for first in range(0, THREADS, size):
            at = slice(first, first + size)
            order = np.lexsort((v[at], k[at]))
            assert (ks[row, at] == k[at][order]).all() and (vs[row, at] == v[at][order]).all()


def test_sorting_loses_no_pair_to_a_nan(arch):
    @oc.kernel
    def go(k: oc.types.NDArray[oc.f32, 1], v: oc.types.NDArray[oc.i32, 1]):
        oc.loop_config(block_dim=32)
        for i in range(32):
            key, value = subgroup.bitonic_sort_kv(k[i], i)
            k[i] = key
            v[i] = value

    k = np.random.default_rng(6).permutation(32).astype(np.float32)
    k[[3, 20]] = np.nan
    before, v = k.copy(), np.zeros(32, np.int32)
    go(k, v)
    assert sorted(v.tolist()) == list(range(32))
    np.testing.assert_array_equal(k, before[v])


def test_an_operator_need_not_commute(arch):
    """Combining pairs by taking both ends tells the order in which they are combined."""

    @oc.func
    def joined(a, b):
        # (first, last, whether all between follow each other)
        return oc.Vector([a[0], b[1], a[2] & b[2] & oc.cast(a[1] + 1 == b[0], oc.i32)])

    from octants.simt._subgroup_reductions import reduce_all_tiled, reduce_tiled
    from octants.simt._subgroup_scans import inclusive_tiled

    @oc.kernel
    def go(y: oc.types.NDArray[oc.types.vector(3, oc.i32), 2]):
        oc.loop_config(block_dim=64)
        for i in range(64):
            own = oc.Vector([i, i, 1])
            y[0, i] = reduce_tiled(own, joined, 4)
            y[1, i] = reduce_all_tiled(own, joined, 3)
            y[2, i] = inclusive_tiled(own, joined, 5)

    y = np.zeros((3, 64, 3), np.int32)
    go(y)
    i = np.arange(64)
    assert y[0, ::16].tolist() == [[a, a + 15, 1] for a in range(0, 64, 16)]
    assert (y[1] == np.stack([i - i % 8, i - i % 8 + 7, i * 0 + 1], 1)).all()
    assert (y[2] == np.stack([i - i % 32, i, i * 0 + 1], 1)).all()


def test_vectors_are_reduced_entry_by_entry(arch):
    vec = oc.types.vector(3, oc.f32)

    @oc.kernel
    def go(x: oc.types.NDArray[vec, 1], y: oc.types.NDArray[vec, 2]):
        oc.loop_config(block_dim=32)
        for i in range(64):
            y[0, i] = subgroup.reduce_all_add(x[i])
            y[1, i] = subgroup.inclusive_max_tiled(x[i], 3)
            y[2, i] = subgroup.exclusive_add_tiled(x[i], 4)

    x = lanes.values("f32", 192).reshape(64, 3)
    y = np.zeros((3, 64, 3), np.float32)
    go(x, y)
    for entry in range(3):
        column = np.ascontiguousarray(x[:, entry])
        lanes.assert_close(y[0, :, entry], lanes.reduced("add", column, 32).repeat(32))
        lanes.assert_close(y[1, :, entry], lanes.inclusive("max", column, 8))
        lanes.assert_close(y[2, :, entry], lanes.exclusive("add", column, 16))


def test_tiles_of_half_a_subgroup(arch):
    """A block of 16 threads has no other lanes: nothing may ask for them."""

    @oc.kernel
    def go(x: oc.types.NDArray[oc.i32, 1], y: oc.types.NDArray[oc.i32, 2]):
        oc.loop_config(block_dim=16)
        for i in range(THREADS):
            y[0, i] = subgroup.reduce_add_tiled(x[i], 4)
            y[1, i] = subgroup.reduce_all_max_tiled(x[i], 4)
            y[2, i] = subgroup.inclusive_add_tiled(x[i], 4)
            y[3, i] = subgroup.segmented_reduce_add_tiled(x[i], 0, 4)
            y[4, i] = subgroup.all_true_tiled(x[i] > -100, 4)
            key, _ = subgroup.bitonic_sort_kv_tiled(x[i], i, 4)
            y[5, i] = key

    x, y = lanes.values("i32"), np.zeros((6, THREADS), np.int32)
    go(x, y)
    assert (y[0, ::16] == lanes.reduced("add", x, 16)).all()
    assert (y[1] == lanes.reduced("max", x, 16).repeat(16)).all()
    assert (y[2] == lanes.inclusive("add", x, 16)).all() and (y[3] == y[2]).all() and (y[4] == 1).all()
    assert (y[5] == np.sort(lanes.tiles(x, 16)).ravel()).all()
