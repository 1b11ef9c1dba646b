"""Tiles as programs write them: loaded and stored by slices of arrays, with products of columns subtracted."""

import numpy as np
import pytest

import octants as oc
from octants.simt import Tile16x16, Tile32x32, block


@pytest.fixture(params=[16, 32])
def size(request):
    return request.param


def tile_of(size):
    return Tile32x32 if size == 32 else Tile16x16


@pytest.mark.parametrize("kind", ["array", "field", "tensor"])
def test_loads_and_stores_of_two_axes(slices, size, kind):
    tile = tile_of(size)

    @oc.kernel
    def go(x: oc.Tensor, y: oc.Tensor, r0: oc.i32, r1: oc.i32, c0: oc.i32, c1: oc.i32):
        oc.loop_config(block_dim=size)
        for _ in range(size):
            t = tile.eye(dtype=oc.f32)
            t[:] = x[r0:r1, c0 : oc.min(c0 + size, c1)]
            y[r0 + 1 : r1 + 1, c0:c1] = t

    make = {"array": oc.ndarray, "field": oc.field, "tensor": oc.tensor}[kind]
    values = np.random.default_rng(1).uniform(-1, 1, (40, 37)).astype(np.float32)
    x, y = make(oc.f32, (40, 37)), make(oc.f32, (40, 37))
    x.from_numpy(values)
    for r0, r1, c0, c1 in [(0, 16, 0, 16), (3, 9, 5, 40), (30, 60, 33, 37), (4, 4, 0, 5)]:
        y.fill(-7)
        go(x, y, r0, r1, c0, c1)
        tile_values = np.eye(size, dtype=np.float32)
        rows, columns = max(min(r1, 40, r0 + size) - r0, 0), max(min(c1, 37, c0 + size) - c0, 0)
        tile_values[:rows] = 0
        tile_values[:rows, :columns] = values[r0 : r0 + rows, c0 : c0 + columns]
        wanted = np.full((40, 37), -7, np.float32)
        stored = max(min(r1 + 1, 40, r0 + 1 + size) - r0 - 1, 0)
        wanted[r0 + 1 : r0 + 1 + stored, c0 : c0 + columns] = tile_values[:stored, :columns]
        assert (y.to_numpy() == wanted).all(), (r0, r1, c0, c1)


def test_a_first_index_picks_a_matrix(slices, size):
    tile = tile_of(size)

    @oc.kernel
    def go(x: oc.types.NDArray[oc.f64, 3], y: oc.types.NDArray[oc.f64, 3]):
        oc.loop_config(block_dim=size)
        for i in range(3 * size):
            n = i // size
            t = tile.zeros(dtype=oc.f64)
            t[:] = x[2 - n, 1:size, 0:size]
            v = x[n, 0:size, 3]
            t -= oc.outer(v, x[n, 0 : size - 1, 4])
            y[n, 0:size, 0:size] = t

    x = np.random.default_rng(2).uniform(-1, 1, (3, size, size))
    y = np.zeros_like(x)
    go(x, y)
    for n in range(3):
        wanted = np.vstack([x[2 - n, 1:], np.zeros((1, size))])
        other = x[n, :, 4].copy()
        other[-1] = 0
        np.testing.assert_allclose(y[n], wanted - np.outer(x[n, :, 3], other), atol=1e-14)


def test_shared_arrays(slices, size):
    tile = tile_of(size)

    @oc.kernel
    def go(x: oc.types.NDArray[oc.f32, 2], y: oc.types.NDArray[oc.f32, 2]):
        oc.loop_config(block_dim=size)
        for i in range(size):
            sh = block.SharedArray((size, size + 1), oc.f32)
            for row in range(size):
                sh[row, i] = x[row, i]
            block.sync()
            t = tile.zeros(dtype=oc.f32)
            t[:] = sh[0:size, 0:size]
            w = sh[0:size, 2]
            t -= oc.outer(sh[0:size, 1], w)
            block.sync()
            sh[0:size, 0:size] = t
            block.sync()
            for row in range(size):
                y[i, row] = sh[i, row]

    x = np.random.default_rng(3).uniform(-1, 1, (size, size)).astype(np.float32)
    y = np.zeros_like(x)
    go(x, y)
    np.testing.assert_allclose(y, x - np.outer(x[:, 1], x[:, 2]), atol=1e-6)


def test_a_blocked_factorisation(slices):
    """As simulators write it: the class of tiles is an argument, bounds are the least of two numbers, the floor is each lane's own."""

    @oc.func
    def factor(sh, n: oc.template(), eps: oc.types.NDArray[oc.f32, 1], TileClass: oc.template()):
        T = oc.static(TileClass.SIZE)
        lane = block.thread_idx()
        for k in range((n + T - 1) // T):
            k0, k1 = k * T, oc.min((k + 1) * T, n)
            t = TileClass.eye(dtype=oc.f32)
            t[:] = sh[k0:k1, k0:k1]
            for c in range(k0):
                v = sh[k0:k1, c]
                t -= oc.outer(v, v)
            t.cholesky_(eps[oc.min(k0 + lane, n - 1)])
            sh[k0:k1, k0:k1] = t
            block.sync()
            for r in range(k + 1, (n + T - 1) // T):
                r0, r1 = r * T, oc.min((r + 1) * T, n)
                u = TileClass.zeros(dtype=oc.f32)
                u[:] = sh[r0:r1, k0:k1]
                for c in range(k0):
                    v = sh[r0:r1, c]
                    w = sh[k0:k1, c]
                    u -= oc.outer(v, w)
                t.solve_triangular_(u)
                sh[r0:r1, k0:k1] = u
            block.sync()

    @oc.kernel
    def go(a: oc.types.NDArray[oc.f32, 3], eps: oc.types.NDArray[oc.f32, 1], n: oc.template(), T: oc.template()):
        oc.loop_config(block_dim=T)
        for i in range(a.shape[0] * T):
            lane, of = i % T, i // T
            sh = block.SharedArray((n, n + 1), oc.f32)
            for at in range(n * n):
                if at % T == lane:
                    sh[at // n, at % n] = a[of, at // n, at % n]
            block.sync()
            factor(sh, n, eps, oc.simt.Tile32x32 if oc.static(T == 32) else oc.simt.Tile16x16)
            for at in range(n * n):
                if at % T == lane:
                    a[of, at // n, at % n] = sh[at // n, at % n]

    for n, T in ((40, 16), (45, 32)):
        m = np.random.default_rng(n).uniform(-1, 1, (2, n, n))
        a = (m @ m.transpose(0, 2, 1) / n + np.eye(n)).astype(np.float32)
        ours = a.copy()
        go(ours, np.full(n, 1e-6, np.float32), n, T)
        np.testing.assert_allclose(np.tril(ours), np.linalg.cholesky(a.astype(np.float64)), atol=3e-5)


def test_funcs_take_tiles(slices):
    @oc.func
    def scaled(t: oc.template(), by):
        for j in oc.static(range(16)):
            t.r[j] = t.r[j] * by

    @oc.kernel
    def go(y: oc.types.NDArray[oc.f32, 2]):
        oc.loop_config(block_dim=16)
        for _ in range(16):
            t = Tile16x16.eye(dtype=oc.f32)
            scaled(t, 3)
            u = t
            scaled(u, 2)
            t -= oc.outer(1.0, 1.0)
            y[0:16, 0:16] = t
            y[0:16, 16:32] = u

    y = np.zeros((16, 32), np.float32)
    go(y)
    assert (y[:, :16] == 3 * np.eye(16) - 1).all() and (y[:, 16:] == 6 * np.eye(16)).all()


# ---- what is refused -----------------------------------------------------------------------------------------------------


BAD = [
    ("t[:] = x[0:, 0:16]", oc.OctantsSyntaxError, "both start and stop"),
    ("t[:] = x[:16, 0:16]", oc.OctantsSyntaxError, "both start and stop"),
    ("t[:] = x[0:16, :]", oc.OctantsSyntaxError, "both start and stop"),
    ("x[0:16, :] = t", oc.OctantsSyntaxError, "both start and stop"),
    ("v = x[:, 3]", oc.OctantsSyntaxError, "both start and stop"),
    ("t[:] = x[0:16:2, 0:16]", oc.OctantsSyntaxError, "step"),
    ("y = x[0:16, 0:16] + 1", oc.OctantsSyntaxError, "only valid in tile operations"),
    ("y = x[0:16, 0:16]", oc.OctantsSyntaxError, "only valid in tile operations"),
    ("x[0:16, 0:16] = 1.0", oc.OctantsSyntaxError, "only valid in tile operations"),
    ("t[:] = 1.0", TypeError, "slice of an array"),
    ("t -= oc.outer(1.0, 2.0) + oc.outer(1.0, 2.0)", TypeError, "does not support composition"),
    ("t -= 2 * oc.outer(1.0, 2.0)", TypeError, "does not support composition"),
    ("t += oc.outer(1.0, 2.0)", TypeError, "unsupported augmented assignment"),
    ("t -= 1.0", TypeError, "unsupported augmented assignment"),
]


@pytest.mark.parametrize("statement,error,text", BAD)
def test_forms_that_tiles_do_not_have(slices, tmp_path, statement, error, text):
    program = tmp_path / "program.py"
    program.write_text(
        "import octants as oc\n"
        "x = oc.field(oc.f32, (40, 40))\n"
        "@oc.kernel\n"
        "def go():\n"
        "    oc.loop_config(block_dim=16)\n"
        "    for i in range(16):\n"
        "        t = oc.simt.Tile16x16.zeros(dtype=oc.f32)\n"
        f"        {statement}\n"
    )
    names = {"__name__": "program", "__file__": str(program)}
    exec(compile(program.read_text(), str(program), "exec"), names)
    with pytest.raises(error) as raised:
        names["go"]()
    assert text in str(raised.value) and f"{program}:8:" in str(raised.value)
