"""Forms of the language that large programs for Quadrants use: the Genesis simulator, above all."""

import copy
import dataclasses

import numpy as np
import pytest

import octants as oc


def test_vectors_and_matrices_without_a_dtype(arch):
    @oc.func
    def applied(m: oc.types.matrix(3, 3), v: oc.types.vector(3)) -> oc.types.vector(3):
        return m @ v

    @oc.func
    def both(v: oc.types.vector(3)) -> tuple[oc.types.vector(3), oc.types.matrix(3, 3)]:
        return v, v.outer_product(v)

    @oc.kernel
    def go(v: oc.types.vector(3, oc.f32)) -> oc.types.vector(3, oc.f32):
        same, product = both(v)
        return applied(product, same)

    assert go([1.0, 2.0, 3.0]).to_list() == [14, 28, 42]


def test_a_conditional_expression_chooses_between_tuples(arch):
    x = oc.field(oc.i32, (3, 3))

    @oc.kernel
    def symmetric():
        for i, j in oc.ndrange(3, 3):
            x[(j, i) if i > j else (i, j)] += 1

    @oc.kernel
    def pair(n: oc.i32) -> oc.i32:
        a, b = (1, 2) if n > 0 else (3, 4)
        return 10 * a + b

    symmetric()
    assert x.to_numpy().tolist() == [[1, 2, 2], [0, 1, 2], [0, 0, 1]]
    assert (pair(1), pair(-1)) == (12, 34)


def test_numpy_inside_static(arch):
    sizes = np.array([1, 2])

    @oc.kernel
    def go() -> oc.f32:
        total = 0.0
        for _ in oc.static(range(np.int32(3))):
            total += oc.static(np.sqrt(np.float32(4.0)))
        if oc.static(sizes.sum() == np.int64(3)):
            total += oc.static(np.max(sizes))
        return total

    assert go() == 8


def test_static_inside_static(arch):
    n = 3

    @oc.func
    def bound():
        return oc.static(n)

    @oc.kernel
    def go() -> oc.i32:
        total = 0
        for i in oc.static(range(oc.static(n) if oc.static(n > 2) else 1)):
            if oc.static(oc.static(i) > 1):
                total += i
        for i in oc.static(range(bound())):
            total += 10 * i
        return total

    assert go() == 32

    @oc.kernel
    def refused(m: oc.i32) -> oc.i32:
        return oc.static(oc.static(m))

    with pytest.raises(oc.OctantsCompilationError, match="must be compile-time constants"):
        refused(1)


def test_funcs_that_return_ranges_and_shapes(arch):
    @oc.func
    def neighbours():
        return oc.ndrange((-1, 2), (-1, 2))

    @oc.func
    def shape():
        return 2, 3

    @oc.kernel
    def go() -> oc.i32:
        total = 0
        for I in oc.static(oc.grouped(neighbours())):
            total += 1 + I[0] * I[1]
        for I in oc.static(oc.grouped(oc.ndrange(*shape()))):
            total += 100 * I[1]
        return total

    assert go() == 9 + 600


@oc.data_oriented
class Grid:
    def __init__(self, *res):
        self.res = np.array(res)
        self.x = oc.field(oc.i32, (4, 4, 4))

    @oc.kernel
    def count(self, times: oc.i32):
        for i, j, k, _ in oc.ndrange(*self.res, times):
            self.x[i, j, k] += 1

    @oc.kernel
    def count_grouped(self):
        for I in oc.grouped(oc.ndrange(*self.res)):
            self.x[I] += 10

    @oc.kernel
    def length(self) -> oc.i32:
        return oc.static(len([*self.res])) + oc.cast(self.res[0], oc.i32)


def test_ranges_over_a_numpy_member(arch):
    grid = Grid(2, 3, 4)
    grid.count(2)
    grid.count_grouped()
    expected = np.zeros((4, 4, 4), dtype=np.int32)
    expected[:2, :3, :4] = 12
    assert (grid.x.to_numpy() == expected).all() and grid.length() == 5
    grid.res[1] = 1
    grid.count_grouped()
    expected[:2, :1, :4] += 10
    assert (grid.x.to_numpy() == expected).all(), "the numbers are compared anew at each launch"
    grid.res = np.array([3, 1])
    assert grid.length() == 5, "and so is how many there are"
    with pytest.raises(oc.OctantsSyntaxError, match="variable"):
        grid.count(1)
    grid.res, before = np.array([[0, 2], [1, 3], [0, 4]]), grid.x.to_numpy()
    grid.count(2)
    before[:2, 1:3, :4] += 2
    assert (grid.x.to_numpy() == before).all(), "rows are ranges"
    grid.res = np.ones((2, 2, 2), dtype=np.int64)
    with pytest.raises(oc.OctantsSyntaxError, match="cannot be unpacked at compile time"):
        grid.count(1)


def test_a_tuple_plus_a_vector(arch):
    @oc.kernel
    def go() -> oc.types.vector(4, oc.i32):
        v = oc.Vector([1, 2])
        a, b = (1, 1) + v, v * (2, 3)
        return oc.Vector([a[0], a[1], b[0], b[1]])

    assert go().to_list() == [2, 3, 2, 6]


def test_copies_of_funcs(arch):
    @oc.func
    def increased(x):
        return x + 1

    class Holder:
        pass

    holder = Holder()
    holder.function = increased
    copied = copy.deepcopy(holder).function

    @oc.kernel
    def go() -> oc.i32:
        return copied(1)

    assert go() == 2


@pytest.mark.parametrize("backend", oc.Backend)
@pytest.mark.parametrize("layout", [None, (1, 0)])
def test_tensors_inside_dataclasses(arch, backend, layout):
    @dataclasses.dataclass(frozen=True)
    class State:
        x: oc.Tensor
        v: oc.Tensor
        unused: oc.Tensor
        n: int

    state = State(
        oc.tensor(oc.f32, (3, 2), backend=backend, layout=layout),
        oc.Vector.tensor(3, oc.f32, (3,), backend=backend),
        None,
        2,
    )

    @oc.func
    def set_vector(state: State, i: int):
        state.v[i] = oc.Vector([1.0, 2.0, 3.0]) * state.n

    @oc.kernel
    def go(state: State):
        for i in range(state.x.shape[0]):
            state.x[i, 1] = i
            set_vector(state, i)

    go(state)
    assert state.x.to_numpy().tolist() == [[0, 0], [0, 1], [0, 2]] and state.v.to_numpy()[1].tolist() == [2, 4, 6]


def test_kernels_with_graph_run_as_others_do(arch):
    @oc.kernel(graph=True, fastcache=True)
    def go(x: oc.types.NDArray[oc.i32, 1]):
        for i in x:
            x[i] += 1
        if oc.static(False):
            tile = oc.simt.Tile32x32.zeros(oc.f32)
            oc.simt.block.sync()
            tile -= oc.outer(x, x)
        for i in x:
            x[i] *= 2

    x = oc.ndarray(oc.i32, 3)
    go(x)
    assert x.to_numpy().tolist() == [2, 2, 2]
    with oc.graph.parallel_context(), oc.graph.parallel():
        pass


def test_what_graphs_lack_is_refused_where_it_is_compiled(arch):
    @oc.kernel(graph=True)
    def loop(n: oc.types.NDArray[oc.i32, 0]):
        while oc.graph.do_while(n):
            n[None] -= 1

    with pytest.raises(oc.OctantsCompilationError, match="oc.graph.do_while is not in Octants yet"):
        loop(oc.ndarray(oc.i32, ()))
    with pytest.raises(oc.OctantsSyntaxError, match="checkpoints=True requires graph=True"):
        oc.kernel(checkpoints=True)


@pytest.fixture
def fills(monkeypatch):
    """Fills that wait until memory is given to fields, as Genesis lets them."""
    from octants.lang.impl import PyQuadrants

    given, waiting = PyQuadrants.materialize, []

    def materialize(self):
        given(self)
        fills = waiting.copy()
        waiting.clear()
        for field, value in fills:
            field.fill(value)
        if fills:
            self.prog.synchronize()

    monkeypatch.setattr(PyQuadrants, "materialize", materialize)
    return waiting


def test_programs_may_wrap_the_hook_before_the_first_use_of_a_field(arch, fills):
    def waiting(shape, value):
        field = oc.field(oc.f32, shape)
        fills.append((field, value))
        return field

    assert waiting((), 3.0)[None] == 3, "an element"
    assert waiting(4, 4.0).to_numpy().tolist() == [4] * 4, "all of them"
    x, y = waiting(4, 5.0), waiting(3, 6.0)

    @oc.kernel
    def captured() -> oc.f32:
        return x[2]

    @oc.kernel
    def passed(of: oc.template()) -> oc.f32:
        return of[2]

    assert captured() == 5 and passed(y) == 6, "launches"
    z = waiting(3, 7.0)
    z[1] = 1
    assert z.to_numpy().tolist() == [7, 1, 7], "writes"
    placed = oc.field(oc.f32)
    oc.root.dense(oc.i, 2).place(placed)
    fills.append((placed, 8.0))
    assert passed(waiting(3, 9.0)) == 9 and placed[1] == 8 and not fills


def test_programs_may_wrap_the_hook_at_the_end_of_a_session(arch, monkeypatch):
    from octants.lang.impl import PyQuadrants

    ends, given = [], PyQuadrants.clear
    monkeypatch.setattr(PyQuadrants, "clear", lambda self: (given(self), ends.append(oc.cfg)))
    x = oc.field(oc.f32, 2)
    oc.init(arch=getattr(oc, arch))
    assert ends == [None]
    oc.reset()
    assert ends == [None, None]
    with pytest.raises(oc.OctantsRuntimeError):
        x[0]
