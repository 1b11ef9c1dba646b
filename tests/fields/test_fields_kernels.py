"""Fields in kernels: access, loops, aliases, templates, layouts, debug checks."""

import dataclasses

import numpy as np
import pytest

import octants as oc

pytestmark = [pytest.mark.host_access, pytest.mark.sanitizer_core]


@pytest.fixture(autouse=True)
def on_every_device(arch):
    """No test of this file leaves a device out."""


def test_scalar_fields_are_read_written_and_added_to():
    x = oc.field(oc.f32, shape=(4, 6))
    total = oc.field(oc.f64, shape=())

    @oc.kernel
    def fill(a: oc.f32):
        for i, j in x:
            x[i, j] = a * i + j

    @oc.kernel
    def add_up():
        for I in oc.grouped(x):
            total[None] += x[I]

    fill(10.0)
    add_up()
    expected = 10.0 * np.arange(4)[:, None] + np.arange(6)[None, :]
    assert np.array_equal(x.to_numpy(), expected)
    assert total[None] == expected.sum()


@pytest.mark.parametrize("layout", [oc.Layout.AOS, oc.Layout.SOA])
def test_vector_and_matrix_fields_write_through(layout):
    v = oc.Vector.field(3, oc.f32, shape=5, layout=layout)
    m = oc.Matrix.field(2, 2, oc.i32, shape=(2, 3), layout=layout)

    @oc.kernel
    def fill():
        for i in v:
            v[i] = [i, 2 * i, 3 * i]
            v[i].y += 100.0
            v[i].zx = oc.Vector([v[i].x, v[i].z])
            v[i][1] -= 1.0
        for i, j in m:
            m[i, j] = oc.Matrix([[i, j], [i + j, i * j]])
            m[i, j][1, :] += oc.Vector([10, 20])

    @oc.kernel
    def pick(i: oc.i32, at: oc.i32) -> oc.f32:
        return v[i][at]

    fill()
    i = np.arange(5.0)
    assert np.array_equal(v.to_numpy(), np.stack([3 * i, 2 * i + 99, i], axis=1))
    ij = np.indices((2, 3))
    expected = np.stack([ij[0], ij[1], ij.sum(0) + 10, ij[0] * ij[1] + 20], axis=-1).reshape(2, 3, 2, 2)
    assert np.array_equal(m.to_numpy(), expected)
    assert [pick(2, at) for at in range(3)] == [6.0, 103.0, 2.0]


@pytest.mark.parametrize("layout", [oc.Layout.AOS, oc.Layout.SOA])
def test_struct_fields_have_members_and_methods(layout):
    @oc.dataclass
    class Particle:
        pos: oc.math.vec2
        mass: oc.f32

        @oc.func
        def momentum(self, v):
            return self.mass * v

    p = Particle.field(shape=4, layout=layout)

    @oc.kernel
    def fill():
        for i in p:
            p[i].pos = oc.Vector([i, i + 0.5])
            p[i].mass = i
        for i in p:
            p[i].pos.x += p[i].momentum(2.0)
            copy = p[i]
            copy.mass = 99.0
        p[0] = Particle(pos=oc.Vector([7.0, 8.0]), mass=9.0)

    fill()
    assert np.array_equal(p.pos.to_numpy(), [[7, 8], [3, 1.5], [6, 2.5], [9, 3.5]])
    assert np.array_equal(p.mass.to_numpy(), [9, 1, 2, 3])


def test_offsets_orders_and_blocks_are_looped_over_in_their_own_indices():
    plain = oc.field(oc.i32, shape=(3, 4), offset=(-1, 5))
    turned = oc.field(oc.i32, shape=(3, 4), order="ji", offset=(-1, 5))
    blocked = oc.field(oc.i32)
    with pytest.warns(UserWarning, match="power of two"):
        oc.root.dense(oc.ij, (2, 3)).dense(oc.ij, (3, 2)).place(blocked, offset=(-3, 2))

    @oc.kernel
    def fill(f: oc.template()):
        for i, j in f:
            f[i, j] += 100 * i + j

    for f in (plain, turned, blocked):
        fill(f)
    i, j = np.arange(3) - 1, np.arange(4) + 5
    assert np.array_equal(plain.to_numpy(), 100 * i[:, None] + j)
    assert np.array_equal(turned.to_numpy(), plain.to_numpy())
    i, j = np.arange(6) - 3, np.arange(6) + 2
    assert np.array_equal(blocked.to_numpy(), 100 * i[:, None] + j)


def test_neighbours_in_blocked_layouts():
    n = 12
    x, y = oc.field(oc.f32), oc.field(oc.f32)
    block = oc.root.dense(oc.ij, (n // 4, n // 2)).dense(oc.ij, (4, 2))
    block.place(x, y)

    @oc.kernel
    def blur():
        for i, j in x:
            total = 0.0
            for di, dj in oc.static(oc.ndrange((-1, 2), (-1, 2))):
                total += x[(i + di + n) % n, (j + dj + n) % n]
            y[i, j] = total

    data = np.random.default_rng(0).integers(0, 9, (n, n)).astype(np.float32)
    x.from_numpy(data)
    blur()
    shifted = sum(np.roll(data, (a, b), (0, 1)) for a in (-1, 0, 1) for b in (-1, 0, 1))
    assert np.array_equal(y.to_numpy(), shifted)


def test_loops_over_nodes_run_at_their_own_resolution():
    x = oc.field(oc.i32)
    node = oc.root.dense(oc.i, 3)
    node.dense(oc.i, 4).place(x)
    seen = oc.field(oc.i32, shape=3)

    @oc.kernel
    def count():
        for b in x.parent(2):
            seen[b] += 1
        for i in x.parent():
            x[i] = oc.rescale_index(x, x.parent(2), oc.Vector([i]))[0]

    count()
    assert np.array_equal(seen.to_numpy(), [1, 1, 1])
    assert np.array_equal(x.to_numpy(), np.arange(12) // 4)


def test_the_same_code_runs_for_fields_that_are_laid_out_alike():
    @oc.kernel
    def increment(f: oc.template(), g: oc.template()):
        for i in f:
            f[i] += 1
            g[i] += 10

    a, b, c = (oc.field(oc.i32, shape=8) for _ in range(3))
    increment(a, b)
    increment(b, c)
    increment(c, c)
    assert len(increment.compile_statistics()) == 1
    assert [f[3] for f in (a, b, c)] == [1, 11, 21]
    increment(oc.field(oc.i32, shape=7), a)
    assert len(increment.compile_statistics()) == 2


def test_a_field_and_one_of_its_entries_may_meet_in_one_kernel():
    v = oc.Vector.field(2, oc.f32, shape=16)
    y = v.get_scalar_field(1)

    @oc.kernel
    def step():
        for i in v:
            v[i] = [1.0, 2.0]
            y[i] = 5.0
            v[i].x = v[i].y

    step()
    assert np.array_equal(v.to_numpy(), np.full((16, 2), 5.0))


@oc.data_oriented
class Solver:
    def __init__(self, n):
        self.n = n
        self.x = oc.field(oc.f32, shape=n)
        self.parts = [oc.field(oc.f32, shape=n) for _ in range(2)]

    @oc.func
    def part(self, k: oc.template(), i):
        return self.parts[k][i]

    @oc.kernel
    def step(self, a: oc.f32):
        for i in self.x:
            for k in oc.static(range(2)):
                self.parts[k][i] = a * (k + 1)
        for i in range(self.n):
            self.x[i] = self.part(0, i) + self.part(1, i) + self.x.shape[0]


def test_fields_of_objects_are_looked_up_at_each_launch():
    s = Solver(5)
    s.step(2.0)
    assert np.array_equal(s.x.to_numpy(), np.full(5, 11.0))
    old, s.x = s.x, oc.field(oc.f32, shape=5)
    s.step(1.0)
    assert np.array_equal(s.x.to_numpy(), np.full(5, 8.0))
    assert np.array_equal(old.to_numpy(), np.full(5, 11.0))
    assert len(Solver.step.compile_statistics()) == 1


def test_static_aliases_funcs_and_real_funcs_reach_fields():
    a, b = oc.field(oc.f32, shape=4), oc.field(oc.f32, shape=4)

    @oc.func
    def move(src: oc.template(), dst: oc.template(), i):
        dst[i] = src[i] + 1

    @oc.real_func
    def weight(i: oc.i32) -> oc.f32:
        result = 0.0
        if i > 0:
            result = weight(i - 1)
        return result + a[i]

    @oc.kernel
    def step():
        x, y = oc.static(a, b)
        for i in x:
            x[i] = i
        for i in x:
            move(x, y, i)
        for i in y:
            y[i] += weight(i)

    step()
    assert np.array_equal(b.to_numpy(), np.arange(4) + 1 + np.cumsum(np.arange(4)))


def test_mixed_entry_types_and_members_of_one_node():
    m = oc.Vector.field(2, [oc.i32, oc.f64])
    s = oc.field(oc.i8)
    oc.root.dense(oc.i, 3).place(m, s)

    @oc.kernel
    def fill():
        for i in s:
            m[i] = [i + 1, i + 0.5]
            s[i] = oc.i8(i - 1)

    fill()
    assert [m[i][0] for i in range(3)] == [1, 2, 3]
    assert [m[i][1] for i in range(3)] == [0.5, 1.5, 2.5]
    assert np.array_equal(s.to_numpy(), [-1, 0, 1])


def test_addresses_are_those_of_the_layout():
    x, y = oc.field(oc.f32), oc.Vector.field(3, oc.f64)
    oc.root.dense(oc.ij, (4, 5)).place(x, y)

    @oc.kernel
    def where(i: oc.i32, j: oc.i32) -> tuple[oc.u64, oc.u64]:
        return oc.get_addr(x, [i, j]), oc.get_addr(y, (i, j))

    first, second = where(0, 0), where(2, 3)
    cell = x.parent()._cell_size_bytes
    assert cell == 32
    assert [b - a for a, b in zip(first, second, strict=True)] == [(2 * 5 + 3) * cell] * 2
    assert first[1] - first[0] == 8


def test_hints_and_promises_change_nothing():
    x, y = oc.field(oc.i32, shape=8), oc.field(oc.i32, shape=8)
    y.fill(1)

    @oc.kernel
    def f():
        oc.block_local(x)
        oc.cache_read_only(y)
        for i in x:
            j = oc.assume_in_range(i + 1, i, 0, 2)
            x[oc.loop_unique(j - 1)] = j * y[i]

    f()
    assert np.array_equal(x.to_numpy(), np.arange(8) + 1)


def test_debug_mode_names_the_field_the_index_and_the_shape():
    oc.init(arch=oc.cfg.arch, debug=True, log_level="error")
    grid = oc.field(oc.f32, shape=(4, 5), offset=(-1, 0))

    @oc.kernel
    def poke(i: oc.i32, j: oc.i32):
        grid[i, j] = 1.0

    poke(-1, 4)
    for i, j in [(-2, 0), (3, 0), (0, 5), (0, -1)]:
        with pytest.raises(oc.OctantsAssertionError, match=rf"field `grid`.*\({i}, {j}\).*\(4, 5\)") as told:
            poke(i, j)
        assert "grid[i, j] = 1.0" in str(told.value)
    poke(2, 0)
    assert grid[2, 0] == 1.0 and grid[-1, 4] == 1.0


def test_destroyed_trees_are_refused_and_others_live_on():
    builder = oc.FieldsBuilder()
    x = oc.field(oc.i32)
    builder.dense(oc.i, 4).place(x)
    tree = builder.finalize()
    y = oc.field(oc.i32, shape=4)

    @oc.kernel
    def f():
        for i in y:
            y[i] += 1
            x[i] += 1

    f()
    tree.destroy()
    with pytest.raises(RuntimeError, match="destroyed"):
        f()
    assert np.array_equal(y.to_numpy(), np.ones(4))


def test_wrong_uses_are_refused_with_their_place():
    x = oc.field(oc.f32, shape=(4, 5))

    @oc.kernel
    def as_value() -> oc.f32:
        return x + 1.0

    @oc.kernel
    def one_index():
        x[0] = 1.0

    @oc.kernel
    def one_target():
        for i in x:
            x[i, 0] = 1.0

    @oc.kernel
    def sparse():
        for i, j in x:
            if oc.is_active(x.parent(), [i, j]):
                x[i, j] = 1.0

    @oc.kernel
    def unplaced():
        y[0] = 1.0

    y = oc.field(oc.f32)
    for wrong, error, text in [
        (as_value, oc.OctantsTypeError, "return x [+] 1.0"),
        (one_index, oc.OctantsCompilationError, "rank 2 but is indexed with 1 index"),
        (one_target, IndexError, "1 loop variable for 2 axes"),
        (sparse, oc.OctantsTypeError, "only works on pointer, hash or bitmasked nodes"),
        (unplaced, RuntimeError, "not placed"),
    ]:
        with pytest.raises(error, match=text):
            wrong()


def test_the_address_of_an_element_is_had_by_the_place_of_its_field(arch):
    x = oc.field(oc.i32)
    oc.root.dense(oc.ij, (1, 2)).dense(oc.ij, 2).dense(oc.ij, 2).place(x)

    @oc.kernel
    def fill():
        for i, j in x:
            x[i, j] = int(oc.get_addr(x.snode, [i, j]) - oc.get_addr(x, [0, 0])) // 4

    fill()
    assert sorted(x.to_numpy().ravel().tolist()) == list(range(32))
    assert x[0, 1] == 1 and x[1, 0] == 2 and x[0, 2] == 4

    @oc.kernel
    def of_a_node() -> oc.u64:
        return oc.get_addr(x.parent(), [0, 0])

    with pytest.raises(oc.OctantsTypeError, match="takes a field"):
        of_a_node()


@pytest.mark.parametrize("first", ["argument", "global"])
@pytest.mark.parametrize("held", [False, True], ids=["template", "dataclass"])
def test_a_global_field_stays_itself_where_an_argument_leads_to_it_too(arch, first, held):
    f, g = oc.field(oc.i32, 4), oc.field(oc.i32, 4)
    f.fill(1)
    g.fill(2)

    @dataclasses.dataclass(frozen=True)
    class Inner:
        a: oc.template()

    @dataclasses.dataclass(frozen=True)
    class Outer:
        inner: Inner

    @oc.func
    def both(x, y):
        return 10 * x[0] + y[0]

    @oc.kernel
    def of_template(a: oc.template()) -> oc.i32:
        result = 0
        if oc.static(first == "argument"):
            result = both(a, f)
        else:
            result = f[0] + 10 * a[0]
        return result

    @oc.kernel
    def of_member(d: Outer) -> oc.i32:
        result = 0
        if oc.static(first == "argument"):
            result = both(d.inner.a, f)
        else:
            result = f[0] + 10 * d.inner.a[0]
        return result

    def call(field):
        return of_member(Outer(Inner(field))) if held else of_template(field)

    assert [call(f), call(g), call(f)] == [11, 21, 11]


def test_inner_loops_over_fields_run_in_storage_order_and_may_be_left():
    blocked = oc.field(oc.i32)
    oc.root.dense(oc.i, 2).dense(oc.j, 3).dense(oc.i, 2).place(blocked, offset=(5, -1))
    row = oc.field(oc.i32, shape=4)
    one = oc.field(oc.i32, shape=())
    visited = oc.field(oc.i32, shape=(3, 12))

    @oc.func
    def first_above(limit):
        found = 100
        for i, j in blocked:
            if blocked[i, j] > limit:
                found = 10 * i + j
                break
        return found

    @oc.kernel
    def number_cells():
        n = 0
        oc.loop_config(serialize=True)
        for i, j in blocked:
            blocked[i, j] = n
            n += 1

    @oc.kernel
    def visit():
        for t in range(3):
            n = 0
            for i, j in blocked:
                if blocked[i, j] % 4 == 3:
                    continue
                visited[t, n] = 10 * i + j
                n += 1
                if n > 3 * t + 2:
                    break
            for I in oc.grouped(row):
                row[I] += n * I[0]
            for _ in one:
                one[None] += first_above(3 * t)

    number_cells()
    order = [(i, j) for block in (0, 2) for j in range(3) for i in (block, block + 1)]
    for n, (i, j) in enumerate(order):
        assert blocked[5 + i, j - 1] == n
    visit()
    kept = [10 * (5 + i) + j - 1 for n, (i, j) in enumerate(order) if n % 4 != 3]
    for t in range(3):
        count = min(3 * t + 3, 9)
        assert visited.to_numpy()[t].tolist() == kept[:count] + [0] * (12 - count)
    assert row.to_numpy().tolist() == [(3 + 6 + 9) * i for i in range(4)]
    cells = [10 * (5 + i) + j - 1 for i, j in order]
    assert one[None] == cells[1] + cells[4] + cells[7]


def test_a_member_of_structs_is_one_parameter_however_it_is_reached(arch, capfd):
    inner = oc.types.struct(a=oc.f32, b=oc.math.vec2)
    particle = oc.types.struct(pos=oc.math.vec3, inner=inner, rho=oc.f32)

    @oc.func
    def first(pos: oc.template(), i):
        return pos[i].x

    @oc.data_oriented
    class Particles:
        def __init__(self):
            self.p = particle.field(shape=4, layout=oc.Layout.SOA, needs_grad=True)

        @oc.kernel
        def step(self):
            for i in range(4):
                self.p[i].rho = self.p.pos[i].y * self.p[i].pos.y + first(self.p.pos, i)
                self.p.inner.b[i].y += self.p[i].inner.b.y + self.p.inner[i].b.x + 3

    oc.init(arch=getattr(oc, arch), print_ir=True)
    one, other = Particles(), Particles()
    capfd.readouterr()
    for particles in (one, other):
        particles.p.pos.from_numpy(np.arange(12, dtype=np.float32).reshape(4, 3))
        particles.step()
    shown = [
        line for line in "".join(capfd.readouterr()).splitlines() if line.startswith("kernel @") and "step" in line
    ]
    assert shown and all(line.count("field<tensor<f32, 3>") == 1 for line in shown)
    assert all(line.count("field<tensor<f32, 2>") == 1 for line in shown)
    for particles in (one, other):
        assert particles.p.rho.to_numpy().tolist() == [1.0, 19.0, 55.0, 109.0]
        assert particles.p.inner.b.to_numpy().tolist() == [[0.0, 3.0]] * 4
        particles.p.rho.grad.fill(1)
        particles.step.grad()
        assert particles.p.pos.grad.to_numpy().tolist() == [[1, 2 * y, 0] for y in (1, 4, 7, 10)]
