"""Frozen dataclasses as arguments: their members are kept from one launch to the next, and never stale."""

import dataclasses
import gc
import weakref

import numpy as np
import pytest

import octants as oc


@dataclasses.dataclass(frozen=True)
class Inner:
    x: oc.Tensor
    factor: float


@dataclasses.dataclass(frozen=True)
class Outer:
    inner: Inner
    y: oc.types.ndarray(dtype=oc.f32, ndim=1)
    n: int


@oc.kernel
def add(outer: Outer, more: oc.f32):
    for i in range(outer.n):
        outer.y[i] += outer.inner.x[i] * outer.inner.factor + more


def made(value, n=3, backend=oc.Backend.NDARRAY, factor=2.0):
    x = oc.tensor(oc.f32, 3, backend=backend)
    x.fill(value)
    return Outer(Inner(x, factor), oc.ndarray(oc.f32, 3), n)


@pytest.mark.parametrize("backend", oc.Backend)
def test_launches_with_the_same_and_with_other_objects(arch, backend):
    first, second = made(1, backend=backend), made(10, n=2, backend=backend, factor=1.0)
    for _ in range(4):
        add(first, 0.5)
    assert first.y.to_numpy().tolist() == [10, 10, 10]
    for _ in range(3):
        add(second, 1.0)
        add(first, 0.0)
    assert second.y.to_numpy().tolist() == [33, 33, 0] and first.y.to_numpy().tolist() == [16, 16, 16]
    shared = Outer(first.inner, second.y, 3)
    for _ in range(3):
        add(shared, 0.0)
    assert second.y.to_numpy().tolist() == [39, 39, 6]


def test_other_kinds_of_members_under_the_same_names(arch):
    array, field = made(1), made(1, backend=oc.Backend.FIELD)
    numpy = Outer(array.inner, np.zeros(3, dtype=np.float32), 3)
    for one in (array, array, array, field, field, field, numpy, numpy, numpy, array):
        add(one, 0.0)
    assert [one.y[0] for one in (array, field)] == [8, 6] and numpy.y.tolist() == [6, 6, 6]


def test_nothing_is_kept_alive(arch):
    outer = made(1)
    for _ in range(4):
        add(outer, 0.0)
    arrays = [weakref.ref(outer.y), weakref.ref(outer.inner.x)]
    del outer
    gc.collect()
    assert [array() for array in arrays] == [None, None]
    again = made(3)
    for _ in range(4):
        add(again, 0.0)
    assert again.y[0] == 24


def test_what_is_not_a_field_of_the_class_is_read_anew(arch):
    state = {"n": 1}

    @dataclasses.dataclass(frozen=True)
    class Computed:
        y: oc.types.ndarray(dtype=oc.f32, ndim=1)
        names: list

        @property
        def n(self):
            return state["n"]

    @oc.kernel
    def count(of: oc.template(), computed: Computed):
        for i in range(of.n):
            computed.y[i] += 1

    class Mutable:
        n = 1

    mutable, computed = Mutable(), Computed(oc.ndarray(oc.f32, 3), [])
    for n in (1, 1, 1, 2, 2, 3):
        mutable.n = n
        count(mutable, computed)
    assert computed.y.to_numpy().tolist() == [6, 3, 1]


def test_a_mutable_dataclass_is_read_anew(arch):
    @dataclasses.dataclass
    class Mutable:
        x: oc.types.ndarray(dtype=oc.f32, ndim=1)

    @oc.kernel
    def increase(of: Mutable):
        for i in of.x:
            of.x[i] += 1

    a, b = oc.ndarray(oc.f32, 2), oc.ndarray(oc.f32, 2)
    one = Mutable(a)
    for _ in range(4):
        increase(one)
    one.x = b
    increase(one)
    assert (a[0], b[0]) == (4, 1)


def test_the_same_array_behind_a_frozen_and_another_argument(arch):
    @oc.data_oriented
    class Holder:
        def __init__(self, field):
            self.field = field

    @oc.kernel
    def go(inner: Inner, holder: oc.template()):
        for i in inner.x:
            inner.x[i] += holder.field[i]

    field, other = oc.field(oc.f32, 2), oc.field(oc.f32, 2)
    field.fill(1)
    other.fill(5)
    inner, holder = Inner(oc.wrap(field), 1.0), Holder(field)
    for _ in range(3):
        go(inner, holder)
    assert field[1] == 8
    holder.field = other
    for _ in range(3):
        go(inner, holder)
    assert field[1] == 8 + 15
    assert oc.reset() is None
    with pytest.raises(oc.OctantsRuntimeError):
        go(inner, holder)


@dataclasses.dataclass(frozen=True)
class Arrays:
    x: oc.types.ndarray(dtype=oc.f32, ndim=1)
    y: oc.Tensor
    scale: oc.f32
    n: int


def test_what_members_put_into_a_launch_is_kept_beside_arguments_that_change(arch):
    @oc.kernel
    def run(a: Arrays, more: oc.types.ndarray(dtype=oc.f32, ndim=1), c: oc.f32) -> oc.f32:
        for i in range(a.n):
            a.y[i] = a.x[i] * a.scale + more[i] * c
        return a.y[1]

    first, second = (Arrays(oc.ndarray(oc.f32, 3), oc.tensor(oc.f32, 3), s, 3) for s in (2.0, 3.0))
    first.x.fill(1.0)
    second.x.fill(10.0)
    own = oc.ndarray(oc.f32, 3)
    own.fill(100.0)
    other = np.full(3, 1000.0, dtype=np.float32)
    backwards = np.arange(3, dtype=np.float32)[::-1]
    for _ in range(3):
        assert [run(first, own, 1.0), run(first, own, 2.0), run(first, own, 3.0)] == [102, 202, 302]
        assert [run(first, other, 1.0), run(first, other, 2.0)] == [1002, 2002]
        assert [run(first, backwards, 1.0), run(first, backwards, 1.0)] == [3, 3]
        assert [run(second, own, 1.0), run(second, own, 2.0), run(second, own, 1.0)] == [130, 230, 130]
    first.x.fill(5.0)
    with oc.create_stream() as stream:
        run(first, own, 1.0, qd_stream=stream)
        stream.synchronize()
    assert first.y.to_numpy().tolist() == [110, 110, 110] and run(first, own, 0.0) == 10


def test_a_vector_behind_a_frozen_object_may_change(arch):
    @dataclasses.dataclass(frozen=True)
    class Held:
        x: oc.types.ndarray(dtype=oc.f32, ndim=1)
        v: oc.types.vector(2, oc.f32)

    @oc.kernel
    def run(held: Held) -> oc.f32:
        held.x[0] = held.v[0]
        return held.v[0] + held.v[1]

    held = Held(oc.ndarray(oc.f32, 1), oc.Vector([1.0, 2.0], oc.f32))
    assert [run(held) for _ in range(4)] == [3, 3, 3, 3]
    held.v[0] = 5.0
    assert run(held) == 7 and held.x[0] == 5


@dataclasses.dataclass(frozen=True)
class Fields:
    x: oc.Tensor
    y: oc.Tensor
    scale: oc.f32


@oc.kernel
def scale(of: Fields) -> oc.f32:
    for i in of.x:
        of.y[i] += of.x[i] * of.scale
    return of.y[1]


def tree_of(*fields):
    builder = oc.FieldsBuilder()
    for field in fields:
        builder.dense(oc.i, 3).place(field)
    return builder.finalize()


def test_fields_behind_frozen_objects_in_turn(arch):
    first, second = (Fields(oc.wrap(oc.field(oc.f32, 3)), oc.wrap(oc.field(oc.f32, 3)), s) for s in (2.0, 3.0))
    first.x.fill(1.0)
    second.x.fill(10.0)
    assert [scale(first) for _ in range(4)] == [2, 4, 6, 8]
    assert [scale(one) for one in (second, second, second, first, second, first)] == [30, 60, 90, 10, 120, 12]


def test_fields_behind_a_frozen_object_are_refused_once_their_tree_is_destroyed(arch):
    x, y, unrelated = oc.field(oc.f32), oc.field(oc.f32), oc.field(oc.f32)
    other, tree = tree_of(unrelated), tree_of(x, y)
    fields = Fields(oc.wrap(x), oc.wrap(y), 2.0)
    x.fill(1.0)
    assert [scale(fields) for _ in range(4)] == [2, 4, 6, 8]
    other.destroy()
    assert [scale(fields) for _ in range(4)] == [10, 12, 14, 16]
    tree.destroy()
    for _ in range(2):
        with pytest.raises(oc.OctantsRuntimeError, match="destroyed"):
            scale(fields)
