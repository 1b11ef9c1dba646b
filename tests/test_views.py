"""Parts of arrays: ``array[a:b]``."""

import copy
import dataclasses
import pickle

import numpy as np
import pytest

import octants as oc

pytestmark = [pytest.mark.host_access, pytest.mark.sanitizer_core]

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


def test_checks_in_debug_mode(arch):
    oc.init(arch=getattr(oc, arch), debug=True, log_level="error")
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


@oc.kernel
def cut(v: oc.BufferView, a: oc.i32, b: oc.i32, out: Ints):
    w = v[a:b]
    out[0] = w.size
    for i in range(w.size):
        out[i + 1] = w[i]


@oc.kernel
def cut_front(v: oc.BufferView, a: oc.i64, out: Ints):
    w = v[a:]
    out[0] = w.size
    for i in range(w.size):
        out[i + 1] = w[i]


@oc.kernel
def cut_back(v: oc.BufferView, b: oc.u32, out: Ints):
    w = v[None:b]
    out[0] = w.size
    for i in range(w.size):
        out[i + 1] = w[i]


@pytest.fixture(params=["unchecked", "debug"])
def mode(arch, request):
    """Every device, with and without checks."""
    oc.init(arch=getattr(oc, arch), debug=request.param == "debug", log_level="error")


def test_slices_in_kernels_follow_the_hosts_rules(mode):
    a, out = counted(8), oc.ndarray(oc.i32, 9)
    numbers = [-(2**31), -9, -6, -5, -1, 0, 1, 4, 5, 9, 2**31 - 1]
    for begin in numbers:
        for end in numbers:
            expected = list(range(1, 6))[begin:end]
            assert a[1:6][begin:end].to_numpy().tolist() == expected
            cut(a[1:6], begin, end, out)
            assert out.to_numpy()[: out[0] + 1].tolist() == [len(expected), *expected]
    for begin in [*numbers, -(2**40), 2**40, 2**32]:
        cut_front(a[1:6], begin, out)
        expected = list(range(1, 6))[begin:]
        assert out.to_numpy()[: out[0] + 1].tolist() == [len(expected), *expected]
    for end in [0, 3, 5, 7, 2**31, 2**32 - 1]:
        cut_back(a[1:6], end, out)
        expected = list(range(1, 6))[:end]
        assert out.to_numpy()[: out[0] + 1].tolist() == [len(expected), *expected]


def test_slices_with_constant_bounds(mode):
    @oc.kernel
    def sizes(v: oc.BufferView, out: Ints):
        out[0] = v[-20:].size
        out[1] = v[:20].size
        out[2] = v[3:2].size
        out[3] = v[-2:][0]
        out[4] = v[:-2].size
        out[5] = v[2:-1].size + v[None:].size
        out[6] = v[-9:-7].size
        out[7] = v[10**12 :].size + v[-(10**12) :].size

    out = oc.ndarray(oc.i32, 8)
    sizes(counted(8)[1:6], out)
    assert out.to_numpy().tolist() == [5, 5, 0, 4, 3, 7, 0, 5]


def test_nothing_is_written_before_a_view(mode):
    @oc.kernel
    def last(v: oc.BufferView, n: oc.i32):
        w = v[n:]
        for i in range(w.size):
            w[i] = 7

    a = oc.ndarray(oc.i32, 10)
    last(a[4:8], -1)
    assert a.to_numpy().tolist() == [0, 0, 0, 0, 0, 0, 0, 7, 0, 0]
    last(a[4:8], -100)
    assert a.to_numpy().tolist() == [0, 0, 0, 0, 7, 7, 7, 7, 0, 0]


Clamped = oc.BufferView[oc.i32, "clamp"]


@oc.kernel
def clamped(v: Clamped, out: Ints, i: oc.i64):
    out[0] = v[i]
    v[i] = 50
    v[i] += 1
    out[1] = oc.atomic_add(v[i], 1)
    out[2] = oc.atomic_cas(v[i], 52, 53)


def test_clamped_views(mode):
    a, out = counted(10), oc.ndarray(oc.i32, 3)
    for index, end in ((-5, 2), (9, 5), (2**32, 5), (-(2**33), 2), (2**31, 5), (3, 5)):
        a.from_numpy(np.arange(10, dtype=np.int32))
        clamped(a[2:6], out, index)
        expected = np.arange(10)
        expected[end] = 53
        assert out.to_numpy().tolist() == [end, 51, 52]
        assert a.to_numpy().tolist() == expected.tolist()


def test_a_clamped_view_without_elements_reads_zero_and_writes_nothing(mode):
    a, out = counted(10), oc.ndarray(oc.i32, 3)
    for view in (a[4:4], a[10:10], a[0:0]):
        for index in (-1, 0, 1, 2**40):
            out.fill(9)
            clamped(view, out, index)
            assert out.to_numpy().tolist() == [0, 0, 0]
    assert a.to_numpy().tolist() == list(range(10))


def test_a_clamped_array_without_elements(mode):
    Table = oc.types.ndarray(dtype=oc.f32, ndim=2, boundary="clamp")
    Vectors = oc.types.ndarray(dtype=oc.types.vector(3, oc.f32), ndim=1, boundary="clamp")

    @oc.kernel
    def touch(x: Table, y: Vectors, i: oc.i32, j: oc.i64) -> oc.f32:
        x[i, j] = 3.0
        x[i, j] -= 1.0
        y[i] = oc.Vector([1.0, 2.0, 3.0])
        y[i].y += 1.0
        y[i].zx = oc.Vector([5.0, 6.0])
        return x[i, j] + y[i].sum() + oc.volatile_load(x[i, j])

    for shape in ((0, 4), (4, 0), (0, 0)):
        assert touch(np.zeros(shape, np.float32), np.zeros((0, 3), np.float32), -2, 2**35) == 0
    x, y = oc.ndarray(oc.f32, (2, 2)), oc.ndarray(oc.types.vector(3, oc.f32), 2)
    assert touch(x, y, -1, 2**32) == 2 + (6 + 3 + 5) + 2
    assert x.to_numpy().tolist() == [[0, 2], [0, 0]]
    assert y.to_numpy().tolist() == [[6, 3, 5], [0, 0, 0]]


@oc.kernel
def clamped_part(v: Clamped, a: oc.i32, b: oc.i32, i: oc.i32, value: oc.i32) -> oc.i32:
    w = v[a:b]
    old = w[i]
    w[i] = value
    return old


def test_clamping_is_into_the_part_of_a_view(mode):
    a = counted(12)
    assert clamped_part(a[2:10], 2, 5, 100, 50) == 6
    assert clamped_part(a[2:10], 2, 5, -100, 40) == 4
    assert clamped_part(a[2:10], 5, 5, 0, 99) == 0
    assert clamped_part(a[2:10], 5, 2, -3, 99) == 0
    assert clamped_part(a[3:3], 0, 5, 1, 99) == 0
    assert a.to_numpy().tolist() == [0, 1, 2, 3, 40, 5, 50, 7, 8, 9, 10, 11]


@dataclasses.dataclass(frozen=True)
class ClampedPart:
    v: Clamped
    n: oc.i32


@oc.kernel
def member(p: ClampedPart) -> oc.i32:
    return p.v[p.n] + p.v[2:][p.n]


def test_clamped_views_in_dataclasses(mode):
    a = counted(8)
    assert member(ClampedPart(a[1:4], 50)) == 6
    assert member(ClampedPart(a[1:4], -50)) == 1 + 3
    assert member(ClampedPart(a[4:4], 50)) == 0


@oc.func
def touch_reference(v: oc.template(), i):
    v[i] += 1


def test_a_real_functions_reference_to_a_clamped_element(mode):
    @oc.real_func
    def change(x: oc.ref(oc.i32)):
        x += 5

    @oc.kernel
    def run(v: Clamped, i: oc.i32):
        change(v[i])
        touch_reference(v, i)
        touch_reference(v[1:1], i)

    a = counted(8)
    run(a[2:5], 100)
    run(a[3:3], 100)
    assert a.to_numpy().tolist() == [0, 1, 2, 3, 10, 5, 6, 7]


@oc.kernel
def clamped_subview(v: Clamped, n: oc.i32, size: oc.i32, out: Ints):
    w = v.subview(n, size)
    out[0] = w.size
    low = -1
    out[1] = w[low]
    out[2] = w[100]
    w[low - 6] = 70


@oc.kernel
def clamped_construction(
    v: oc.types.ndarray(dtype=oc.i32, ndim=1, boundary="clamp"), n: oc.i64, size: oc.i64, out: Ints
):
    w = oc.BufferView(arr=v, offset=n, size=size)
    out[0] = w.size
    low = -1
    out[1] = w[low]
    out[2] = w[100]
    w[low - 6] = 70


def test_parts_of_clamped_views_stay_inside(mode):
    a, out = counted(8), oc.ndarray(oc.i32, 3)
    for begin, size, expected in (
        (2, 3, [3, 2, 4]),
        (-3, 2, [2, 0, 1]),
        (6, 9, [2, 6, 7]),
        (9, 9, [0, 0, 0]),
        (3, -2, [0, 0, 0]),
    ):
        a.from_numpy(np.arange(8, dtype=np.int32))
        clamped_subview(a[:], begin, size, out)
        assert out.to_numpy().tolist() == expected
        a.from_numpy(np.arange(8, dtype=np.int32))
        clamped_construction(a, begin, size, out)
        assert out.to_numpy().tolist() == expected
        assert sum(a.to_numpy() == 70) == (expected[0] > 0)
    clamped_construction(a, 2**32, 2**33, out)
    assert out[0] == 0


def test_wide_indices_are_checked_whole(arch):
    oc.init(arch=getattr(oc, arch), debug=True, log_level="error")
    x = oc.field(oc.i32, shape=4)
    Plain = oc.types.ndarray(dtype=oc.i32, ndim=1)

    @oc.kernel
    def of_view(v: oc.BufferView, i: oc.i64) -> oc.i32:
        return v[i]

    @oc.kernel
    def of_array(v: Plain, i: oc.i64) -> oc.i32:
        return v[i]

    @oc.kernel
    def of_unsigned(v: Plain, i: oc.u64) -> oc.i32:
        return v[i]

    @oc.kernel
    def of_field(i: oc.i64) -> oc.i32:
        return x[i]

    @oc.kernel
    def of_vector(i: oc.i64) -> oc.i32:
        v = oc.Vector([1, 2, 3])
        return v[i]

    @oc.kernel
    def of_part(v: oc.BufferView, n: oc.i64, size: oc.u32) -> oc.i32:
        return v.subview(n, size).size

    a = counted(4)
    assert of_view(a[1:], 2) == 3 and of_array(a, 3) == 3 and of_unsigned(a, 2) == 2
    assert of_field(3) == 0 and of_vector(2) == 3 and of_part(a[:], 1, 3) == 3
    for launch, index in (
        (lambda i: of_view(a[1:], i), 2**32),
        (lambda i: of_view(a[1:], i), -(2**32)),
        (lambda i: of_array(a, i), 2**32 + 1),
        (lambda i: of_array(a, i), -(2**40)),
        (lambda i: of_unsigned(a, i), 2**63),
        (of_field, 2**32),
        (of_field, -(2**33)),
        (of_vector, 2**32),
        (lambda i: of_part(a[:], i, 1), 2**32),
        (lambda i: of_part(a[:], 0, i), 2**32 - 1),
    ):
        with pytest.raises(oc.OctantsAssertionError, match=str(index)):
            launch(index)


def test_indices_on_the_host_are_checked_whole():
    a, x = counted(4), oc.field(oc.i32, shape=4)
    for index in (4, -5, 2**32, 2**63, 2**70, -(2**70)):
        with pytest.raises(IndexError):
            a[index]
        with pytest.raises(IndexError):
            a[index] = 1
        with pytest.raises(AssertionError):
            x[index]


def test_annotations_of_views_are_checked():
    a, b = counted(4), oc.ndarray(oc.f32, 4)

    @oc.kernel
    def both(v: oc.BufferView[oc.i32, "clamp"], w: oc.BufferView[oc.f32]) -> oc.f32:
        return v[100] + w[0]

    assert both(a[:3], b[:]) == 2
    with pytest.raises(ValueError, match="required element type: i32, but f32"):
        both(b[:], b[:])
    assert repr(oc.BufferView[oc.i32, "clamp"]) == 'oc.BufferView[i32, "clamp"]'
    for wrong in ("f32", 3, "clamp", (), (oc.f32, "clamp", 3), ("clamp", oc.f32)):
        with pytest.raises((TypeError, ValueError)):
            oc.BufferView[wrong]
    with pytest.raises(ValueError, match="boundary"):
        oc.BufferView[oc.f32, "wrap"]


@oc.func
def first_of_view(v: oc.BufferView[oc.i32]):
    return v[0]


@oc.func
def first_of_array(v: oc.types.ndarray(dtype=oc.i32, ndim=1)):
    return v[0]


@oc.func
def clamped_func(v: oc.BufferView[oc.i32, "clamp"]):
    return v[100]


def test_annotations_of_funcs_are_enforced(arch):
    @oc.kernel
    def right(v: oc.BufferView, w: Clamped, a: Ints) -> oc.i32:
        return first_of_view(v[1:]) + first_of_array(a) + first_of_view(oc.BufferView(a, 2, 1)) + clamped_func(w[:2])

    a = counted(8)
    assert right(a[3:], a[1:], a) == 4 + 0 + 2 + 2
    Reals, Table = oc.types.ndarray(dtype=oc.f32, ndim=1), oc.types.ndarray(dtype=oc.i32, ndim=2)

    @oc.kernel
    def wrong_element(v: oc.BufferView) -> oc.i32:
        return first_of_view(v)

    @oc.kernel
    def array_for_view(a: Ints) -> oc.i32:
        return first_of_view(a)

    @oc.kernel
    def view_for_array(v: oc.BufferView) -> oc.i32:
        return first_of_array(v)

    @oc.kernel
    def wrong_array(a: Reals) -> oc.i32:
        return first_of_array(a)

    @oc.kernel
    def wrong_rank(a: Table) -> oc.i32:
        return first_of_array(a)

    @oc.kernel
    def number(n: oc.i32) -> oc.i32:
        return first_of_array(n)

    @oc.kernel
    def unclamped(v: oc.BufferView) -> oc.i32:
        return clamped_func(v)

    reals = oc.ndarray(oc.f32, 4)
    assert wrong_element(a[:]) == 0
    with pytest.raises(ValueError, match="required element type: i32, but f32"):
        wrong_element(reals[:])
    with pytest.raises(TypeError, match="argument 'v' must be a BufferView, not an array of i32"):
        array_for_view(a)
    with pytest.raises(TypeError, match="argument 'v' must be an array, not a BufferView"):
        view_for_array(a[:])
    with pytest.raises(ValueError, match="required element type: i32, but f32"):
        wrong_array(reals)
    with pytest.raises(ValueError, match="required ndim=1, but an array of ndim=2"):
        wrong_rank(oc.ndarray(oc.i32, (2, 2)))
    with pytest.raises(TypeError, match="argument 'v' must be an array, not i32"):
        number(3)
    with pytest.raises(ValueError, match="clamp"):
        unclamped(a[:])


@oc.real_func
def total_of(v: oc.BufferView[oc.i32]) -> oc.i32:
    result = 0
    for i in range(v.size):
        result += v[i]
    return result


@oc.real_func
def halved(v: oc.BufferView[oc.i32]) -> oc.i32:
    if v.size == 0:
        return 0
    if v.size == 1:
        v[0] += 100
        return v[0]
    half = v.size // 2
    return halved(v[:half]) + halved(v[half:])


@oc.real_func
def clamped_last(v: oc.BufferView[oc.i32, "clamp"], a: oc.types.ndarray(dtype=oc.i32, ndim=1)) -> oc.i32:
    return v[1000] + a[0]


def test_views_are_parameters_of_real_functions(mode):
    @oc.kernel
    def run(v: oc.BufferView, w: Clamped, a: Ints, n: oc.i32, out: Ints):
        for i in range(4):
            out[i] = total_of(v[i:n])
        out[4] = total_of(v) + total_of(oc.BufferView(a, 1, 2))
        out[5] = halved(v[1:-1])
        out[6] = clamped_last(w[:2], a) + clamped_last(w[3:3], a)

    a, out = counted(10), oc.ndarray(oc.i32, 7)
    run(a[2:8], a[4:], counted(4), -1, out)
    assert out.to_numpy().tolist() == [20, 18, 15, 11, 30, 418, 105]
    assert a.to_numpy().tolist() == [0, 1, 2, 103, 104, 105, 106, 7, 8, 9]


@oc.real_func
def outside(v: oc.BufferView, i: oc.i32) -> oc.i32:
    return v[i]


def test_views_in_real_functions_are_checked(arch):
    oc.init(arch=getattr(oc, arch), debug=True, log_level="error")

    @oc.kernel
    def run(v: oc.BufferView, i: oc.i32) -> oc.i32:
        return outside(v[1:3], i)

    a = counted(10)
    assert run(a[2:8], 1) == 4
    with pytest.raises(oc.OctantsAssertionError, match=r"got index 2 \(offset=3, size=2\)"):
        run(a[2:8], 2)

    @oc.kernel
    def wrong(a: Ints) -> oc.i32:
        return outside(a, 0)

    with pytest.raises(TypeError, match="argument 'v' must be a BufferView"):
        wrong(a)


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
