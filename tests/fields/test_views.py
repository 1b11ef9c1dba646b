"""Parts of arrays: ``array[a:b]``."""

import copy
import dataclasses
import pickle

import numpy as np
import pytest
from view_arguments import Ints, counted

import octants as oc

pytestmark = [pytest.mark.host_access, pytest.mark.sanitizer_core]


def test_slices_on_the_host():
    a = counted(10)
    view = a[2:8]
    assert (view.offset, view.size, view.shape, len(view)) == (2, 6, (6,), 6)
    assert view.get_ndarray() is a and view.dtype is oc.i32
    inner = view[-3:-1]
    assert (inner.offset, inner.size) == (5, 2)
    assert (a[-3:].offset, a[-3:].size) == (7, 3)
    assert a[1:20].size == 9 and a[5:2].size == 0
    assert view.subview(1, 4).offset == 3
    built = oc.BufferView(a, 3, 4)
    assert (built.offset, built.size) == (3, 4)
    assert inner.to_numpy().tolist() == [5, 6]


def test_bad_slices_on_the_host():
    a = counted(10)
    with pytest.raises(ValueError, match="step=1"):
        a[2:8:2]
    with pytest.raises(ValueError, match="out of range: offset=5, size=9, ndarray length=10"):
        oc.BufferView(a, 5, 9)
    with pytest.raises(ValueError, match="subview out of range"):
        a[1:5].subview(2, 9)
    for offset, size in ((2**32, 1), (0, 2**70), (-(2**70), 1), (-1, 2), (0, -1)):
        with pytest.raises(ValueError, match=f"out of range: offset={offset}, size={size}"):
            oc.BufferView(a, offset, size)
        with pytest.raises(ValueError, match=f"out of range: offset={offset}, size={size}"):
            a[:].subview(offset, size)
    with pytest.raises(TypeError, match="requires a slice, got int"):
        a[1:5][0]
    with pytest.raises(TypeError, match="Cannot nest"):
        oc.BufferView(a[1:3], 0, 1)
    with pytest.raises(TypeError):
        oc.BufferView(np.zeros(3), 0, 1)


@pytest.mark.host_devices("numpy sees the host's memory alone")
def test_numpy_sees_a_view_without_a_copy():
    m = oc.ndarray(oc.f32, (4, 3))
    seen = np.asarray(m[1:3])
    seen[0, 1] = 42
    assert seen.shape == (2, 3) and m[1, 1] == 42
    assert np.shares_memory(seen, m[2:].to_numpy(copy=None))
    del m
    assert seen[0, 1] == 42


@oc.func
def add(v, k):
    for i in range(v.size):
        v[i] += k


@oc.kernel
def work(v: oc.BufferView[oc.i32], w: oc.BufferView, a: Ints, n: oc.i32):
    for _ in range(1):
        add(v, 1)
        add(w[1:], 10)
        add(v.subview(n, size=1), 100)
        u = oc.BufferView(a, n, 2)
        u[1] = 7
        u[0:1][0] = u.shape[0] + w[-2:].size


def test_views_in_kernels(arch):
    a, b = oc.ndarray(oc.i32, 10), oc.ndarray(oc.i32, 4)
    work(a[2:5], a[5:8], b, 1)
    assert a.to_numpy().tolist() == [0, 0, 1, 101, 1, 0, 10, 10, 0, 0]
    assert b.to_numpy().tolist() == [0, 4, 7, 0]
    assert len(work.compile_statistics()) == 1


@oc.kernel
def first(v: oc.BufferView) -> oc.i32:
    return v[0] + 100 * v.size


@dataclasses.dataclass(frozen=True)
class Part:
    v: oc.BufferView


@oc.kernel
def first_of(s: Part) -> oc.i32:
    return s.v[0] + 100 * s.v.size


def test_temporaries_use_the_right_range(arch):
    a = counted(64)
    for n in range(40):
        assert first(a[n : n + 3]) == n + 300
        assert first_of(Part(a[n : n + 2])) == n + 200
    assert len(first.compile_statistics()) == len(first_of.compile_statistics()) == 1


def test_views_of_a_data_oriented_object(arch):
    @oc.data_oriented
    class Holder:
        def __init__(self, view):
            self.view = view

        @oc.kernel
        def run(self):
            for i in self.view:
                self.view[i] = i

    a = oc.ndarray(oc.i32, 6)
    holder = Holder(a[1:3])
    holder.run()
    holder.view = a[3:6]
    holder.run()
    assert a.to_numpy().tolist() == [0, 0, 1, 0, 1, 2]


def test_views_along_the_first_axis(arch):
    @oc.kernel
    def rows(v: oc.BufferView):
        for i, j in v:
            v[i, j] = 10 * i + j + v.shape[1]

    m = oc.ndarray(oc.f32, (4, 3))
    rows(m[1:3])
    assert m.to_numpy().tolist() == [[0, 0, 0], [3, 4, 5], [13, 14, 15], [0, 0, 0]]


def test_a_view_is_demanded():
    with pytest.raises(TypeError, match="a BufferView is required, got int"):
        first(3)
    with pytest.raises(TypeError, match="a BufferView is required"):
        first(counted(3))
    with pytest.raises(ValueError, match="required element type: i32, but f32"):
        work(oc.ndarray(oc.f32, 4)[:], counted(4)[:], counted(4), 1)


def test_a_step_in_a_kernel():
    @oc.kernel
    def bad(v: oc.BufferView):
        w = v[0:4:2]
        w[0] = 1

    with pytest.raises(oc.OctantsSyntaxError, match="no step"):
        bad(counted(4)[:])


def test_views_that_are_not_arguments_are_refused():
    a = counted(4)
    view = a[1:3]

    @oc.kernel
    def size() -> oc.i32:
        return view.size

    @oc.kernel
    def static_size() -> oc.i32:
        return oc.static(view.size)

    @oc.kernel
    def length() -> oc.i32:
        return oc.static(len(view))

    @oc.kernel
    def element() -> oc.i32:
        return view[0]

    @oc.kernel
    def part() -> oc.i32:
        return view[1:].size

    @oc.kernel
    def loop() -> oc.i32:
        n = 0
        for _ in range(view.shape[0]):
            n += 1
        return n

    def python_size():
        return view.size

    @oc.kernel
    def through_python() -> oc.i32:
        return python_size()

    @oc.data_oriented
    class Holder:
        def __init__(self):
            self.view = view

        def count(self):
            return len(self.view)

        @oc.kernel
        def run(self) -> oc.i32:
            return self.count()

    for launch in (through_python, Holder().run):
        with pytest.raises(oc.OctantsCompilationError, match="size of a view is read by Python code"):
            launch()
    for launch in (size, static_size, length, element, part, loop):
        with pytest.raises(oc.OctantsCompilationError, match="BufferView that is not an argument|not an argument"):
            launch()


def test_copies_of_views(arch):
    a = counted(6)
    view = a[1:4]
    other = copy.copy(view)
    assert other is not view and other.get_ndarray() is a and (other.offset, other.size) == (1, 3)
    deep = copy.deepcopy(view)
    assert deep.get_ndarray() is not a and deep.to_numpy().tolist() == [1, 2, 3]
    read = pickle.loads(pickle.dumps(view))
    assert (read.offset, read.size, read.get_ndarray().to_numpy().tolist()) == (1, 3, list(range(6)))
    a.fill(7)
    assert other.to_numpy().tolist() == [7, 7, 7] and first(other) == 307
    assert deep.to_numpy().tolist() == read.to_numpy().tolist() == [1, 2, 3]


def test_grouped_loops_over_views(arch):
    @oc.kernel
    def run(v: oc.BufferView, w: oc.BufferView, n: oc.i32):
        for I in oc.grouped(v):
            v[I] = I[0] + 1
        for I in oc.grouped(w[n:]):
            w[I] = 10 * I[0] + I[1]

    a, m = oc.ndarray(oc.i32, 6), oc.ndarray(oc.i32, (3, 2))
    run(a[2:5], m[:], -2)
    assert a.to_numpy().tolist() == [0, 0, 1, 2, 3, 0]
    assert m.to_numpy().tolist() == [[0, 1], [10, 11], [0, 0]]


def test_the_type_of_a_views_elements(arch):
    @oc.kernel
    def run(v: oc.BufferView, w: oc.BufferView, a: oc.types.ndarray()) -> oc.f64:
        x = oc.cast(2.9, v.dtype)
        y = oc.cast(2.9, w[1:].dtype)
        if oc.static(v.dtype == oc.i32):
            x += 10
        return x + y + oc.cast(0.5, a.dtype)

    assert run(counted(3)[:], oc.ndarray(oc.f64, 3)[:], np.zeros(3, np.float64)) == pytest.approx(12 + 2.9 + 0.5)


def test_the_array_of_a_view_is_named_arr():
    view = oc.BufferView(arr=counted(4), offset=1, size=2)
    assert (view.offset, view.size) == (1, 2)


def test_hints_where_a_view_is_something_else():
    a, x = counted(4), oc.field(oc.i32, shape=4)

    @oc.kernel
    def templated(v: oc.template()):
        v[0] = 1

    @oc.kernel
    def viewed(v: oc.BufferView):
        v[0] = 1

    @oc.kernel
    def made():
        v = oc.BufferView(x, 0, 2)
        v[0] = 1

    @oc.kernel
    def sliced(v: Ints):
        w = v[1:3]
        w[0] = 1

    with pytest.raises(TypeError, match=r"a BufferView cannot be a compile-time argument[^$]*oc\.BufferView"):
        templated(a[:])
    with pytest.raises(TypeError, match=r"a BufferView is required, got [^$]*oc\.template\(\)"):
        viewed(x)
    with pytest.raises(TypeError, match=r"a BufferView is required, got [^$]*array\[:\]"):
        viewed(a)
    with pytest.raises(TypeError, match=r"not of a field[^$]*a field has no views"):
        made()
    with pytest.raises(TypeError, match="a field has no views"):
        oc.BufferView(x, 0, 2)

    @oc.real_func
    def templated_function(v: oc.template()) -> oc.i32:
        return v[0]

    @oc.kernel
    def real(v: oc.BufferView) -> oc.i32:
        return templated_function(v)

    with pytest.raises(oc.OctantsCompilationError, match=r"annotate the parameter `oc\.BufferView`"):
        real(a[:])
    with pytest.raises(oc.OctantsSyntaxError, match=r"oc\.BufferView\("):
        sliced(a)
