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
def test_loads_and_stores_of_two_axes(arch, size, kind):
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


def test_a_first_index_picks_a_matrix(arch, size):
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


def test_shared_arrays(arch, size):
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


def test_a_blocked_factorisation(arch):
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


def test_funcs_take_tiles(arch):
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


# ---- where arrays are, and where slices end --------------------------------------------------------------------------------


def test_bounds_of_any_integers_stay_in_the_array(arch, size):
    """What begins before the array, ends before it begins or is larger than an ``i32`` touches nothing outside."""
    tile = tile_of(size)

    @oc.kernel
    def go(x: oc.types.NDArray[oc.f32, 2], y: oc.types.NDArray[oc.f32, 2], b: oc.types.NDArray[oc.i64, 1]):
        oc.loop_config(block_dim=size)
        for i in range(size):
            t = tile.zeros(dtype=oc.f32)
            t[:] = x[b[0] : b[1], b[2] : b[3]]
            for j in oc.static(range(size)):
                y[i, j] = t.r[j]
            y[i, size] = -1
            v = x[b[0] : b[1], b[2]]
            y[i, size] = v
            for j in oc.static(range(size)):
                t.r[j] = 1000
            x[b[0] : b[1], b[2] : b[3]] = t

    least, most = -(2**31), 2**31 - 1
    inside = np.random.default_rng(7).uniform(1, 2, (20, 20)).astype(np.float32)
    bounds = [least, -1, 0, 3, 19, 20, 21, most - 3, most, 2**33]
    cases = [(r0, r1, 2, 9) for r0 in bounds for r1 in (least, 5, most, 2**33)]
    cases += [(2, 9, c0, c1) for c0 in bounds for c1 in (least, 5, most, 2**33)]
    for r0, r1, c0, c1 in cases:
        # A frame of other memory around the matrix.
        whole = np.full((60, 20), 7, np.float32)
        whole[20:40] = inside
        x = whole[20:40]
        y = np.zeros((size, size + 1), np.float32)
        go(x, y, np.array([r0, r1, c0, c1]))
        rows = 0 if r0 < 0 else max(min(r1, 20, r0 + size) - r0, 0)
        columns = 0 if c0 < 0 else max(min(c1, 20, c0 + size) - c0, 0)
        wanted, after = np.zeros((size, size + 1), np.float32), whole.copy()
        wanted[:rows, :columns] = inside[r0 : r0 + rows, c0 : c0 + columns] if rows and columns else 0
        if rows and 0 <= c0 < 20:
            wanted[:rows, size] = inside[r0 : r0 + rows, c0]
        if rows and columns:
            after[20 + r0 : 20 + r0 + rows, c0 : c0 + columns] = 1000
        assert (y == wanted).all() and (whole == after).all(), (r0, r1, c0, c1)


@pytest.mark.parametrize("statement", ["t[:] = x[n:9, 0:5]", "t[:] = x[0:9, n:5]", "v = x[0:9, n]", "x[n:9, 0:5] = t"])
def test_debug_mode_reports_what_begins_before_the_array(arch, tmp_path, statement):
    oc.init(arch=oc.cfg.arch, debug=True, log_level="error")
    program = tmp_path / "program.py"
    program.write_text(
        "import octants as oc\n"
        "@oc.kernel\n"
        "def go(x: oc.types.NDArray[oc.f32, 2], n: oc.i32):\n"
        "    oc.loop_config(block_dim=16)\n"
        "    for i in range(16):\n"
        "        t = oc.simt.Tile16x16.zeros(dtype=oc.f32)\n"
        f"        {statement}\n"
    )
    names = {"__name__": "program", "__file__": str(program)}
    exec(compile(program.read_text(), str(program), "exec"), names)
    x = np.zeros((20, 20), np.float32)
    names["go"](x, 3)
    with pytest.raises(AssertionError) as raised:
        names["go"](x, -2)
    assert "begins before the array" in str(raised.value) and f"{program}:7" in str(raised.value)


def test_arrays_that_objects_lead_to(arch):
    import dataclasses

    @dataclasses.dataclass(frozen=True)
    class State:
        a: oc.types.NDArray[oc.f32, 3]
        b: oc.Tensor

    @oc.data_oriented
    class Solver:
        def __init__(self):
            self.field = oc.field(oc.f32, (20, 20))
            self.n = 18

        @oc.kernel
        def run(self, state: State):
            oc.loop_config(block_dim=16)
            for _ in range(16):
                t = Tile16x16.eye(dtype=oc.f32)
                t[:] = state.a[1, 2 : self.n, 0:16]
                t -= oc.outer(state.b[0:16, 3], self.field[0:16, 1])
                self.field[4:20, 4:20] = t
                state.b[0:16, 0:16] = t

    solver, random = Solver(), np.random.default_rng(5)
    a, f = random.uniform(-1, 1, (2, 20, 20)).astype(np.float32), random.uniform(-1, 1, (20, 20)).astype(np.float32)
    b = oc.ndarray(oc.f32, (16, 16))
    start = random.uniform(-1, 1, (16, 16)).astype(np.float32)
    b.from_numpy(start)
    solver.field.from_numpy(f)
    solver.run(State(a, b))
    wanted = a[1, 2:18, :16] - np.outer(start[:, 3], f[:16, 1])
    f[4:20, 4:20] = wanted
    np.testing.assert_allclose(b.to_numpy(), wanted, atol=1e-6)
    np.testing.assert_allclose(solver.field.to_numpy(), f, atol=1e-6)


@pytest.mark.parametrize("kind", ["ndarray", "field"])
@pytest.mark.parametrize("layout", [(0, 1, 2), (2, 1, 0), (1, 0, 2)])
def test_tensors_of_any_layout(arch, kind, layout):
    @oc.kernel
    def go(x: oc.Tensor, n: oc.i32):
        oc.loop_config(block_dim=16)
        for i in range(32):
            t = Tile16x16.zeros(dtype=oc.f32)
            t[:] = x[i // 16, 1:n, 0:16]
            t -= oc.outer(1.0, x[i // 16, 0:16, 2])
            x[i // 16, 1:n, 0:16] = t

    backend = oc.Backend.NDARRAY if kind == "ndarray" else oc.Backend.FIELD
    x = oc.tensor(oc.f32, (2, 17, 18), backend=backend, layout=layout)
    values = np.random.default_rng(6).uniform(-1, 1, (2, 17, 18)).astype(np.float32)
    x.from_numpy(values)
    go(x, 17)
    wanted = values.copy()
    for of in range(2):
        wanted[of, 1:17, :16] -= values[of, :16, 2]
    np.testing.assert_allclose(x.to_numpy(), wanted, atol=1e-6)


def test_fields_that_begin_below_zero_and_sparse_ones(arch):
    x = oc.field(oc.f32)
    oc.root.dense(oc.ij, (20, 20)).place(x, offset=(-4, -3))
    sparse = oc.field(oc.f32)
    oc.root.pointer(oc.ij, 3).dense(oc.ij, 8).place(sparse)

    @oc.kernel
    def go(r0: oc.i32, c0: oc.i32):
        oc.loop_config(block_dim=16)
        for _ in range(16):
            t = Tile16x16.zeros(dtype=oc.f32)
            t[:] = x[-4:10, c0 : c0 + 16]
            sparse[0:16, 0:16] = t
            t[:] = x[r0 : r0 + 16, -3:30]
            x[r0 : r0 + 16, -3:30] = t

    values = np.arange(1, 401, dtype=np.float32).reshape(20, 20)
    x.from_numpy(values)
    go(-2, -1)
    wanted = np.zeros((24, 24), np.float32)
    wanted[:14, :16] = values[:14, 2:18]
    assert (sparse.to_numpy() == wanted).all() and (x.to_numpy() == values).all()
    go(-9, -9)
    assert (x.to_numpy() == values).all()


def test_elements_of_other_types_are_cast_with_a_warning(arch):
    @oc.kernel
    def go(x: oc.types.NDArray[oc.f64, 2], y: oc.types.NDArray[oc.f32, 2], z: oc.types.NDArray[oc.i32, 2]):
        oc.loop_config(block_dim=16)
        for _ in range(16):
            t = Tile16x16.zeros(dtype=oc.f64)
            t[:] = z[0:16, 0:16]
            t -= oc.outer(x[0:16, 0], 1)
            y[0:16, 0:16] = t

    x, y, z = np.full((16, 16), 0.25), np.zeros((16, 16), np.float32), np.arange(256, dtype=np.int32).reshape(16, 16)
    with pytest.warns(UserWarning, match="f32 <- f64"):
        go(x, y, z)
    assert (y == z - 0.25).all()


# ---- which lanes have tiles ------------------------------------------------------------------------------------------------


def test_each_subgroup_of_a_block_has_a_tile_of_its_own(arch, size):
    """In flow of its own, too: subgroups go around their loops as often as they like."""
    tile = tile_of(size)

    @oc.kernel
    def go(x: oc.types.NDArray[oc.f32, 3], rounds: oc.types.NDArray[oc.i32, 1]):
        oc.loop_config(block_dim=64)
        for i in range(128):
            of = i // 32
            t = tile.zeros(dtype=oc.f32)
            t[:] = x[of, 0:size, 0:size]
            for k in range(rounds[of]):
                t -= oc.outer(x[of, 0:size, k], 1.0)
            x[of, 0:size, 0:size] = t

    x = np.random.default_rng(8).uniform(-1, 1, (4, size, size)).astype(np.float32)
    rounds = np.array([0, 3, 1, 7], np.int32)
    wanted = np.stack([m - m[:, :n].sum(1, keepdims=True) for m, n in zip(x.astype(np.float64), rounds, strict=True)])
    go(x, rounds)
    np.testing.assert_allclose(x, wanted, atol=1e-5)


def test_lanes_behind_a_small_tile_have_nothing_of_it(arch):
    @oc.kernel
    def go(x: oc.types.NDArray[oc.f32, 2], y: oc.types.NDArray[oc.f32, 2], n: oc.i32):
        oc.loop_config(block_dim=32)
        for i in range(32):
            t = Tile16x16.zeros(dtype=oc.f32)
            t[:] = x[0:n, 0:n]
            v = x[0:n, 0]
            u = Tile32x32.zeros(dtype=oc.f32)
            u[:] = x[0:n, 0:n]
            u -= oc.outer(v, v)
            t -= oc.outer(v, v)
            y[0:n, 0:n] = u
            block.sync()
            y[0:n, 0:n] = t
            for j in oc.static(range(16)):
                if i >= 16:
                    y[32, j] += t.r[j]

    x = np.random.default_rng(9).uniform(-1, 1, (40, 40)).astype(np.float32)
    y = np.zeros((40, 40), np.float32)
    go(x, y, 40)
    wanted = np.zeros((40, 40))
    wanted[:32, :32] = x[:32, :32] - np.outer(x[:32, 0], x[:32, 0])
    np.testing.assert_allclose(y[:32], wanted[:32], atol=1e-6)
    # What lanes without a row have in their registers is theirs: only products of columns were subtracted there.
    np.testing.assert_allclose(y[32, :16], -np.outer(x[16:32, 0], x[:16, 0]).sum(0), atol=1e-5)


def test_a_copy_of_a_tile_is_another_tile(arch):
    @oc.kernel
    def go(y: oc.types.NDArray[oc.f32, 3]):
        oc.loop_config(block_dim=16)
        for _ in range(16):
            t, w = Tile16x16.eye(dtype=oc.f32), Tile16x16.zeros(dtype=oc.f32)
            u = t
            u -= oc.outer(1.0, 1.0)
            w[:] = u
            w -= oc.outer(1.0, 1.0)
            y[0, 0:16, 0:16] = t
            y[1, 0:16, 0:16] = u
            y[2, 0:16, 0:16] = y[3, 0:16, 0:16] = w

    y = np.zeros((4, 16, 16), np.float32)
    go(y)
    assert all((y[n] == np.eye(16) - less).all() for n, less in enumerate([0, 1, 2, 2]))


def test_a_column_may_have_a_type_and_a_tile_be_a_conditional(arch):
    @oc.kernel
    def go(x: oc.types.NDArray[oc.f32, 2], y: oc.types.NDArray[oc.f64, 2], first: oc.template()):
        oc.loop_config(block_dim=16)
        for i in range(16):
            t = Tile16x16.zeros(dtype=oc.f64)
            t[:] = x[0:16, 0:16] if oc.static(first) else x[0:16, 16:32]
            v: oc.f64 = x[0:16, 1]
            y[i, 16] = v
            y[0:16, 0:16] = t

    x = np.random.default_rng(10).uniform(-1, 1, (16, 32)).astype(np.float32)
    for first in (True, False):
        y = np.zeros((16, 17))
        go(x, y, first)
        assert (y[:, :16] == (x[:, :16] if first else x[:, 16:])).all() and (y[:, 16] == x[:, 1]).all()


@pytest.mark.parametrize("head", ["oc.loop_config(serialize=True)\n    for i in range(16)", "for i, j in x"])
@pytest.mark.parametrize("statement", ["t[:] = x[0:16, 0:16]", "v = x[0:16, 0]", "t -= oc.outer(1.0, 1.0)"])
def test_loops_without_lanes(arch, tmp_path, head, statement):
    program = tmp_path / "program.py"
    program.write_text(
        "import octants as oc\n"
        "x = oc.field(oc.f32, (40, 40))\n"
        "@oc.kernel\n"
        "def go():\n"
        f"    {head}:\n"
        "        t = oc.simt.Tile16x16.zeros(dtype=oc.f32)\n"
        f"        {statement}\n"
    )
    names = {"__name__": "program", "__file__": str(program)}
    exec(compile(program.read_text(), str(program), "exec"), names)
    with pytest.raises(oc.OctantsCompilationError) as raised:
        names["go"]()
    line = program.read_text().split("\n").index(f"        {statement}") + 1
    assert "stands in" in str(raised.value) and f"{program}:{line}:" in str(raised.value)


@pytest.mark.parametrize("dtype", ["u32", "i64", "u64"])
def test_debug_mode_tells_of_no_overflow_that_the_program_does_not_have(arch, capfd, dtype):
    """What is more than an ``i32`` lies behind the array."""
    oc.init(arch=oc.cfg.arch, debug=True, log_level="error")
    dtype = getattr(oc, dtype)

    @oc.kernel
    def go(x: oc.types.NDArray[oc.f32, 2], most: dtype, o: oc.types.NDArray[oc.f32, 2]):
        oc.loop_config(block_dim=16)
        for i in range(16):
            t = Tile16x16.zeros(dtype=oc.f32)
            t[:] = x[most : most + 4, most : most + 4]
            t[:] = x[0:most, 0:most]
            v = x[0:16, most]
            w = x[most:16, 2147483647]
            o[i, 0], o[i, 1] = v + w, t.r[15]

    o = np.full((16, 2), 9, np.float32)
    go(np.ones((16, 16), np.float32), 3_000_000_000, o)
    oc.sync()
    captured = capfd.readouterr()
    assert "overflow" not in captured.out + captured.err
    assert (o == [0, 1]).all()


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
    ("t[:] = x[0:-1, 0:16]", oc.OctantsSyntaxError, "Negative indices"),
    ("t[:] = x[-4:16, 0:16]", oc.OctantsSyntaxError, "Negative indices"),
    ("t[:] = x[0.5:16, 0:16]", TypeError, "integers"),
    ("t[:] = x[oc.Vector([1]):16, 0:16]", TypeError, "an index is one integer, not a 1-vector of i32"),
    ("t[:] = x[0:16, 0:oc.Vector([3, i])]", TypeError, "an index is one integer, not a 2-vector of i32"),
    ("x[oc.Vector([1, 3]):16, 0:16] = t", TypeError, "an index is one integer, not a 2-vector of i32"),
    ("v = x[0:16, oc.Vector([2])]", TypeError, "an index is one integer, not a 1-vector of i32"),
    ("v = y3[oc.Vector([1]), 0:16, 2]", TypeError, "an index is one integer, not a 1-vector of i32"),
    ("v = y3[1, oc.Vector([1]):16, 2]", TypeError, "an index is one integer, not a 1-vector of i32"),
    ("t[:] = x[0:16]", oc.OctantsSyntaxError, "slices of arrays"),
    ("t[:] = x[3, 0:16]", oc.OctantsSyntaxError, "slices of arrays"),
    ("t[:] = x[0:3, 0:16, 0:16]", oc.OctantsSyntaxError, "slices of arrays"),
    ("t[:] = x[1, 0:16, 0:16]", IndexError, "rank 2"),
    ("t[:] = x[0:16, 3]", TypeError, "slice of an array"),
    ("x[0:16, 3] = t", oc.OctantsSyntaxError, "only valid in tile operations"),
    ("x[0:16, 3] = x[0:16, 4]", oc.OctantsSyntaxError, "only valid in tile operations"),
    ("y = 2 * x[0:16, 3]", oc.OctantsSyntaxError, "only valid in tile operations"),
    ("t = x[0:16, 0:16]", oc.OctantsSyntaxError, "only valid in tile operations"),
    ("t[0:4] = x[0:4, 0:16]", TypeError, "no elements"),
    ("y = oc.outer(1.0, 2.0)", TypeError, "does not support composition"),
    ("x[0, 0] -= oc.outer(1.0, 2.0)", TypeError, "does not support composition"),
    ("t -= oc.outer(x[0:16, 0:16], 1.0)", oc.OctantsSyntaxError, "only valid in tile operations"),
    ("t -= oc.outer(oc.Vector([1.0, 2.0]), 1.0)", TypeError, "which are numbers"),
    ("t *= oc.outer(1.0, 2.0)", TypeError, "unsupported augmented assignment"),
    ("t.solve_triangular_(t, lower=False)", TypeError, "lower triangles"),
    ("t = oc.simt.Tile16x16.zeros(dtype=oc.i32)", TypeError, "f32 or f64"),
]


@pytest.mark.parametrize("statement,error,text", BAD)
def test_forms_that_tiles_do_not_have(arch, tmp_path, statement, error, text):
    for debug in (False, True):
        oc.init(arch=oc.cfg.arch, debug=debug, log_level="error")
        refused(tmp_path, statement, error, text)


def refused(tmp_path, statement, error, text):
    program = tmp_path / "program.py"
    program.write_text(
        "import octants as oc\n"
        "x, y3 = oc.field(oc.f32, (40, 40)), oc.field(oc.f32, (3, 40, 40))\n"
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
