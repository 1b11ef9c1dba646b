"""Arrays: made, filled, indexed, copied, shared with numpy, freed; and what is refused."""

import copy
import gc
import pickle
import threading

import numpy as np
import pytest
from devices import INTERPRETED

import octants as oc

pytestmark = pytest.mark.host_access


def test_new_arrays_are_zero_and_know_their_shape():
    a = oc.ndarray(oc.f32, (3, 4))
    assert (a.shape, a.dtype, a.element_shape) == ((3, 4), oc.f32, ())
    assert a.dtype is oc.f32
    assert not a.to_numpy().any()
    assert oc.ndarray(oc.i32, 5).shape == (5,)
    assert "f32" in repr(a) and "(3, 4)" in repr(a)


@pytest.mark.parametrize("shape", [0, -1, (2, 0), (2.5,), "3", (2**31,), None])
def test_bad_shapes(shape):
    with pytest.raises(oc.OctantsRuntimeError, match="not a valid shape"):
        oc.ndarray(oc.f32, shape)


def test_too_many_axes():
    with pytest.raises(ValueError, match="OC0802.*at most 12 axes, and a shape of 13 extents"):
        oc.ndarray(oc.f32, (1,) * 13)


def test_bad_dtype():
    with pytest.raises(TypeError, match="not a data type"):
        oc.ndarray("f32", 3)


def test_zero_d_arrays():
    a = oc.ndarray(oc.i32, ())
    a[None] = 3
    a[()] += 4
    assert a[None] == 7

    @oc.kernel
    def bump(a: oc.types.ndarray(dtype=oc.i32, ndim=0)):
        for i in range(10):
            a[None] += i

    bump(a)
    assert a[()] == 52


def test_host_indexing():
    a = oc.ndarray(oc.i16, (2, 3))
    a[1, 2] = -5
    assert (a[1, 2], a[-1, -1], a[0, 0], a[[1, 2]]) == (-5, -5, 0, -5)
    a[0, 0] = 70_000  # wraps, as in a kernel
    assert a[0, 0] == 70_000 - 65_536
    with pytest.raises(oc.exceptions.OctantsIndexError, match="2d ndarray indexed with 1d"):
        a[1]
    with pytest.raises(IndexError, match="out of bounds"):
        a[2, 0]
    with pytest.raises(TypeError, match="integer"):
        a[0.5, 0]
    with pytest.raises(TypeError, match="cannot be set to a str"):
        a[0, 0] = "x"


def test_fill_copy_and_numpy():
    a = oc.ndarray(oc.f64, (100, 7))
    a.fill(2.5)
    assert (a.to_numpy() == 2.5).all()
    b = oc.ndarray(oc.f64, (100, 7))
    b.copy_from(a)
    b.from_numpy(b.to_numpy() + 1)
    assert (b.to_numpy() == 3.5).all() and (a.to_numpy() == 2.5).all()
    a.from_numpy(np.arange(700, dtype=np.int32).reshape(7, 100).T)  # another type, another order
    np.testing.assert_array_equal(a.to_numpy(), np.arange(700).reshape(7, 100).T)
    assert a.to_numpy(dtype=oc.i32).dtype == np.int32


def test_large_copies_are_arrays_of_their_own():
    count = 9 << 20  # more than 32 MiB, from where on memory is kept for the next one
    numbers = np.arange(count, dtype=np.int32)
    a, x = oc.ndarray(oc.i32, count), oc.field(oc.i32, shape=count)
    for made in (a, x):
        made.from_numpy(numbers)
        first, second = made.to_numpy(), made.to_numpy()
        assert first.flags.writeable and first.flags.c_contiguous and first.dtype == np.int32
        first += 1
        assert first[-1] == count and second[-1] == count - 1
        where = first.ctypes.data
        part = first[10:20]
        del first
        assert made.to_numpy().ctypes.data not in (where, second.ctypes.data), "a part of the first is still there"
        assert part.tolist() == list(range(11, 21))
        del part
        again = made.to_numpy()
        np.testing.assert_array_equal(again, numbers)
        np.testing.assert_array_equal(second, numbers)
    oc.reset()
    np.testing.assert_array_equal(again, numbers)


def test_copy_mismatches():
    a = oc.ndarray(oc.f32, 4)
    with pytest.raises(TypeError):
        a.from_numpy([1, 2, 3, 4])
    with pytest.raises(ValueError, match="shapes differ"):
        a.from_numpy(np.zeros(5))
    for dtype in "c8", "U1", object, "M8[s]":
        with pytest.raises(TypeError, match="takes an array of numbers, not of"):
            a.from_numpy(np.zeros(4, dtype=dtype))
    for other in oc.ndarray(oc.f32, 5), oc.ndarray(oc.f32, (4, 1)), oc.Vector.ndarray(2, oc.f32, 4), np.zeros(4):
        with pytest.raises(AssertionError, match="copy_from"):
            a.copy_from(other)


def test_copies_between_element_types(arch):
    reals, integers = oc.ndarray(oc.f32, (2, 3)), oc.ndarray(oc.i64, (2, 3))
    numbers = np.array([[1.75, -1.75, 0.0], [100.5, -7.0, 3.25]], np.float32)
    reals.from_numpy(numbers)
    integers.copy_from(reals)
    np.testing.assert_array_equal(integers.to_numpy(), numbers.astype(np.int64))
    reals.copy_from(integers)
    np.testing.assert_array_equal(reals.to_numpy(), np.trunc(numbers))
    vectors, wide = oc.Vector.ndarray(2, oc.i32, 3), oc.Vector.ndarray(2, oc.f64, 3)
    vectors.from_numpy(np.arange(6, dtype=np.int32).reshape(3, 2))
    wide.copy_from(vectors)
    np.testing.assert_array_equal(wide.to_numpy(), np.arange(6).reshape(3, 2))
    across = oc.tensor(oc.f64, (2, 3), layout=(1, 0))
    across.copy_from(integers)
    np.testing.assert_array_equal(across.to_numpy(), np.trunc(numbers))


def test_types_of_python_are_numpys_in_a_copy():
    a, f, t = oc.ndarray(oc.f32, 2), oc.field(oc.i32, 2), oc.tensor(oc.f32, 2, backend=oc.Backend.FIELD)
    for one in a, f, t:
        for dtype in float, int, bool:
            assert one.to_numpy(dtype=dtype).dtype == np.dtype(dtype)
    with pytest.raises(ValueError, match="Zero-copy"):
        a.to_numpy(dtype=float, copy=False)


@pytest.mark.host_devices("numpy sees the host's memory alone")
def test_zero_copy_views_share_memory_and_outlive_the_array():
    a = oc.ndarray(oc.i32, 4)
    view = a.to_numpy(copy=False)
    view[2] = 9
    assert a[2] == 9
    assert a.to_numpy(copy=None).ctypes.data == view.ctypes.data
    with pytest.raises(ValueError, match="Zero-copy"):
        a.to_numpy(dtype=oc.f32, copy=False)
    del a
    gc.collect()
    assert view.tolist() == [0, 0, 9, 0]


def test_numpy_arguments_are_used_in_place():
    @oc.kernel
    def fill(x: oc.types.ndarray(dtype=oc.f32, ndim=2), v: oc.f32):
        for i, j in oc.ndrange(x.shape[0], x.shape[1]):
            x[i, j] = v + j

    x = np.zeros((4, 3), dtype=np.float32)
    fill(x, 1.0)
    np.testing.assert_array_equal(x, np.tile([1, 2, 3], (4, 1)))
    fortran = np.zeros((4, 3), dtype=np.float32, order="F")
    fill(fortran, 2.0)
    np.testing.assert_array_equal(fortran, np.tile([2, 3, 4], (4, 1)))


def test_read_only_arrays_may_be_read():
    @oc.kernel
    def total(x: oc.types.ndarray(dtype=oc.i32, ndim=1)) -> oc.i32:
        s = 0
        for i in x:
            s += x[i]
        return s

    x = np.arange(10, dtype=np.int32)
    x.flags.writeable = False
    assert total(x) == 45


def test_arguments_may_overlap():
    @oc.kernel
    def shift(x: oc.types.ndarray(dtype=oc.i32, ndim=1), y: oc.types.ndarray(dtype=oc.i32, ndim=1)):
        oc.loop_config(serialize=True)
        for i in range(x.shape[0]):
            y[i] = x[i] + 1

    memory = np.zeros(1001, dtype=np.int32)
    shift(memory[:1000], memory[1:])  # each step reads what the one before wrote
    assert memory.tolist() == list(range(1001))

    @oc.kernel
    def accumulate(x: oc.types.ndarray(dtype=oc.i32, ndim=1), y: oc.types.ndarray(dtype=oc.i32, ndim=1)):
        for i in x:
            y[i] = x[i] + 1
            y[i] += x[i]

    a = oc.ndarray(oc.i32, 100)
    accumulate(a, a)
    assert (a.to_numpy() == 2).all()


def test_the_same_kernel_with_other_kinds_of_arrays():
    @oc.kernel
    def double(x: oc.types.ndarray()):
        for I in oc.grouped(x):
            x[I] = x[I] * 2

    for dtype in (np.int32, np.float64, np.uint8):
        for shape in ((5,), (2, 3), (2, 2, 2)):
            x = np.ones(shape, dtype=dtype)
            double(x)
            double(x)
            assert (x == 4).all()


def test_arrays_are_freed_when_unreferenced():
    before = oc._session.runtime.live_arrays
    kept = [oc.ndarray(oc.f32, 1000) for _ in range(10)]
    assert oc._session.runtime.live_arrays == before + 10
    assert oc._session.runtime.live_bytes >= 40_000
    del kept
    assert oc._session.runtime.live_arrays == before


def test_out_of_memory_is_an_error_and_the_session_stays_usable():
    with pytest.raises(MemoryError, match="out of memory"):
        oc.ndarray(oc.f64, (2**31 - 1, 2**20))
    with pytest.raises(MemoryError, match="out of memory"):
        oc.ndarray(oc.f64, (2**31 - 1, 2**31 - 1, 2**31 - 1))
    assert oc.ndarray(oc.f32, 3).to_numpy().tolist() == [0, 0, 0]


def test_arrays_of_an_old_session_are_refused():
    a = oc.ndarray(oc.f32, 3)
    oc.reset()
    for use in (lambda: a[0], lambda: a.fill(1), a.to_numpy, lambda: a.from_numpy(np.zeros(3))):
        with pytest.raises(oc.OctantsRuntimeError, match="session that was reset"):
            use()
    assert a.shape == (3,)


def test_pickle_and_deepcopy():
    a = oc.ndarray(oc.f32, (2, 2))
    a[0, 1] = 5
    b, c = pickle.loads(pickle.dumps(a)), copy.deepcopy(a)
    a[0, 1] = 6
    assert (b[0, 1], c[0, 1]) == (5, 5)
    assert pickle.loads(pickle.dumps(oc.f32)) is oc.f32


def test_kernels_from_several_threads(fresh_session):
    @oc.kernel
    def work(x: oc.types.ndarray(dtype=oc.f64, ndim=1), n: int):
        for i in x:
            for _ in range(n):
                x[i] = x[i] * 0.5 + i

    size = 500 if fresh_session in INTERPRETED else 5000
    expected = np.zeros(size)
    for _ in range(50):
        expected = expected * 0.5 + np.arange(size)
    failures = []

    def run():
        try:
            for _ in range(5):
                x = np.zeros(size)
                work(x, 50)
                np.testing.assert_allclose(x, expected)
        except BaseException as error:  # noqa: BLE001
            failures.append(error)

    threads = [threading.Thread(target=run) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures
