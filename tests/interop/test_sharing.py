"""Memory of arrays and fields in the hands of other libraries: numpy's interface, the buffer protocol, DLPack; and how long it lives."""

import ctypes
import gc
import itertools

import numpy as np
import pytest

import octants as oc

pytestmark = pytest.mark.host_devices("other libraries look at the host's memory")

#: What can be shared, by name: a function that makes it with the numbers from 0 on, in shape (2, 3).
SOURCES = {
    "ndarray": lambda: oc.ndarray(oc.f32, (2, 3)),
    "ndarray with a layout": lambda: oc.ndarray(oc.f32, (2, 3), layout=(1, 0)),
    "field": lambda: oc.field(oc.f32, (2, 3)),
    "field with an order": lambda: oc.field(oc.f32, (2, 3), order="ji"),
    "tensor": lambda: oc.tensor(oc.f32, (2, 3)),
    "tensor with a layout": lambda: oc.tensor(oc.f32, (2, 3), layout=(1, 0)),
    "tensor in a field": lambda: oc.tensor(oc.f32, (2, 3), backend=oc.Backend.FIELD),
    "vectors": lambda: oc.Vector.ndarray(3, oc.f32, 2),
    "field of vectors": lambda: oc.Vector.field(3, oc.f32, 2),
    "tensor of vectors": lambda: oc.Vector.tensor(3, oc.f32, 2, backend=oc.Backend.FIELD),
    "member of a struct, apart": lambda: (
        oc.Struct.field({"a": oc.f32, "b": oc.f64}, shape=(2, 3), layout=oc.Layout.SOA).a
    ),
}

NUMBERS = np.arange(6, dtype=np.float32).reshape(2, 3)


@pytest.fixture(params=SOURCES)
def source(arch, request):
    made = SOURCES[request.param]()
    made.from_numpy(NUMBERS)
    return made


def writes_through(view, source):
    np.testing.assert_array_equal(view, NUMBERS)
    view[1, 2] = 77
    assert source.to_numpy()[1, 2] == 77


def test_numpy_looks_at_the_memory(source):
    writes_through(np.asarray(source), source)


@pytest.mark.parametrize("look", [memoryview, lambda source: source.__buffer__(0)], ids=["slot", "method"])
def test_a_memoryview_looks_at_the_memory(source, look):
    """By the method alone in classes made in Python, from Python 3.12 on."""
    view = look(source)
    assert (view.format, view.itemsize, view.shape, view.readonly) == ("f", 4, (2, 3), False)
    assert view.tolist() == NUMBERS.tolist()
    writes_through(np.asarray(view), source)


def test_dlpack_looks_at_the_memory(source):
    assert source.__dlpack_device__() == (1, 0)
    view = np.from_dlpack(source)
    np.testing.assert_array_equal(view, NUMBERS)
    source.from_numpy(NUMBERS + 1)
    np.testing.assert_array_equal(view, NUMBERS + 1)


def test_to_numpy_without_a_copy(source):
    for copy in (None, False):
        writes_through(source.to_numpy(copy=copy), source)
        source.from_numpy(NUMBERS)
    a, b = source.to_numpy(copy=False), source.to_numpy(copy=False)
    assert a.ctypes.data == b.ctypes.data
    own = source.to_numpy()
    own[:] = 9
    np.testing.assert_array_equal(source.to_numpy(), NUMBERS)
    with pytest.raises(ValueError, match="Zero-copy not available"):
        source.to_numpy(dtype=np.float64, copy=False)


def test_views_outlive_arrays_and_sessions(source, arch):
    views = [np.asarray(source), np.asarray(memoryview(source)), np.from_dlpack(source), source.to_numpy(copy=False)]
    capsule = source.to_dlpack()
    for end in (lambda: None, lambda: oc.init(arch=getattr(oc, arch), log_level="error")):
        end()
        source = None
        gc.collect()
        # What is allocated now must not lie where the views look.
        others = [oc.ndarray(oc.f32, (2, 3)) for _ in range(64)]
        for other in others:
            other.fill(-1)
        for view in views:
            np.testing.assert_array_equal(view, NUMBERS)
    del capsule


def test_memory_is_given_back_when_the_last_view_is_gone(arch):
    from octants._session import runtime

    before = runtime.live_arrays
    for look in (np.asarray, memoryview, np.from_dlpack, lambda x: x.to_dlpack(), lambda x: x.to_dlpack(True)):
        array = oc.ndarray(oc.f32, 1000)
        view = look(array)
        del array
        gc.collect()
        assert runtime.live_arrays == before + 1
        del view
        gc.collect()
        assert runtime.live_arrays == before


def test_what_ended_is_not_shared(arch):
    array, field = oc.ndarray(oc.f32, 3), oc.field(oc.f32, 3)
    field.fill(1)
    oc.init(arch=getattr(oc, arch), log_level="error")
    for source in (array, field):
        for look in (memoryview, lambda x: x.to_dlpack(), lambda x: x.to_numpy(copy=False)):
            with pytest.raises((RuntimeError, BufferError)):
                look(source)


def test_elements_of_every_type(arch):
    for name in ("u1", "i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64", "f16", "f32", "f64"):
        dtype = getattr(oc, name)
        for made in (oc.ndarray(dtype, 3), oc.field(dtype, 3)):
            made[1] = 1
            expected = made.to_numpy()
            for view in (np.asarray(made), np.asarray(memoryview(made)), np.from_dlpack(made)):
                assert view.dtype == expected.dtype == oc.types.to_numpy_type(dtype)
                np.testing.assert_array_equal(view, expected)


class _Legacy(ctypes.Structure):
    """``DLTensor``"""

    _fields_ = (
        ("data", ctypes.c_void_p), ("kind", ctypes.c_int32), ("number", ctypes.c_int32), ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)), ("strides", ctypes.POINTER(ctypes.c_int64)), ("offset", ctypes.c_uint64),
    )  # fmt: skip


class _Versioned(ctypes.Structure):
    """``DLManagedTensorVersioned``"""

    _fields_ = (
        ("major", ctypes.c_uint32), ("minor", ctypes.c_uint32), ("context", ctypes.c_void_p), ("deleter", ctypes.c_void_p),
        ("flags", ctypes.c_uint64), ("tensor", _Legacy),
    )  # fmt: skip


def _pointer(capsule, name):
    get = ctypes.pythonapi.PyCapsule_GetPointer
    get.restype, get.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    return get(capsule, name)


def test_both_forms_of_a_capsule(arch):
    array = oc.ndarray(oc.f32, (4, 5), layout=(1, 0))
    legacy = _Legacy.from_address(_pointer(capsule := array.to_dlpack(), b"dltensor"))
    versioned = _Versioned.from_address(_pointer(other := array.to_dlpack(versioned=True), b"dltensor_versioned"))
    assert (versioned.major, versioned.flags) == (1, 0)
    for tensor in (legacy, versioned.tensor):
        assert (tensor.kind, tensor.number, tensor.ndim, tensor.code, tensor.bits, tensor.lanes) == (1, 0, 2, 2, 32, 1)
        assert (tensor.shape[:2], tensor.strides[:2]) == ([4, 5], [1, 4])
        assert tensor.data + tensor.offset == array.to_numpy(copy=False).ctypes.data
    for version, name in (
        (None, "dltensor"),
        ((0, 8), "dltensor"),
        ((1, 0), "dltensor_versioned"),
        ((2, 7), "dltensor_versioned"),
    ):
        assert f'"{name}"' in repr(array.__dlpack__(max_version=version))
    copied = np.from_dlpack(_Asks(array, copy=True))
    array.fill(3)
    assert copied.sum() == 0
    with pytest.raises(BufferError):
        array.__dlpack__(dl_device=(2, 0))
    with pytest.raises(RuntimeError, match="stream"):
        array.__dlpack__(stream=1)
    del capsule, other


class _Asks:
    """An exporter that asks its source for something."""

    def __init__(self, source, **options):
        self.source, self.options = source, options

    def __dlpack__(self, **options):
        return self.source.__dlpack__(**{**options, **self.options})

    def __dlpack_device__(self):
        return self.source.__dlpack_device__()


def test_what_no_strides_tell_is_copied_or_refused(arch):
    apart = oc.Vector.field(3, oc.f32, 4, layout=oc.Layout.SOA)
    inside = oc.Struct.field({"a": oc.f32, "b": oc.f32}, shape=4).a
    x = oc.field(oc.f32)
    oc.root.dense(oc.i, 2).dense(oc.j, 2).dense(oc.i, 3).place(x)
    for made in (apart, inside, x):
        made.fill(3)
        assert (np.asarray(made) == 3).all() and np.asarray(made).shape == made.to_numpy().shape
        assert made.to_numpy(copy=None).sum() == made.to_numpy().sum()
        with pytest.raises(ValueError, match="Zero-copy not available"):
            made.to_numpy(copy=False)
        with pytest.raises(ValueError, match="Zero-copy not available"):
            made.to_dlpack()
        with pytest.raises(BufferError):
            memoryview(made)
    with pytest.raises(ValueError, match="Zero-copy not available"):
        oc.field(oc.f32, ()).to_numpy(copy=False)
    assert np.asarray(oc.field(oc.f32, ())).shape == ()


def test_buffers_in_the_order_that_is_asked_for(arch):
    rows, columns = oc.ndarray(oc.i32, (2, 3)), oc.ndarray(oc.i32, (2, 3), layout=(1, 0))
    rows.from_numpy(np.arange(6).reshape(2, 3))
    assert bytes(rows) == np.arange(6, dtype=np.int32).tobytes()
    assert memoryview(rows).c_contiguous and memoryview(columns).f_contiguous
    with pytest.raises(BufferError):
        np.frombuffer(columns, np.int32)
    assert np.frombuffer(rows, np.int32).tolist() == [0, 1, 2, 3, 4, 5]
    assert memoryview(rows).cast("B").nbytes == 24
    view = memoryview(oc.ndarray(oc.f64, 10)[2:7])
    assert view.shape == (5,) and view.format == "d"
    assert memoryview(oc.ndarray(oc.f32, ())).shape == ()


def test_objects_that_only_speak_dlpack_are_arguments(arch):
    class Foreign:
        def __init__(self, array):
            self.array = array

        def __dlpack__(self, **options):
            return self.array.__dlpack__(**options)

        def __dlpack_device__(self):
            return self.array.__dlpack_device__()

    @oc.kernel
    def add(x: oc.types.ndarray(dtype=oc.f32, ndim=1)):
        for i in x:
            x[i] += i

    array = np.zeros(4, np.float32)
    for _ in range(2):
        add(Foreign(array))
    assert array.tolist() == [0, 2, 4, 6]


@oc.kernel
def add_index(x: oc.types.ndarray(ndim=3), y: oc.types.ndarray(ndim=3)):
    for i, j, k in x:
        x[i, j, k] += 100 * i + 10 * j + k + y[i, j, k]


def strided_cases():
    """Ways to look at a block of numbers that are neither row-major nor column-major."""
    steps = [slice(None), slice(None, None, 2), slice(None, None, -1), slice(1, -1), slice(-2, None, -3)]
    for slices in itertools.product(steps, repeat=3):
        yield lambda block, slices=slices: block[slices]
    for axes in itertools.permutations(range(3)):
        yield lambda block, axes=axes: block.transpose(axes)
        yield lambda block, axes=axes: block[1:, ::2, :-1].transpose(axes)
        yield lambda block, axes=axes: block[:, ::-1, 1:2].transpose(axes)


@pytest.mark.host_access
def test_strided_arrays_are_used_in_place(arch):
    rng = np.random.default_rng(0)
    cases = list(strided_cases())
    for case in cases if arch == "cpu" else cases[::7]:
        block, other = (rng.integers(-9, 9, (4, 5, 6)).astype(np.int32) for _ in range(2))
        x, y = case(block), case(other)
        # What lies between the elements stays as it is.
        expected = block.copy()
        seen = case(expected)
        i, j, k = np.indices(x.shape)
        seen += (100 * i + 10 * j + k).astype(np.int32) + y
        add_index(x, y)
        np.testing.assert_array_equal(block, expected)


def test_repeated_elements_may_be_read(arch):
    @oc.kernel
    def total(x: oc.types.ndarray(ndim=2)) -> oc.f64:
        s = oc.f64(0.0)
        for i, j in x:
            s += x[i, j] * (j + 1)
        return s

    row = np.arange(3, dtype=np.float32)
    assert total(np.broadcast_to(row, (4, 3))) == 4 * (0 * 1 + 1 * 2 + 2 * 3)


def test_strided_arrays_that_overlap(arch):
    """One array shifted against itself: iterations in order see what those before wrote, as in numpy's loop."""

    @oc.kernel
    def shift(a: oc.types.ndarray(ndim=1), b: oc.types.ndarray(ndim=1)):
        oc.loop_config(serialize=True)
        for i in range(a.shape[0]):
            a[i] = b[i] + 1

    for start, stop, step in ((0, 20, 2), (0, 21, 3), (2, 22, 1)):
        block = np.arange(24, dtype=np.int64)
        a, b = block[start + 2 : stop + 2 : step], block[start:stop:step]
        expected = block.copy()
        ea, eb = expected[start + 2 : stop + 2 : step], expected[start:stop:step]
        for i in range(len(ea)):
            ea[i] = eb[i] + 1
        shift(a, b)
        np.testing.assert_array_equal(block, expected)


def test_loops_inside_a_parallel_loop_run_through_strided_arrays(arch):
    @oc.kernel
    def product(a: oc.types.ndarray(ndim=2), b: oc.types.ndarray(ndim=2), c: oc.types.ndarray(ndim=2)):
        for i, j in c:
            s = oc.f64(0.0)
            for k in range(a.shape[1]):
                s += a[i, k] * b[k, j]
            c[i, j] = s

    rng = np.random.default_rng(1)
    for rows, columns in itertools.product(
        (slice(None, None, 2), slice(None, None, -1)), (slice(3, None), slice(None, None, 3))
    ):
        a, b = rng.random((22, 40))[rows, columns], rng.random((40, 33))[columns, rows]
        block = np.zeros((50, 70))
        c = block[: a.shape[0], ::2][:, : b.shape[1]]
        product(a, b, c)
        np.testing.assert_allclose(c, a @ b, rtol=1e-12)
        assert (block[:, 1::2] == 0).all()


def test_strided_vectors_and_bounds(arch):
    @oc.kernel
    def shifted(v: oc.types.ndarray(dtype=oc.math.vec2, ndim=1)):
        for i in v:
            v[i] += oc.Vector([i, -i])

    @oc.kernel
    def corner(a: oc.types.ndarray(ndim=2, boundary="clamp"), low: int, high: int) -> oc.i32:
        return a[low, high] * 100 + a[high, low]

    @oc.real_func
    def read(a: oc.types.ndarray(dtype=oc.i32, ndim=2), i: int, j: int) -> oc.i32:
        return a[i, j]

    @oc.kernel
    def by_function(a: oc.types.ndarray(dtype=oc.i32, ndim=2), i: int, j: int) -> oc.i32:
        return read(a, i, j)

    block = np.zeros((8, 3), np.float32)
    shifted(block[::2, 1:])
    assert block[::2, 1:].tolist() == [[i, -i] for i in range(4)] and not block[1::2].any() and not block[:, 0].any()
    shifted(block[:, ::2])  # entries that lie apart are copied
    assert block[:, 0].tolist() == list(range(8))
    x = np.arange(24, dtype=np.int32).reshape(4, 6)[::-1, 1::2]
    assert corner(x, -5, 99) == x[0, -1] * 100 + x[-1, 0]
    assert by_function(x, 1, 2) == x[1, 2]
    oc.init(arch=getattr(oc, arch), debug=True, log_level="error")
    assert by_function(x, 3, 1) == x[3, 1]
    with pytest.raises(AssertionError, match="out of bounds"):
        by_function(x, 4, 0)


def test_read_only_strided_arrays(arch):
    x = np.arange(12).reshape(3, 4)[:, ::2]
    x.flags.writeable = False

    @oc.kernel
    def first(x: oc.types.ndarray(ndim=2)) -> oc.i64:
        return x[1, 1]

    assert first(x) == 6
    y = np.zeros((3, 2, 1), np.int64)
    with pytest.raises(ValueError, match="writeable"):
        add_index(x[:, :, None], y)


def test_arrays_shapes_and_strides_at_random(arch):
    """Slices of slices of arrays of every rank against numpy."""
    rng = np.random.default_rng(7)

    def kernel_of(rank):
        @oc.kernel
        def add(x: oc.types.ndarray(ndim=rank), y: oc.types.ndarray(ndim=rank)):
            for index in oc.grouped(x):
                x[index] = 2 * x[index] + y[index]

        return add

    kernels = {rank: kernel_of(rank) for rank in range(1, 5)}
    for _ in range(150 if arch == "cpu" else 30):
        rank = int(rng.integers(1, 5))
        dtype = rng.choice([np.int8, np.int16, np.int64, np.float32])

        def look(block, rank=rank):
            view = block
            for _ in range(2):
                slices = []
                for extent in view.shape:
                    step = int(rng.choice([-3, -2, -1, 1, 1, 2]))
                    a, b = sorted(int(n) for n in rng.integers(0, extent + 1, 2))
                    a, b = (a, b) if b - a > 0 else (0, extent)
                    slices.append(slice(a, b, step) if step > 0 else slice(b - 1, a - 1 if a else None, step))
                view = view[tuple(slices)]
            return view.transpose(rng.permutation(rank))

        block = rng.integers(-9, 9, rng.integers(3, 9, rank)).astype(dtype)
        x = look(block)
        y = rng.integers(-9, 9, x.shape).astype(dtype)
        y = np.asfortranarray(y) if rng.random() < 0.5 else y
        expected = (2 * x + y).astype(dtype)
        outside = block.copy()
        base = np.zeros(block.shape, bool)
        np.lib.stride_tricks.as_strided(
            base.reshape(-1)[(x.ctypes.data - block.ctypes.data) // block.itemsize :],
            x.shape,
            [s // block.itemsize for s in x.strides],
        )[...] = True
        kernels[rank](x, y)
        np.testing.assert_array_equal(x, expected)
        np.testing.assert_array_equal(block[~base], outside[~base])
