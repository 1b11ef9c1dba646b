"""Dataclasses as parameters: taken apart, pruned to what is used, read anew at each launch."""

import dataclasses
import time

import numpy as np
import pytest

import octants as oc

pytestmark = pytest.mark.host_access

Floats = oc.types.ndarray(dtype=oc.f32, ndim=1)


@dataclasses.dataclass(frozen=True)
class Inner:
    y: Floats
    k: oc.i32

    @oc.func
    def at(self, i):
        return self.y[i] * self.k


@dataclasses.dataclass
class Outer:
    x: Floats
    inner: Inner
    scale: oc.f32
    unused: Floats
    mode: oc.template()
    view: "oc.BufferView"


@oc.func
def product(inner: Inner, i):
    return inner.y[i] * inner.k


@oc.kernel
def combine(s: Outer, n: oc.i32):
    for i in range(n):
        if oc.static(s.mode == 1):
            s.x[i] = product(s.inner, i) + s.scale
        else:
            s.x[i] = product(i=i, inner=s.inner) - s.scale + s.view[0]


def floats(n, value=0.0):
    array = oc.ndarray(oc.f32, n)
    array.fill(value)
    return array


def outer(**changes):
    values = {
        "x": floats(4), "inner": Inner(floats(4, 1.0), 3), "scale": 0.5, "unused": None, "mode": 1, "view": floats(3, 2.0)[1:2],
    }  # fmt: skip
    return Outer(**(values | changes))


def test_members_templates_nested_and_passed_on(arch):
    s = outer()
    combine(s, 4)
    assert s.x.to_numpy().tolist() == [3.5] * 4
    s.inner = Inner(floats(4, 1.0), 7)
    s.scale = 1
    combine(s, n=4)
    assert s.x.to_numpy().tolist() == [8.0] * 4
    s.mode = 2
    combine(s, 4)
    assert s.x.to_numpy().tolist() == [8.0] * 4
    s.x = floats(4)
    s.scale = 2.0
    combine(s, 2)
    assert s.x.to_numpy().tolist() == [7.0, 7.0, 0.0, 0.0]
    assert len(combine.compile_statistics()) == 2


def test_methods_of_a_dataclass(arch):
    @oc.kernel
    def run(s: Inner, i: oc.i32) -> oc.f32:
        return s.at(i)

    assert run(Inner(floats(3, 2.0), 5), 1) == 10.0


def test_temporaries_are_read_anew():
    @oc.kernel
    def run(s: Inner) -> oc.f32:
        return s.y[0] + s.k

    arrays = [floats(2, n) for n in range(5)]
    for n in range(60):
        assert run(Inner(arrays[n % 5], n)) == n % 5 + n
    assert len(run.compile_statistics()) == 1


def test_the_same_object_twice_and_then_not():
    @oc.kernel
    def two(a: Inner, b: Inner) -> oc.i32:
        return a.k + 10 * b.k

    one, other = Inner(floats(1), 1), Inner(floats(1), 2)
    assert two(one, one) == 11 and two(one, other) == 21 and two(other, one) == 12 and two(other, other) == 22


def test_an_array_of_another_type_compiles_again():
    @dataclasses.dataclass
    class Any:
        x: oc.types.ndarray()

    @oc.kernel
    def first(s: Any) -> oc.f64:
        return s.x[0]

    s = Any(floats(2, 1.5))
    assert first(s) == 1.5
    s.x = oc.ndarray(oc.i32, 2)
    s.x.fill(7)
    assert first(s) == 7
    s.x = floats(2, 2.5)
    assert first(s) == 2.5 and len(first.compile_statistics()) == 2


def test_wrong_instances_and_members():
    with pytest.raises(oc.OctantsRuntimeError, match="must be an instance of Outer, not of int"):
        combine(3, 4)
    with pytest.raises(oc.OctantsRuntimeError, match="must be an instance of Outer, not of Inner"):
        combine(Inner(floats(1), 1), 4)
    with pytest.raises(TypeError, match=r"s\.scale.*str.*f32"):
        combine(outer(scale="a"), 4)
    with pytest.raises(TypeError, match=r"s\.inner\.k.*float.*i32"):
        combine(outer(inner=Inner(floats(4), 1.5)), 4)
    with pytest.raises(TypeError, match=r"s\.x.*an array"):
        combine(outer(x=3), 4)
    with pytest.raises(ValueError, match=r"argument s\.x - required element type: f32, but i32"):
        combine(outer(x=oc.ndarray(oc.i32, 4)), 4)
    with pytest.raises(ValueError, match=r"argument s\.x - required ndim=1"):
        combine(outer(x=oc.ndarray(oc.f32, (4, 4))), 4)
    # A member that is not used may be anything.
    combine(outer(unused="nothing"), 4)


def test_members_cannot_be_assigned():
    @oc.kernel
    def assign(s: Inner):
        s.k = 3

    with pytest.raises(oc.OctantsCompilationError):
        assign(Inner(floats(1), 1))


@pytest.mark.host_devices("about the time of a launch that is over at once")
def test_unused_members_cost_nothing():
    names = [f"m{n}" for n in range(20)]
    Wide = dataclasses.make_dataclass("Wide", [(name, Floats if n % 2 else oc.f32) for n, name in enumerate(names)])
    globals()["Wide"] = Wide

    @oc.kernel
    def use(w: Wide):
        for i in range(4):
            w.m1[i] = w.m3[i] * w.m2 + w.m4 + w.m6

    wide = Wide(*[floats(4, n) if n % 2 else float(n) for n in range(20)])
    use(wide)
    assert wide.m1.to_numpy().tolist() == [3 * 2 + 4 + 6] * 4
    times = []
    for _ in range(50):
        start = time.perf_counter()
        for _ in range(200):
            use(wide)
        times.append((time.perf_counter() - start) / 200)
    assert min(times) < 2e-6


def test_vectors_and_structs_as_members(arch):
    Ball = oc.types.struct(center=oc.math.vec3, radius=oc.f32)

    @dataclasses.dataclass
    class Scene:
        shift: oc.math.vec3
        ball: Ball
        out: Floats

    @oc.kernel
    def run(s: Scene, flag: oc.i32):
        for i in range(3):
            if flag > 0:
                s.out[i] = s.shift[i] + s.ball.center[i]
            else:
                s.out[i] = s.shift[i] * s.ball.radius

    scene = Scene(oc.math.vec3(1, 2, 3), Ball(center=oc.math.vec3(10, 20, 30), radius=0.5), floats(3))
    run(scene, 1)
    assert scene.out.to_numpy().tolist() == [11, 22, 33]
    run(scene, 0)
    assert scene.out.to_numpy().tolist() == [0.5, 1.0, 1.5]
    scene.shift = oc.math.vec3(4, 4, 4)
    run(scene, 1)
    assert scene.out.to_numpy().tolist() == [14, 24, 34]
    assert len(run.compile_statistics()) == 1
    scene.shift = oc.Vector([1.0, 2.0])
    with pytest.raises(TypeError):
        run(scene, 1)


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("shape", [(2,), (2, 3)])
def test_numpy_arrays_of_vectors_and_matrices_as_members(arch, shape, order):
    element = oc.types.vector(2, oc.f32) if len(shape) == 1 else oc.types.matrix(2, 3, oc.f32)

    @dataclasses.dataclass
    class Deep:
        w: oc.types.ndarray(dtype=element, ndim=1)

    @dataclasses.dataclass
    class Shallow:
        w: oc.types.ndarray(dtype=element, ndim=1)
        deep: Deep

    @oc.kernel
    def run(s: Shallow) -> oc.i32:
        for i in range(s.w.shape[0]):
            s.w[i] = s.w[i] * 10 + s.deep.w[i]
            s.deep.w[i][1 if oc.static(len(shape) == 1) else (1, 2)] = -1.0
        return s.w.shape[0]

    def sequence(n, first):
        return np.array(np.arange(first, first + n * np.prod(shape)).reshape(n, *shape), np.float32, order=order)

    for n in (3, 5):
        w, deep = sequence(n, 1), sequence(n, 100)
        expected, expected_deep = w * 10 + deep, deep.copy()
        expected_deep[(slice(None), *(extent - 1 for extent in shape))] = -1
        assert run(Shallow(w, Deep(deep))) == n
        assert w.tolist() == expected.tolist()
        assert deep.tolist() == expected_deep.tolist()
    assert len(run.compile_statistics()) == 1
    # An array of Octants' own has the same elements, and needs no code of its own.
    own = oc.Vector.ndarray(2, oc.f32, 3) if len(shape) == 1 else oc.Matrix.ndarray(2, 3, oc.f32, 3)
    own.from_numpy(sequence(3, 1))
    deep = sequence(3, 100)
    expected = sequence(3, 1) * 10 + deep
    assert run(Shallow(own, Deep(deep))) == 3
    assert own.to_numpy().tolist() == expected.tolist()


def test_vectors_of_any_length_as_members_compile_for_each_length(arch):
    @dataclasses.dataclass
    class Points:
        w: oc.types.ndarray(element_dim=1)

    @oc.kernel
    def total(s: Points) -> oc.f32:
        r = 0.0
        for i in range(s.w.shape[0]):
            r += s.w[i].sum()
        return r

    for count, length in ((4, 2), (2, 3), (3, 2)):
        points = Points(np.arange(count * length, dtype=np.float32).reshape(count, length))
        assert total(points) == points.w.sum()
    assert len(total.compile_statistics()) == 2


def test_arrays_without_the_elements_of_a_member_are_refused(arch):
    @dataclasses.dataclass
    class Points:
        w: oc.types.ndarray(dtype=oc.math.vec2, ndim=1)

    @oc.kernel
    def first(s: Points) -> oc.f32:
        return s.w[0][0]

    assert first(Points(np.ones((3, 2), np.float32))) == 1
    for shape, message in (
        ((3, 3), "required element type: .* a 3-vector of f32 is provided"),
        ((4, 3, 2), "required ndim=1, but an array of ndim=2"),
        ((3,), "required element type: .* a 3-vector of f32 is provided"),
    ):
        with pytest.raises(ValueError, match=message):
            first(Points(np.ones(shape, np.float32)))
    with pytest.raises(ValueError, match="required element type"):
        first(Points(np.ones((3, 2), np.float64)))
    assert first(Points(np.ones((6, 2), np.float32)[::2])) == 1
    assert first(Points(np.ones((3, 4), np.float32)[:, ::2])) == 1  # copied: entries lie apart


def test_a_data_oriented_member_is_refused():
    @oc.data_oriented
    class Solver:
        n = 3

    @dataclasses.dataclass
    class Bad:
        solver: Solver

    @oc.kernel
    def run(b: oc.template()) -> oc.i32:
        return b.solver.n

    with pytest.raises(oc.OctantsSyntaxError, match="invalid type annotation|data-oriented object inside"):

        @oc.kernel
        def typed(b: Bad) -> oc.i32:
            return b.solver.n

        typed(Bad(Solver()))
    with pytest.warns(DeprecationWarning):
        assert run(Bad(Solver())) == 3


def test_a_global_object_stays_itself_where_an_argument_leads_to_it_too(arch):
    @dataclasses.dataclass(frozen=True)
    class Sizes:
        n: oc.i32
        x: oc.types.ndarray(dtype=oc.i32, ndim=1)

    @dataclasses.dataclass(frozen=True)
    class Outer:
        inner: Sizes

    one, two = (Sizes(n, np.full(2, n, dtype=np.int32)) for n in (1, 2))

    @oc.kernel
    def last(d: Sizes) -> oc.i32:
        return 10 * d.n + 100 * d.x[0] + one.n

    @oc.kernel
    def first(d: Outer) -> oc.i32:
        return one.n + 10 * d.inner.n + 100 * d.inner.x[0]

    assert [last(one), last(two), last(one)] == [111, 221, 111]
    assert [first(Outer(one)), first(Outer(two)), first(Outer(one))] == [111, 221, 111]
