"""What lies inside of a view: slices in kernels, clamping, and checks in debug mode."""

import dataclasses

import numpy as np
import pytest
from view_arguments import Clamped, Ints, counted

import octants as oc

pytestmark = [pytest.mark.host_access, pytest.mark.sanitizer_core]


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
    assert all("test_view_bounds.py:" in line for line in lines[1:4])
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
