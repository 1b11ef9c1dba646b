"""Arrays of other libraries as arguments: their order, alignment, overlaps, and what happens to them while a call is prepared."""

import dataclasses
import itertools

import numpy as np
import pytest

import octants as oc

pytestmark = pytest.mark.host_access

Any1 = oc.types.ndarray(ndim=1)
Any2 = oc.types.ndarray(ndim=2)
Vectors = oc.types.ndarray(dtype=oc.math.vec3, ndim=1)


@oc.kernel
def add_index(a: Any2):
    for i, j in a:
        a[i, j] += 10 * i + j


@oc.kernel
def copy_one(to: Any2, source: Any2, i: int, j: int):
    for _ in range(1):
        to[i, j] = source[j, i] + 100


@oc.kernel
def read_both(a: Any2, b: Any2, out: Any1):
    for _ in range(1):
        out[0] = a[0, 1] * 10 + b[1, 0]


def unaligned(values, dtype=np.float32, order="C"):
    """The same numbers, one byte off."""
    values = np.asarray(values, dtype)
    raw = np.zeros(values.nbytes + 1, np.uint8)
    array = np.ndarray(values.shape, dtype, raw.data, offset=1, order=order)
    array[...] = values
    assert not array.flags.aligned
    return array


def test_column_major_arrays_are_used_in_place(arch):
    x = np.asfortranarray(np.arange(12, dtype=np.float32).reshape(3, 4))
    expected = x + 10 * np.arange(3)[:, None] + np.arange(4)
    before = x.ctypes.data
    add_index(x)
    assert x.flags.f_contiguous and x.ctypes.data == before
    np.testing.assert_array_equal(x, expected)
    y = np.zeros((3, 4), np.float32)
    add_index(y)  # another specialisation
    np.testing.assert_array_equal(y, expected - np.arange(12).reshape(3, 4))
    add_index(y.T)  # the same as the first
    assert y[0, 1] == 11
    expected = x + 10 * np.arange(3)[::-1, None] + np.arange(4)
    add_index(x[::-1])  # by its strides
    np.testing.assert_array_equal(x, expected)


@pytest.mark.parametrize("dtype", [np.int8, np.uint16, np.int32, np.int64, np.float16, np.float64, np.bool_])
def test_column_major_arrays_of_every_width(arch, dtype):
    @oc.kernel
    def flip(a: oc.types.ndarray(ndim=3), b: oc.types.ndarray(ndim=3)):
        for i, j, k in b:
            a[i, j, k] = b[1 - i, j, k]

    source = (np.arange(24).reshape(2, 3, 4) % 11).astype(dtype)
    for a, b in itertools.product("CF", repeat=2):
        out = np.zeros((2, 3, 4), dtype, order=a)
        flip(out, np.array(source, order=b))
        np.testing.assert_array_equal(out, source[::-1])


def test_loops_inside_a_parallel_loop_run_through_column_major_arrays(arch):
    @oc.kernel
    def product(a: Any2, b: Any2, c: Any2):
        for i, j in c:
            s = oc.f64(0.0)
            for k in range(a.shape[1]):
                s += a[i, k] * b[k, j]
            c[i, j] = s

    rng = np.random.default_rng(1)
    a, b = rng.random((19, 7)), rng.random((7, 33))
    for orders in itertools.product("CF", repeat=3):
        c = np.zeros((19, 33), order=orders[2])
        product(np.array(a, order=orders[0]), np.array(b, order=orders[1]), c)
        np.testing.assert_allclose(c, a @ b, rtol=1e-12)


def test_clamped_and_checked_indices_of_column_major_arrays(arch):
    @oc.kernel
    def corner(a: oc.types.ndarray(ndim=2, boundary="clamp"), low: int, high: int) -> oc.i32:
        return a[low, high] * 100 + a[high, low]

    x = np.asfortranarray(np.arange(6, dtype=np.int32).reshape(2, 3))
    assert corner(x, -5, 99) == 2 * 100 + 3
    oc.init(arch=getattr(oc, arch), debug=True, log_level="error")

    @oc.kernel
    def read(a: Any2, i: int, j: int) -> oc.i32:
        return a[i, j]

    assert read(x, 1, 2) == 5
    with pytest.raises(AssertionError, match="out of bounds"):
        read(x, 2, 1)


def test_an_array_and_its_transpose(arch):
    a = np.arange(9, dtype=np.float32).reshape(3, 3)
    copy_one(a, a.T, 0, 2)
    assert a[0, 2] == 102  # source[2, 0] is a[0, 2] itself
    copy_one(a.T, a, 1, 0)
    assert a[0, 1] == 101
    # What is only read leaves no trace.
    b = np.asfortranarray(np.arange(9, dtype=np.float32).reshape(3, 3))
    out = np.zeros(1, np.float32)
    read_both(b, b.T, out)
    assert out[0] == 11
    np.testing.assert_array_equal(b, np.arange(9).reshape(3, 3))


def test_overlapping_column_major_views(arch):
    @oc.kernel
    def shift(to: Any2, source: Any2):
        oc.loop_config(serialize=True)
        for j in range(to.shape[1]):
            for i in range(to.shape[0]):
                to[i, j] = source[i, j] + 1

    f = np.asfortranarray(np.arange(12, dtype=np.int32).reshape(3, 4))
    expected = f.copy()
    for j in range(3):
        expected[:, j + 1] = expected[:, j] + 1
    shift(f[:, 1:], f[:, :3])
    np.testing.assert_array_equal(f, expected)
    for j in range(4):
        expected[1, j] = expected[0, j] + 1
        expected[2, j] = expected[1, j] + 1
    shift(f[1:], f[:2])
    np.testing.assert_array_equal(f, expected)


def test_a_kernel_that_only_reads_an_array_does_not_write_it_back(arch):
    """Writes through another argument, to memory that overlaps the one that is read, are kept."""

    @oc.kernel
    def write(to: Any1, source: Any2):
        for i in to:
            to[i] = 7
        for _ in range(1):
            to[0] += 0 * source[0, 0]

    raw = np.zeros((4, 4), np.float32)
    write(raw.reshape(-1), raw.T)
    assert (raw == 7).all()


def test_unaligned_arrays_are_copied_in_and_out(arch):
    @oc.kernel
    def double(a: Any1):
        for i in a:
            a[i] += a[i]

    @oc.kernel
    def norm(v: Vectors, out: Any1):
        for i in v:
            out[i] = v[i].norm_sqr()

    for dtype in (np.float32, np.float64, np.int16, np.int64):
        a = unaligned(np.arange(100), dtype)
        double(a)
        np.testing.assert_array_equal(a, 2 * np.arange(100))
    c, f = unaligned(np.zeros((3, 4))), unaligned(np.zeros((3, 4)), order="F")
    for a in (c, f):
        add_index(a)
        np.testing.assert_array_equal(a, 10 * np.arange(3)[:, None] + np.arange(4))
    out = np.zeros(5, np.float32)
    norm(unaligned(np.ones((5, 3))), out)
    assert (out == 3).all()
    read_only = unaligned(np.arange(3))
    read_only.flags.writeable = False
    out = np.zeros(1, np.float32)
    norm(unaligned(np.ones((1, 3))), out)
    with pytest.raises(ValueError, match="writeable"):
        double(read_only)


def test_unaligned_members(arch):
    @dataclasses.dataclass
    class State:
        x: oc.types.ndarray(ndim=1)
        y: oc.types.ndarray(ndim=2)

    @oc.kernel
    def step(s: State):
        for i in s.x:
            s.x[i] += 1
        for i, j in s.y:
            s.y[i, j] = s.x[i]

    state = State(unaligned(np.arange(3)), np.zeros((3, 2), np.float32, order="F"))
    step(state)
    assert state.x.tolist() == [1, 2, 3] and state.y.tolist() == [[1, 1], [2, 2], [3, 3]]


def test_vectors_whose_entries_are_not_side_by_side_are_copied(arch):
    @oc.kernel
    def scale(v: Vectors, s: oc.f32):
        for i in v:
            v[i] *= s

    x = np.asfortranarray(np.arange(12, dtype=np.float32).reshape(4, 3))
    scale(x, 2.0)
    np.testing.assert_array_equal(x, 2 * np.arange(12).reshape(4, 3))


def test_copies_that_overlap_what_is_written_are_refused(arch):
    @oc.kernel
    def shift(to: Any1, source: Any1):
        for i in to:
            to[i] = source[i] + 1

    @oc.kernel
    def total(a: Any1, b: Any1, out: Any1):
        for _ in range(1):
            out[0] = a[0] + b[0]

    a = unaligned(np.arange(8))
    with pytest.raises(ValueError, match=r"argument to - .* apart from source"):
        shift(a[1:], a[:-1])
    np.testing.assert_array_equal(a, np.arange(8))
    shift(a[4:], a[:4])  # apart
    assert a.tolist() == [0, 1, 2, 3, 1, 2, 3, 4]
    shift(a, a)  # one array
    assert a.tolist() == [1, 2, 3, 4, 2, 3, 4, 5]
    out = np.zeros(1, np.float32)
    total(a[1:], a[:-1], out)  # only read
    assert out[0] == 3
    # An array that is used in place, over the same bytes.
    raw = np.zeros(33, np.uint8)
    whole, inside = raw[:32].view(np.float32), np.ndarray((4,), np.float32, raw.data, offset=5)
    with pytest.raises(ValueError, match="shares memory"):
        shift(whole[:4], inside)
    with pytest.raises(ValueError, match="shares memory"):
        shift(inside, whole[:4])
    # Vectors of a column-major array and the array itself.
    columns = np.zeros((4, 3), np.float32, order="F")

    @oc.kernel
    def both(v: Vectors, s: Any2):
        for i in v:
            v[i][0] = s[i, 1]

    with pytest.raises(ValueError, match="shares memory"):
        both(columns, columns)


def test_what_a_failed_kernel_wrote_to_a_copy_stays_written():
    oc.init(arch=oc.cfg.arch, debug=True, log_level="error")

    @oc.kernel
    def write(a: Any1, n: int):
        for i in range(1):
            a[i] = 5
        for i in range(1):
            a[n] = 5

    a = unaligned(np.zeros(3))
    with pytest.raises(AssertionError, match="out of bounds"):
        write(a, 9)
    assert a.tolist() == [5, 0, 0]


def test_negative_and_zero_strides(arch):
    @oc.kernel
    def total(a: Any2) -> oc.i32:
        s = 0
        for i, j in a:
            s += a[i, j]
        return s

    x = np.arange(6, dtype=np.int32).reshape(2, 3)
    for strided in (x[:, ::-1], x[::-1], x[:, ::2], np.broadcast_to(x[0], (2, 3)), np.broadcast_to(x[:1, :1], (2, 3))):
        assert total(strided) == strided.sum()
    assert total(np.broadcast_to(x[0], (1, 3))) == 3
    assert total(x[::-1][:1]) == 12
    assert total(np.lib.stride_tricks.as_strided(x, (1, 3), (999, 4))) == 3
    assert total(np.zeros((0, 3), np.int32)[:, ::-1]) == 0


@pytest.mark.parametrize("shape, strides", [((4, 3), (0, 4)), ((4, 3), (12, 0)), ((5,), (0,))])
def test_arrays_whose_elements_are_one_number_are_not_written(arch, shape, strides):
    @oc.kernel
    def fill(a: oc.types.ndarray()):
        for I in oc.grouped(a):
            a[I] = 7

    x = np.zeros(12, np.int32)
    with pytest.raises(ValueError, match=r"OC0802.*argument a .*stride 0") as caught:
        fill(np.lib.stride_tricks.as_strided(x, shape, strides))
    assert "x.copy()" in str(caught.value) and not x.any()
    # An axis of one element has any stride.
    fill(np.lib.stride_tricks.as_strided(x, (1, 3), (0, 4)))
    assert x[:3].tolist() == [7, 7, 7]


def test_windows_that_overlap_are_read_and_not_written(arch):
    @oc.kernel
    def double(a: oc.types.ndarray()) -> oc.i32:
        s = 0
        for I in oc.grouped(a):
            s += a[I]
        for I in oc.grouped(a):
            a[I] *= 2
        return s

    @oc.kernel
    def total(a: oc.types.ndarray()) -> oc.i32:
        s = 0
        for I in oc.grouped(a):
            s += a[I]
        return s

    x = np.arange(12, dtype=np.int32)
    strided = np.lib.stride_tricks.as_strided
    for shape, strides in [((10, 3), (4, 4)), ((4, 5), (8, 4)), ((2, 3), (-8, 4)), ((3, 2, 2), (8, 16, 4))]:
        windows = strided(x[6:] if strides[0] < 0 else x, shape, strides)
        assert total(windows) == windows.sum()
        with pytest.raises(ValueError, match=r"OC0802.*argument a .*overlap") as caught:
            double(windows)
        assert "x.copy()" in str(caught.value) and x.tolist() == list(range(12))
    # Windows side by side, slices, diagonals and transpositions have elements of their own; so has an array without elements.
    for apart in (
        strided(x, (4, 3), (12, 4)),
        x.reshape(3, 4)[::-2, 1:],
        x.reshape(2, 3, 2).transpose(1, 0, 2),
        strided(x, (2, 1, 2), (16, 1, 8)),
    ):
        before = apart.copy()
        assert double(apart) == before.sum() and (apart == 2 * before).all()
    assert double(strided(x, (3, 0), (4, 4))) == 0


@pytest.mark.parametrize("how", ["__index__", "__float__"])
def test_a_number_whose_conversion_resizes_an_array(how):
    @oc.kernel
    def fill_int(a: Any1, v: int):
        for i in a:
            a[i] = v

    @oc.kernel
    def fill_real(a: Any1, v: float):
        for i in a:
            a[i] = v

    fill = fill_int if how == "__index__" else fill_real
    a = np.zeros(4, np.float32)

    def convert(_):
        a.resize(1 << 20, refcheck=False)
        return 3 if how == "__index__" else 3.0

    number = type("Number", (), {how: convert})()
    fill(np.zeros(1, np.float32), 1)
    fill(a, number)
    assert a.shape == (1 << 20,) and (a == 3).all()


def test_a_member_whose_reading_resizes_an_array():
    a = np.zeros(4, np.float32)

    @oc.data_oriented
    class Box:
        @property
        def n(self):
            a.resize(1 << 20, refcheck=False)
            return 2

        @oc.kernel
        def fill(self, a: Any1):
            for i in a:
                a[i] = self.n

    Box().fill(a)
    assert a.shape == (1 << 20,) and (a == 2).all()
