"""Parts of arrays: ``array[a:b]``."""

import dataclasses

import numpy as np
import pytest

import octants as oc

Ints = oc.types.ndarray(dtype=oc.i32, ndim=1)


def counted(n):
    array = oc.ndarray(oc.i32, n)
    array.from_numpy(np.arange(n, dtype=np.int32))
    return array


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
    with pytest.raises(TypeError, match="requires a slice, got int"):
        a[1:5][0]
    with pytest.raises(TypeError, match="Cannot nest"):
        oc.BufferView(a[1:3], 0, 1)
    with pytest.raises(TypeError):
        oc.BufferView(np.zeros(3), 0, 1)


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


@oc.func
def inner(v, i):
    return v[i]


@oc.func
def outer(v, i):
    return inner(v, i)


@oc.kernel
def beyond(v: oc.BufferView, out: Ints):
    for i in range(3):
        out[i] = outer(v, i + 2)


@oc.kernel
def sub(v: oc.BufferView, n: oc.i32, out: Ints):
    for i in range(3):
        out[i] = v[1:].subview(0, n)[0]


@oc.kernel
def build(a: Ints, n: oc.i32) -> oc.i32:
    return oc.BufferView(a, n, 2)[0]


@pytest.mark.parametrize("device", ["cpu", "reference"])
def test_checks_in_debug_mode(device):
    oc.init(arch=getattr(oc, device), debug=True, log_level="error")
    a, out = counted(10), counted(10)
    with pytest.raises(oc.OctantsAssertionError) as caught:
        beyond(a[2:5], out)
    text = str(caught.value)
    assert "BufferView Out Of Range: kernel[beyond] tid=" in text and "(offset=2, size=3)." in text
    lines = [line.strip() for line in text[text.index("Callstack:") :].splitlines()]
    assert [line.split()[0] for line in lines[1:4]] == ["beyond", "outer", "inner"]
    assert all("test_views.py:" in line for line in lines[1:4])
    with pytest.raises(oc.OctantsAssertionError, match="subview Out Of Range.*subview size=9, parent size=2"):
        sub(a[2:5], 9, out)
    with pytest.raises(
        oc.OctantsAssertionError, match="construction Out Of Range.*offset=9, size=2, ndarray length=10"
    ):
        build(a, 9)
    assert build(a, 8) == 8
    sub(a[2:5], 2, out)
    assert out[0] == 3
