"""Tiles: what they calculate, against numpy. How programs load and store them is in ``test_tile_slices``."""

import numpy as np
import pytest

import octants as oc
from octants.simt import Tile16x16, Tile32x32, block

TILES = {16: Tile16x16, 32: Tile32x32}
NUMPY = {"f32": np.float32, "f64": np.float64}
TOLERANCE = {"f32": 2e-5, "f64": 1e-13}


def definite(n: int, name: str, count: int = 1, seed: int = 0) -> np.ndarray:
    m = np.random.default_rng(seed).uniform(-1, 1, (count, n, n))
    return (m @ m.transpose(0, 2, 1) / n + np.eye(n)).astype(NUMPY[name])


@pytest.fixture(params=[16, 32])
def size(request):
    return request.param


@pytest.fixture(params=["f32", "f64"])
def name(request):
    return request.param


def test_zeros_and_the_identity(arch, size, name):
    dtype, tile = getattr(oc, name), TILES[size]

    @oc.kernel
    def go(y: oc.types.NDArray[dtype, 3]):
        oc.loop_config(block_dim=size)
        for _ in range(size):
            y[0, 0:size, 0:size] = tile.zeros(dtype=dtype)
            t = tile.eye(dtype=dtype)
            y[1, 0:size, 0:size] = t
            u = tile.zeros(dtype)
            u.eye_()
            y[2, 0:size, 0:size] = u

    y = np.full((3, size, size), 7, NUMPY[name])
    go(y)
    assert (y[0] == 0).all() and (y[1] == np.eye(size)).all() and (y[2] == np.eye(size)).all()
    assert tile.SIZE == size and repr(tile) == f"<oc.simt.Tile{size}x{size}>"


@pytest.mark.parametrize("default", ["f32", "f64"])
def test_the_type_is_the_sessions_if_nothing_is_said(arch, default):
    oc.init(arch=oc.cfg.arch, default_fp=getattr(oc, default), log_level="error")

    @oc.kernel
    def go(y: oc.types.NDArray[oc.f64, 1]):
        for i in range(32):
            t = Tile32x32.zeros()
            t.r[0] = 1 / 3
            y[i] = oc.cast(t.r[0], oc.f64)

    y = np.zeros(32)
    go(y)
    assert (y == NUMPY[default](1 / 3)).all()


def test_cholesky_and_a_triangular_system(arch, size, name):
    dtype, tile = getattr(oc, name), TILES[size]

    @oc.kernel
    def go(a: oc.types.NDArray[dtype, 3], b: oc.types.NDArray[dtype, 3]):
        oc.loop_config(block_dim=size)
        for i in range(3 * size):
            n = i // size
            t, x = tile.zeros(dtype=dtype), tile.zeros(dtype=dtype)
            t[:] = a[n, 0:size, 0:size]
            x[:] = b[n, 0:size, 0:size]
            t.cholesky_(0.0)
            t.solve_triangular_(x)
            a[n, 0:size, 0:size] = t
            b[n, 0:size, 0:size] = x

    a, b = definite(size, name, 3), definite(size, name, 3, seed=1)
    ours, solved = a.copy(), b.copy()
    go(ours, solved)
    factor = np.linalg.cholesky(a.astype(np.float64))
    np.testing.assert_allclose(np.tril(ours), factor, atol=TOLERANCE[name])
    x = np.linalg.solve(factor, b.astype(np.float64).transpose(0, 2, 1)).transpose(0, 2, 1)
    np.testing.assert_allclose(solved, x, atol=TOLERANCE[name])


def test_the_upper_triangle_of_the_matrix_is_not_read(arch, size):
    tile = TILES[size]

    @oc.kernel
    def go(a: oc.types.NDArray[oc.f64, 2]):
        oc.loop_config(block_dim=size)
        for _ in range(size):
            t = tile.zeros(dtype=oc.f64)
            t[:] = a[0:size, 0:size]
            t.cholesky_(0.0)
            a[0:size, 0:size] = t

    a = definite(size, "f64")[0]
    ours = np.tril(a) + np.triu(np.full_like(a, np.nan), 1)
    go(ours)
    np.testing.assert_allclose(np.tril(ours), np.linalg.cholesky(a), atol=1e-13)


def test_pivots_have_a_floor_which_each_lane_says_for_its_row(arch, size, name):
    dtype, tile = getattr(oc, name), TILES[size]

    @oc.kernel
    def go(a: oc.types.NDArray[dtype, 2], eps: oc.types.NDArray[dtype, 1], y: oc.types.NDArray[dtype, 3]):
        oc.loop_config(block_dim=size)
        for i in range(size):
            t = tile.zeros(dtype=dtype)
            t[:] = a[0:size, 0:size]
            t.cholesky_(eps[i])
            y[0, 0:size, 0:size] = t
            u = tile.zeros(dtype=dtype)
            u[:] = a[0:size, 0:size]
            u.cholesky_(0.25)
            y[1, 0:size, 0:size] = u

    a = np.diag(np.linspace(-1, 1, size)).astype(NUMPY[name])
    eps = np.linspace(0.01, 4, size).astype(NUMPY[name])
    y = np.zeros((2, size, size), NUMPY[name])
    go(a, eps, y)
    np.testing.assert_allclose(np.diag(y[0]), np.sqrt(np.maximum(np.diag(a), eps)), rtol=1e-6)
    np.testing.assert_allclose(np.diag(y[1]), np.sqrt(np.maximum(np.diag(a), 0.25)), rtol=1e-6)


def test_a_product_of_columns_is_subtracted(arch, size, name):
    dtype, tile = getattr(oc, name), TILES[size]

    @oc.kernel
    def go(a: oc.types.NDArray[dtype, 2], b: oc.types.NDArray[dtype, 2], y: oc.types.NDArray[dtype, 2]):
        oc.loop_config(block_dim=size)
        for i in range(size):
            t = tile.zeros(dtype=dtype)
            t[:] = y[0:size, 0:size]
            for k in range(5):
                v = a[0:size, k]
                t -= oc.outer(v, b[0:size, k])
            t -= oc.outer(i, i)
            y[0:size, 0:size] = t

    random = np.random.default_rng(2)
    a, b, y = (random.uniform(-1, 1, shape).astype(NUMPY[name]) for shape in ((size, 5), (size, 5), (size, size)))
    i = np.arange(size)
    wanted = y - a.astype(np.float64) @ b.T.astype(np.float64) - np.outer(i, i)
    go(a, b, y)
    np.testing.assert_allclose(y, wanted, rtol=TOLERANCE[name], atol=TOLERANCE[name])


BOUNDS = [
    (0, 32, 0, 32),
    (3, 20, 5, 9),
    (2, 2, 0, 4),
    (10, 4, 0, 4),
    (20, 60, 30, 60),
    (39, 44, 36, 37),
    (40, 50, 0, 5),
]


@pytest.mark.parametrize("kind", ["ndarray", "field", "tensor", "shared"])
@pytest.mark.parametrize("rank", [2, 3])
def test_bounds_of_loads_and_stores(arch, size, kind, rank):
    """An array of 40 rows and 37 columns, of which a tile has what there is."""
    tile, shape = TILES[size], (40, 37)
    if kind == "shared" and rank == 3:
        pytest.skip("a shared array as large as this test's")

    @oc.func
    def moved(arr: oc.template(), out: oc.template(), one, r0, r1, c0, c1):
        t = tile.eye(dtype=oc.f32)
        if oc.static(rank == 2):
            t[:] = arr[r0:r1, c0:c1]
        else:
            t[:] = arr[one, r0:r1, c0:c1]
        out[0:size, 0:size] = t
        block.sync()
        t = tile.zeros(dtype=oc.f32)
        for j in oc.static(range(size)):
            t.r[j] = -100 - j
        if oc.static(rank == 2):
            arr[r0:r1, c0:c1] = t
        else:
            arr[one, r0:r1, c0:c1] = t

    @oc.kernel
    def over(arr: oc.Tensor, out: oc.types.NDArray[oc.f32, 2], one: oc.i32, b: oc.types.NDArray[oc.i32, 1]):
        oc.loop_config(block_dim=size)
        for _ in range(size):
            moved(arr, out, one, b[0], b[1], b[2], b[3])

    @oc.kernel
    def over_array(
        arr: oc.types.NDArray[oc.f32, rank],
        out: oc.types.NDArray[oc.f32, 2],
        one: oc.i32,
        b: oc.types.NDArray[oc.i32, 1],
    ):
        oc.loop_config(block_dim=size)
        for _ in range(size):
            moved(arr, out, one, b[0], b[1], b[2], b[3])

    @oc.kernel
    def over_shared(
        arr: oc.types.NDArray[oc.f32, 2], out: oc.types.NDArray[oc.f32, 2], one: oc.i32, b: oc.types.NDArray[oc.i32, 1]
    ):
        oc.loop_config(block_dim=size)
        for lane in range(size):
            sh = block.SharedArray((40, 37), oc.f32)
            for row in range(40):
                for part in range(3):
                    at = part * size + lane
                    if at < 37:
                        sh[row, at] = arr[row, at]
            block.sync()
            moved(sh, out, one, b[0], b[1], b[2], b[3])
            block.sync()
            for row in range(40):
                for part in range(3):
                    at = part * size + lane
                    if at < 37:
                        arr[row, at] = sh[row, at]

    start = np.arange(1, 40 * 37 + 1, dtype=np.float32).reshape(shape)
    whole = start if rank == 2 else np.stack([start + 5000, start, start + 9000])
    for r0, r1, c0, c1 in BOUNDS:
        if kind == "field":
            arr, run = oc.field(oc.f32, whole.shape), over
        elif kind == "tensor":
            arr, run = oc.tensor(oc.f32, whole.shape), over
        else:
            arr, run = oc.ndarray(oc.f32, whole.shape), over_shared if kind == "shared" else over_array
        arr.from_numpy(whole)
        out = np.zeros((size, size), np.float32)
        run(arr, out, 1, np.array([r0, r1, c0, c1], np.int32))
        rows, columns = min(r1, 40, r0 + size) - r0, min(c1, 37, c0 + size) - c0
        loaded, stored = np.eye(size, dtype=np.float32), start.copy()
        if rows > 0:
            loaded[:rows] = 0
            if columns > 0:
                loaded[:rows, :columns] = start[r0 : r0 + rows, c0 : c0 + columns]
                stored[r0 : r0 + rows, c0 : c0 + columns] = -100 - np.arange(columns)
        assert (out == loaded).all(), (r0, r1, c0, c1)
        after = whole.copy()
        after[... if rank == 2 else 1] = stored
        assert (arr.to_numpy() == after).all(), (r0, r1, c0, c1)


def test_columns(arch, size):
    @oc.kernel
    def go(x: oc.types.NDArray[oc.i64, 2], z: oc.types.NDArray[oc.f64, 3], y: oc.types.NDArray[oc.f64, 2]):
        oc.loop_config(block_dim=size)
        for i in range(size):
            y[0, i] = x[3 : 3 + size, 1]
            y[1, i] = x[30:60, 2]
            y[2, i] = z[1, 5:9, 3]
            y[3, i] = z[1, 9:5, 3]

    x = np.random.default_rng(3).integers(-99, 99, (40, 4))
    z = np.random.default_rng(4).uniform(-1, 1, (2, 40, 4))
    y = np.full((4, size), 7.0)
    go(x, z, y)
    wanted = np.zeros((4, size))
    wanted[0] = x[3 : 3 + size, 1]
    wanted[1, :10] = x[30:40, 2]
    wanted[2, :4] = z[1, 5:9, 3]
    assert (y == wanted).all()


def test_a_class_of_tiles_is_an_argument(arch):
    """A blocked factorisation of matrices that are no multiple of the tile, as simulators write it."""

    @oc.func
    def factor(a, n: oc.template(), TileClass: oc.template(), T: oc.template()):
        for k in oc.static(range(0, n, T)):
            k1 = oc.static(min(k + T, n))
            t = TileClass.eye(dtype=oc.f64)
            t[:] = a[k:k1, k:k1]
            for c in range(k):
                v = a[k:k1, c]
                t -= oc.outer(v, v)
            t.cholesky_(0.0)
            a[k:k1, k:k1] = t
            block.sync()
            for r in oc.static(range(k + T, n, T)):
                r1 = oc.static(min(r + T, n))
                u = TileClass.zeros(dtype=oc.f64)
                u[:] = a[r:r1, k:k1]
                for c in range(k):
                    u -= oc.outer(a[r:r1, c], a[k:k1, c])
                t.solve_triangular_(u)
                a[r:r1, k:k1] = u
            block.sync()

    @oc.kernel
    def go(a: oc.types.NDArray[oc.f64, 3], n: oc.template(), T: oc.template()):
        oc.loop_config(block_dim=T)
        for i in range(2 * T):
            sh = block.SharedArray((n, n + 1), oc.f64)
            lane, of = i % T, i // T
            for row in range(n):
                for part in oc.static(range(0, n, T)):
                    if part + lane < n:
                        sh[row, part + lane] = a[of, row, part + lane]
            block.sync()
            factor(sh, n, oc.simt.Tile32x32 if oc.static(T == 32) else oc.simt.Tile16x16, T)
            for row in range(n):
                for part in oc.static(range(0, n, T)):
                    if part + lane < n:
                        a[of, row, part + lane] = sh[row, part + lane]

    for n, T in ((16, 16), (41, 16), (45, 32)):
        a = definite(n, "f64", 2)
        ours = a.copy()
        go(ours, n, T)
        np.testing.assert_allclose(np.tril(ours), np.linalg.cholesky(a), atol=1e-12)


def test_both_sizes_in_one_kernel_and_half_of_the_lanes_idle(arch):
    @oc.kernel
    def go(x: oc.types.NDArray[oc.f32, 2], y: oc.types.NDArray[oc.f32, 3]):
        oc.loop_config(block_dim=32)
        for _ in range(32):
            small, large = Tile16x16.zeros(dtype=oc.f32), Tile32x32.zeros(dtype=oc.f32)
            small[:] = x[0:40, 0:40]
            large[:] = x[0:40, 0:40]
            small.cholesky_(0.0)
            large.cholesky_(0.0)
            y[0, 0:40, 0:40] = small
            y[1, 0:40, 0:40] = large

    x = definite(40, "f32")[0]
    y = np.zeros((2, 40, 40), np.float32)
    go(x, y)
    for of, size in enumerate((16, 32)):
        wanted = np.linalg.cholesky(x[:size, :size].astype(np.float64))
        np.testing.assert_allclose(np.tril(y[of, :size, :size]), wanted, atol=2e-5)
        assert (y[of, size:] == 0).all() and (y[of, :, size:] == 0).all()
