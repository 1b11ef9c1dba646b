"""``oc.tensor``: the same program gives the same results whatever the backend and the layout."""

import copy
import dataclasses
import itertools
import pickle
from typing import Optional

import numpy as np
import pytest

import octants as oc

pytestmark = pytest.mark.host_access

BACKENDS = [oc.Backend.NDARRAY, oc.Backend.FIELD]


def layouts(rank):
    return [None, *itertools.permutations(range(rank))]


def numbered(shape, dtype=np.float32):
    return (np.arange(np.prod(shape, dtype=int)).reshape(shape) + 1).astype(dtype)


@oc.func
def doubled(x: oc.Tensor, i: oc.i32, j: oc.i32):
    return 2 * x[i, j]


@oc.kernel
def stencil(x: oc.Tensor, y: oc.Tensor, total: oc.Tensor):
    for i, j in y:
        s = doubled(x, i, j)
        if i > 0:
            s += x[i - 1, j]
        if j + 1 < x.shape[1]:
            s += x[i, j + 1]
        y[i, j] = s
    for index in oc.grouped(x):
        total[index[1]] += x[index]


def expected_stencil(x):
    y = 2 * x
    y[1:] += x[:-1]
    y[:, :-1] += x[:, 1:]
    return y, x.sum(axis=0)


@pytest.mark.parametrize("backend", BACKENDS, ids=lambda b: b.name)
@pytest.mark.parametrize("layout", layouts(2), ids=str)
@pytest.mark.parametrize("layout_out", [None, (1, 0)], ids=str)
def test_a_program_gives_the_same_whatever_the_backend_and_layout(arch, backend, layout, layout_out):
    x = oc.tensor(oc.f32, (7, 5), backend=backend, layout=layout)
    y = oc.tensor(oc.f32, (7, 5), backend=backend, layout=layout_out)
    total = oc.tensor(oc.f32, (5,), backend=backend)
    x.from_numpy(numbered((7, 5)))
    stencil(x, y, total)
    expected, sums = expected_stencil(numbered((7, 5)))
    np.testing.assert_array_equal(y.to_numpy(), expected)
    np.testing.assert_array_equal(total.to_numpy(), sums)
    assert y.layout == layout_out and y.shape == (7, 5)
    assert y[6, 4] == expected[6, 4]
    y[6, 4] = 5
    assert y.to_numpy()[6, 4] == 5


@pytest.mark.parametrize("rank", [3, 4])
def test_every_permutation_of_more_axes(arch, rank):
    @oc.kernel
    def add(x: oc.Tensor, y: oc.Tensor):
        for index in oc.grouped(x):
            weight = 0
            for axis in oc.static(range(rank)):
                weight = 10 * weight + index[axis]
            y[index] += x[index] + weight

    shape = (2, 3, 4, 5)[:rank]
    weights = sum(i * 10 ** (rank - 1 - axis) for axis, i in enumerate(np.indices(shape)))
    permutations = layouts(rank)
    chosen = permutations if rank == 3 else permutations[::5]
    for backend, layout in itertools.product(BACKENDS, chosen):
        x = oc.tensor(oc.i32, shape, backend=backend, layout=layout)
        y = oc.tensor(oc.i32, shape, backend=backend, layout=chosen[-1])
        x.from_numpy(numbered(shape, np.int32))
        y.fill(7)
        add(x, y)
        np.testing.assert_array_equal(y.to_numpy(), numbered(shape, np.int32) + weights + 7)
        x.copy_from(y)
        np.testing.assert_array_equal(x.to_numpy(), y.to_numpy())
        assert np.asarray(x).shape == shape


def test_aliases_funcs_and_shapes_keep_the_layout(arch):
    @oc.func
    def write(t: oc.template(), i: oc.i32, j: oc.i32, v: oc.f32):
        t[i, j] = v + t.shape[0] * 100 + t.shape[1] * 1000

    @oc.real_func
    def read(t: oc.types.ndarray(dtype=oc.f32, ndim=2), i: oc.i32, j: oc.i32) -> oc.f32:
        return t[i, j]

    @oc.kernel
    def go(x: oc.Tensor, out: oc.types.ndarray(dtype=oc.f32, ndim=1)):
        for _ in range(1):
            other = x
            write(other, 1, 2, 5.0)
            out[0] = read(other, 1, 2)

    x = oc.tensor(oc.f32, (2, 3), layout=(1, 0))
    out = oc.ndarray(oc.f32, 1)
    go(x, out)
    assert x[1, 2] == out[0] == 3205
    assert np.count_nonzero(x.to_numpy()) == 1


@pytest.mark.parametrize("backend", BACKENDS, ids=lambda b: b.name)
def test_tensors_of_vectors_and_matrices(arch, backend):
    @oc.kernel
    def turn(v: oc.Tensor, m: oc.Tensor):
        for i in v:
            v[i] = m[i] @ v[i] + oc.Vector([1.0, 0.0])

    v = oc.Vector.tensor(2, oc.f32, 3, backend=backend)
    m = oc.Matrix.tensor(2, 2, oc.f32, (3,), backend=backend)
    assert (type(v), type(m)) == (oc.VectorTensor, oc.MatrixTensor)
    assert (v.element_shape, m.element_shape) == ((2,), (2, 2))
    v.from_numpy(numbered((3, 2)))
    m.from_numpy(numbered((3, 2, 2)))
    turn(v, m)
    expected = np.einsum("ijk,ik->ij", numbered((3, 2, 2)), numbered((3, 2))) + [1, 0]
    np.testing.assert_allclose(v.to_numpy(), expected)
    v[1] = [8, 9]
    assert v[1][1] == 9
    again = pickle.loads(pickle.dumps(v))
    assert type(again) is oc.VectorTensor and again._backend_enum() is backend
    np.testing.assert_array_equal(again.to_numpy(), v.to_numpy())


@dataclasses.dataclass
class State:
    x: oc.Tensor
    y: oc.Tensor
    n: oc.i32


@oc.kernel
def scale_state(state: State):
    for i, j in state.x:
        state.x[i, j] *= state.n
        if oc.static(state.y is not None):
            state.y[i, j] = state.x[i, j] + 1


@oc.data_oriented
class Solver:
    def __init__(self, backend, layout):
        self.x = oc.tensor(oc.f32, (3, 4), backend=backend, layout=layout)
        self.parts = [oc.tensor(oc.f32, 3, backend=backend) for _ in range(2)]

    @oc.kernel
    def step(self):
        for i, j in self.x:
            self.x[i, j] += 10 * i + j
        for i in range(3):
            for k in oc.static(range(2)):
                self.parts[k][i] = self.x[i, k]


@pytest.mark.parametrize("backend", BACKENDS, ids=lambda b: b.name)
@pytest.mark.parametrize("layout", [None, (1, 0)], ids=str)
def test_tensors_in_dataclasses_and_objects(arch, backend, layout):
    x = oc.tensor(oc.f32, (3, 4), backend=backend, layout=layout)
    x.from_numpy(numbered((3, 4)))
    y = oc.tensor(oc.f32, (3, 4), backend=backend)
    scale_state(State(x, y, 2))
    np.testing.assert_array_equal(y.to_numpy(), 2 * numbered((3, 4)) + 1)
    solver = Solver(backend, layout)
    solver.step()
    solver.step()
    expected = 2 * (10 * np.arange(3)[:, None] + np.arange(4.0))
    np.testing.assert_array_equal(solver.x.to_numpy(), expected)
    np.testing.assert_array_equal(solver.parts[1].to_numpy(), expected[:, 1])
    # Another tensor in its place: of the same kind, then of another layout.
    for other in (layout, (1, 0)):
        solver.x = oc.tensor(oc.f32, (3, 4), backend=backend, layout=other)
        solver.step()
        np.testing.assert_array_equal(solver.x.to_numpy(), expected / 2)


ONE = oc.types.NDArray[oc.i32, 1]
#: Annotations of what may be `None`, and how a value for each is made.
OPTIONAL = {
    "tensor": (oc.Tensor | None, oc.tensor),
    "optional tensor": (Optional[oc.Tensor], oc.tensor),
    "array": (ONE | None, oc.ndarray),
    "none first": (None | oc.types.ndarray(), oc.ndarray),
    "any array": (Optional[oc.types.NDArray], oc.ndarray),
    "template": (oc.Template | None, oc.field),
    "template object": (oc.template() | None, oc.field),
}


@pytest.mark.parametrize("annotation, make", OPTIONAL.values(), ids=OPTIONAL.keys())
def test_parameters_that_may_be_none(arch, annotation, make):
    @oc.func
    def first(x: annotation):
        found = 1
        if oc.static(x is not None):
            found = x[0]
        return found

    @oc.kernel
    def go(x: annotation, y: annotation) -> oc.i32:
        return 10 * first(x) + first(y)

    five = make(oc.i32, 3)
    five.fill(5)
    assert [go(None, five), go(five, five), go(None, None), go(five, None), go(None, five)] == [15, 55, 11, 51, 15]


def test_members_that_may_be_none(arch):
    @dataclasses.dataclass
    class Data:
        x: ONE | None
        y: oc.Tensor | None

    @oc.kernel
    def go(data: Data) -> oc.i32:
        found = 0
        if oc.static(data.x is not None):
            found += data.x[0]
        if oc.static(data.y is not None):
            found += 10 * data.y[0]
        return found

    five = oc.ndarray(oc.i32, 3)
    five.fill(5)
    assert [go(Data(five, None)), go(Data(None, five)), go(Data(None, None)), go(Data(five, five))] == [5, 50, 0, 55]


def test_what_may_be_none_is_checked_where_it_is_not():
    @oc.kernel
    def go(x: ONE | None):
        pass

    go(None)
    for wrong in oc.ndarray(oc.f32, 3), oc.ndarray(oc.i32, (3, 3)):
        with pytest.raises(ValueError, match="OC0802"):
            go(wrong)
    with pytest.raises(oc.OctantsRuntimeTypeError, match="OC0801"):
        go(oc.field(oc.i32, 3))
    assert repr(ONE | None).endswith(" | None") and not repr(ONE).endswith("None")
    for annotation in (int | None, Optional[oc.math.vec3], int | float):
        with pytest.raises(oc.OctantsSyntaxError, match="OC0105"):

            @oc.kernel
            def refused(x: annotation):
                pass


def test_none_and_bare_objects_where_a_tensor_is_taken(arch):
    @oc.kernel
    def add(x: oc.Tensor, bias: oc.Tensor):
        for i in x:
            if oc.static(bias is not None):
                x[i] += bias[i]
            x[i] += 1

    x, bias = oc.ndarray(oc.f32, 3), oc.field(oc.f32, 3)
    bias.fill(10)
    add(x, None)
    add(x, bias)
    add(oc.wrap(x), oc.wrap(bias))
    assert x.to_numpy().tolist() == [23, 23, 23]


def test_a_field_behind_a_tensor_may_be_global_and_a_template(arch):
    x = oc.tensor(oc.f32, (2, 3), backend=oc.Backend.FIELD, layout=(1, 0))

    @oc.kernel
    def fill(t: oc.template()):
        for i, j in x:
            t[i, j] = x[i, j] + 3 * i + j

    y = oc.tensor(oc.f32, (2, 3), backend=oc.Backend.FIELD)
    x.fill(1)
    for _ in range(2):
        fill(y)
    np.testing.assert_array_equal(y.to_numpy(), numbered((2, 3)))
    fill(x)
    np.testing.assert_array_equal(x.to_numpy(), numbered((2, 3)))


def test_pickles_keep_backend_layout_and_data(arch):
    for backend, layout in itertools.product(BACKENDS, layouts(3)):
        x = oc.tensor(oc.f64, (2, 3, 4), backend=backend, layout=layout)
        x.from_numpy(numbered((2, 3, 4), np.float64))
        for again in (pickle.loads(pickle.dumps(x)), copy.deepcopy(x)):
            assert (again._backend_enum(), again.dtype, again.shape, again.layout) == (
                backend,
                oc.f64,
                x.shape,
                x.layout,
            )
            np.testing.assert_array_equal(again.to_numpy(), x.to_numpy())
            again.fill(0)
        assert x[1, 2, 3] == 24
    bare = pickle.loads(pickle.dumps(oc.tensor(oc.i8, (2, 3), layout=(1, 0))._unwrap()))
    assert bare.layout == (1, 0) and bare.shape == (2, 3)
    text = pickle.dumps(oc.tensor(oc.f32, 3))
    oc.reset()
    with pytest.raises(RuntimeError, match=r"oc\.init"):
        pickle.loads(text)


def test_gradients_of_tensors(arch):
    assert oc.tensor(oc.f32, 3).grad is None and not oc.tensor(oc.f32, 3).has_grad()
    for backend in BACKENDS:
        x = oc.tensor(oc.f32, (2, 3), backend=backend, needs_grad=True)
        assert x.has_grad() and not x.has_dual()
        assert isinstance(x.grad, oc.Tensor) and x.grad is x.grad and x.grad.shape == (2, 3)
        x.grad.fill(4)
        assert x.to_numpy().sum() == 0 and x.grad[1, 2] == 4
        assert not oc.tensor(oc.i32, 3, backend=backend, needs_grad=True).has_grad()
    unplaced = oc.tensor(oc.f32, 3, backend=oc.Backend.FIELD).grad
    assert "not placed" in repr(unplaced)
    for use in (lambda: unplaced[0], lambda: unplaced.fill(1), lambda: unplaced.to_numpy()):
        with pytest.raises(oc.OctantsRuntimeError, match="Field has no allocation"):
            use()
    with pytest.raises(oc.OctantsRuntimeError, match="i32 is not supported for ndarray"):
        oc.ndarray(oc.i32, 3, needs_grad=True)


def test_what_is_refused(arch):
    x, y = (oc.tensor(oc.f32, (2, 3), backend=backend, layout=(1, 0)) for backend in BACKENDS)
    for bad in (0, None, (0, 1, 2), slice(None)):
        for tensor in (x, y):
            with pytest.raises(TypeError):
                tensor[bad]
    for wrong in ((0,), (0, 0), (0, 2), (0, 1.0), "ji", 5, (True, False)):
        with pytest.raises(ValueError, match="layout"):
            oc.tensor(oc.f32, (2, 3), layout=wrong)
    for wrong in ("FIELD", 7, None):
        with pytest.raises(ValueError, match="backend="):
            oc.tensor(oc.f32, 3, backend=wrong)
    with pytest.raises(TypeError, match="layout="):
        oc.tensor(oc.f32, (2, 3), order="ji")
    with pytest.raises(TypeError, match="unexpected keyword"):
        oc.tensor(oc.f32, (2, 3), offset=1)
    with pytest.raises(TypeError, match="unexpected keyword"):
        oc.Vector.tensor(3, oc.f32, (2, 3), layout=(1, 0))
    with pytest.raises(TypeError, match="layout="):
        oc.tensor(oc.math.vec3, (2, 3), layout=(1, 0))
    for wrong in (x, 3, None, np.zeros(3)):
        with pytest.raises(TypeError, match="an ndarray or a field"):
            oc.Tensor(wrong)
    with pytest.raises(TypeError):
        oc.wrap(x)
    with pytest.raises(AssertionError):
        x.copy_from(y)
    with pytest.raises(TypeError):
        y.copy_from(x)
    with pytest.raises(AssertionError):
        x.copy_from(oc.tensor(oc.f32, (3, 2)))
    with pytest.raises(ValueError):
        y.copy_from(oc.tensor(oc.f32, (3, 2), backend=oc.Backend.FIELD))
    with pytest.raises(NotImplementedError):
        iter(x)
    oc.init(arch=getattr(oc, arch), log_level="error")
    for tensor in (x, y):
        with pytest.raises(RuntimeError):
            tensor.fill(1)


@pytest.mark.parametrize("seed", range(3))
def test_random_programs_over_random_layouts(arch, seed):
    """Gathers and updates at random places: what each backend and layout gives is what numpy gives."""

    @oc.kernel
    def update(a: oc.Tensor, b: oc.Tensor, where: oc.types.ndarray(dtype=oc.i32, ndim=2), n: oc.i32):
        for k in range(n):
            i, j, l = where[k, 0], where[k, 1], where[k, 2]  # noqa: E741
            oc.atomic_add(b[l, i, j], a[i, j, l] * (k + 1))

    rng = np.random.default_rng(seed)
    shape = tuple(int(n) for n in rng.integers(1, 6, 3))
    turned = (shape[2], shape[0], shape[1])
    where = np.stack([rng.integers(0, n, 40) for n in shape], axis=1).astype(np.int32)
    a = rng.integers(-9, 9, shape).astype(np.int64)
    expected = np.zeros(turned, np.int64)
    for k, (i, j, l) in enumerate(where):  # noqa: E741
        expected[l, i, j] += a[i, j, l] * (k + 1)
    for backend in BACKENDS:
        for layout in layouts(3):
            x = oc.tensor(oc.i64, shape, backend=backend, layout=layout)
            y = oc.tensor(oc.i64, turned, backend=backend, layout=tuple(rng.permutation(3)))
            x.from_numpy(a)
            update(x, y, where, len(where))
            np.testing.assert_array_equal(y.to_numpy(), expected)
